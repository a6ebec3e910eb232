"""ThresholdIndex: owns the arrays, lets them grow, and turns what callers have into what kernels take."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from research.strategies.drift.kernels.threshold_index import change, dump, move
from research.strategies.drift.kernels.threshold_index.labels import LABEL_STEP
from research.strategies.drift.kernels.threshold_index.layout import (
    ABSOLUTE,
    AUDIENCE_TOP,
    BAD_AUDIENCE,
    BAD_ITEM,
    BAD_LABEL,
    BAD_REACH,
    BOXES,
    BOXES_WANTED,
    DONE,
    FIRST_ITEM,
    GAP,
    ITEM_AUDIENCE,
    ITEM_FREE,
    ITEM_TOP,
    LIST_WIDTH,
    NEEDS_ROOM,
    NEXT,
    NO_LABEL,
    NOT_ALONE,
    PERCENT,
    PROGRESS,
    RATIO,
    REACH_WIDTH,
    RECORD_WIDTH,
    ROOT_WIDTH,
    TIME,
    TOTAL,
    empty_arrays,
)
from research.strategies.drift.kernels.threshold_index.renewal import LabelBook, Renewal, relabel
from tidings.kernels.arguments import as_argument, as_floats, as_ints
from tidings.kernels.arrays import F64, I64, grow
from tidings.kernels.extents import WANTED, make_room

MESSAGES = {
    BAD_LABEL: "is below another of its reach, or that of members with another anchor",
    NOT_ALONE: "cannot be chosen for an audience that has not exactly one item",
    NO_LABEL: "cannot be chosen: none is left",
}


class Touched(NamedTuple):
    """What moves touch, as closed boxes of keys (reach, label): those of move i at starts[i]:starts[i + 1]."""

    starts: I64
    reach_lo: F64
    reach_hi: F64
    label_lo: I64
    label_hi: I64


class Runs(NamedTuple):
    """The anchors of an item's members, in key order; members is 0 where a run has all members of its reaches."""

    reach_lo: F64
    reach_hi: F64
    label_lo: I64
    label_hi: I64
    value: F64
    time: I64
    members: I64


class ThresholdIndex:
    """Which members does a new value of an item reach, each of whom has a threshold of its own?

    The index holds items, each with a value, a time and the audience that follows it; and for each item the anchors of the
    members of that audience.

    A member is a key (reach, label); several members may have the same key. It is anchored, for each item of its
    audience, at the value c and the time t0 at which it was last touched or became a member. A move to (d, t) touches
    it, and moves its anchor there, if d is out of reach:

        ABSOLUTE   d >= c + reach  or  d <= c - reach
        PERCENT    d >= c + step   or  d <= c - step,   step = abs(c) * reach / 100
        RATIO      d >= c * reach  or  d <= c / reach,  reach > 1

    or if `patience` is given and t - t0 >= patience (never if either is NO_TIME). An item may be void, its value NaN;
    all are touched when it becomes so, and again when it has a value.

    Of members with one anchor, those with small reaches are touched before those with large ones. So members next to each
    other mostly have equal anchors, and what is stored, and touched, are runs of keys (`runs`), of which there are few. Not
    safe for use by several threads at a time.
    """

    def __init__(
        self, kind: int, patience: int | None = None, *, renews: bool = False, label_step: int = LABEL_STEP
    ) -> None:
        """renews: labels that were chosen may change when others are, so that a move never touches more than two ranges of
        labels of one reach, if the kind is not PERCENT. label_step: from the highest label to the next that is chosen.
        """
        if kind not in (ABSOLUTE, PERCENT, RATIO):
            raise ValueError(f"kind is {kind}, must be ABSOLUTE, PERCENT or RATIO")
        if patience is not None and not 0 < patience < 1 << 63:
            raise ValueError(f"patience is {patience}, must be None or positive")
        self.kind = kind
        self.patience = patience
        self._arrays = empty_arrays(kind, patience or 0, label_step, renews=renews)
        self._book = LabelBook() if renews else None
        self._renewals: list[Renewal] = []
        self._head = self._arrays.head
        self._boxes_f = np.empty((64, 2))
        self._boxes_i = np.empty((64, 2), np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in (*self._arrays[:-1], self._boxes_f, self._boxes_i))

    def new_audience(self) -> int:
        """Number of a new audience, without members and items."""
        number = int(self._head[AUDIENCE_TOP])
        grow(self._arrays.audiences, number + 1)
        self._arrays.audiences[number, FIRST_ITEM] = -1
        self._head[AUDIENCE_TOP] += 1
        return number

    def new_items(self, audiences: ArrayLike, values: ArrayLike, times: ArrayLike) -> I64:
        """Numbers of new items that follow the given audiences, whose present members are anchored at (value, time)."""
        followed = self._audiences(audiences)
        new_values, new_times = as_floats(values), as_ints(times)
        _check_lengths(followed, new_values, new_times)
        top = int(self._head[ITEM_TOP]) + len(followed)
        grow(self._arrays.items, top)
        grow(self._arrays.values, top)
        self._head[WANTED] = len(followed) * (RECORD_WIDTH + 2 * LIST_WIDTH)
        self._make_room()
        made: I64 = change.new_items(*self._arrays, followed, new_values, new_times)
        return made

    def free_item(self, item: int) -> None:
        """Forget an item; its number may be given to another."""
        change.free_item(*self._arrays, self._item(item))

    def add(self, audiences: ArrayLike, reaches: ArrayLike, labels: ArrayLike) -> I64:
        """Add members with the given keys; returns their labels, with those chosen in place of CHOOSE.

        A label must not be below one used before with the same reach; and equal to such a one only if no item of the
        audience has moved in between. CHOOSE is for audiences with exactly one item. ValueError if a label is wrong,
        with the members before that added.
        """
        to, new_reaches = as_ints(audiences), as_floats(reaches)
        used = np.array(labels, np.int64, ndmin=1)
        _check_lengths(to, new_reaches, used)
        at = entered = 0
        while (status := change.add(*self._arrays, to, new_reaches, used, at)) != DONE:
            at = int(self._head[PROGRESS])
            if status == BAD_AUDIENCE:
                raise KeyError(f"there is no audience {to[at]}")
            if status == BAD_REACH:
                raise ValueError(f"reach {new_reaches[at]} is not finite and above {int(self.kind == RATIO)}")
            if self._book is not None:
                self._book.enter(to[entered:at], new_reaches[entered:at], used[entered:at])
                entered = at
            if status == NO_LABEL and self._book is not None:
                self._renew(self._book, int(to[at]), float(new_reaches[at]), to[:at], new_reaches[:at], used[:at])
            elif status != NEEDS_ROOM:
                raise ValueError(f"label {used[at]} of reach {new_reaches[at]} {MESSAGES[status]}")
            else:
                self._make_room()
        if self._book is not None:
            self._book.enter(to[entered:], new_reaches[entered:], used[entered:])
        return used

    def _renew(self, book: LabelBook, audience: int, reach: float, to: I64, reaches: F64, used: I64) -> None:
        """Makes room where a label of a reach was wanted. to, reaches, used: members added before in the same call."""
        renewal, old, new = book.renew(audience, reach, int(self._head[GAP]))
        relabel(*self._arrays, audience, reach, old, new)
        mine = np.flatnonzero((to == audience) & (reaches == reach))
        used[mine] = [renewal.of(label) for label in used[mine].tolist()]
        self._renewals.append(renewal)

    def take_renewals(self) -> list[Renewal]:
        """What has become of labels since the last call, in order."""
        renewals, self._renewals = self._renewals, []
        return renewals

    def remove(self, audiences: ArrayLike, reaches: ArrayLike, labels: ArrayLike) -> None:
        """Remove one member of each key given; KeyError if there is none, with the members before that removed."""
        of, old_reaches, old_labels = as_ints(audiences), as_floats(reaches), as_ints(labels)
        _check_lengths(of, old_reaches, old_labels)
        at = 0
        while (status := change.remove(*self._arrays, of, old_reaches, old_labels, at)) != DONE:
            at = int(self._head[PROGRESS])
            if status == NEEDS_ROOM:
                self._make_room()
                continue
            if self._book is not None:
                self._book.withdraw(of[:at], old_reaches[:at], old_labels[:at])
            if status == BAD_AUDIENCE:
                raise KeyError(f"there is no audience {of[at]}")
            raise KeyError(f"audience {of[at]} has no member ({old_reaches[at]}, {old_labels[at]})")
        if self._book is not None:
            self._book.withdraw(of, old_reaches, old_labels)

    def move(self, items: ArrayLike, values: ArrayLike, times: ArrayLike) -> Touched:
        """Move items, one after the other, and tell whom each move touches.

        The boxes of a move are disjoint and in key order. A box with labels LABEL_MIN to LABEL_MAX has all members of
        its reaches; all members of the audience may be given as the reaches from -inf to inf.
        """
        moved, to_values, to_times = as_ints(items), as_floats(values), as_ints(times)
        _check_lengths(moved, to_values, to_times)
        starts = np.zeros(len(moved) + 1, np.int64)
        at = 0
        while (
            status := move.move(*self._arrays, moved, to_values, to_times, starts, self._boxes_f, self._boxes_i, at)
        ) != DONE:
            at = int(self._head[PROGRESS])
            if status == BAD_ITEM:
                raise KeyError(f"there is no item {moved[at]}")
            self._make_room()
            boxes = int(self._head[BOXES] + self._head[BOXES_WANTED])
            grow(self._boxes_f, boxes)
            grow(self._boxes_i, boxes)
        reaches, labels = self._boxes_f[: starts[-1]], self._boxes_i[: starts[-1]]
        return Touched(starts, reaches[:, 0].copy(), reaches[:, 1].copy(), labels[:, 0].copy(), labels[:, 1].copy())

    def anchor(self, item: int, reach: float, label: int) -> tuple[float, int] | None:
        """Value and time at which a member is anchored; None if the item is void. KeyError if there is no such member."""
        if math.isnan(self._arrays.values[self._item(item)]):
            return None
        runs = self.runs(item)
        found = (
            (runs.reach_lo <= reach) & (reach <= runs.reach_hi) & (runs.label_lo <= label) & (label <= runs.label_hi)
        )
        if not found.any():
            raise KeyError(f"item {item} has no member ({reach}, {label})")
        at = int(found.argmax())
        return float(runs.value[at]), int(runs.time[at])

    def value(self, item: int) -> tuple[float, int]:
        """Present value and time of an item."""
        item = self._item(item)
        return float(self._arrays.values[item]), int(self._arrays.items[item, TIME])

    def member_count(self, audience: int) -> int:
        """Number of members of an audience."""
        return int(self._arrays.audiences[int(self._audiences([audience])[0]), TOTAL])

    def runs(self, item: int) -> Runs:
        """The anchors of an item's members; nothing if it is void."""
        item = self._item(item)
        _, floats, ints = dump.dump_runs(*self._arrays, item, item + 1)
        return Runs(floats[:, 1], floats[:, 2], ints[:, 1], ints[:, 2], floats[:, 0], ints[:, 0], ints[:, 3])

    def dump(self) -> dict[str, NDArray[Any]]:
        """Everything, for `load`."""
        item_top, audience_top = int(self._head[ITEM_TOP]), int(self._head[AUDIENCE_TOP])
        member_starts, reaches, members = dump.dump_members(*self._arrays, audience_top)
        run_starts, run_floats, run_ints = dump.dump_runs(*self._arrays, 0, item_top)
        free = []
        item = int(self._head[ITEM_FREE])
        while item >= 0:
            free.append(item)
            item = int(self._arrays.items[item, NEXT])
        return {
            "item_audience": self._arrays.items[:item_top, ITEM_AUDIENCE].copy(),
            "item_time": self._arrays.items[:item_top, TIME].copy(),
            "item_value": self._arrays.values[:item_top].copy(),
            "free_items": np.array(free, np.int64),
            "member_starts": member_starts,
            "member_reach": reaches,
            "member_fields": members,
            "run_starts": run_starts,
            "run_floats": run_floats,
            "run_ints": run_ints,
            **({} if self._book is None else self._book.dump()),
        }

    def load(self, state: dict[str, NDArray[Any]]) -> None:
        """Become what was dumped, by one of the same kind and patience; only if there are no audiences yet."""
        if self._head[AUDIENCE_TOP]:
            raise ValueError("there are audiences already")
        item_top, audience_top = len(state["item_audience"]), len(state["member_starts"]) - 1
        a, head = self._arrays, self._head
        head[ITEM_TOP], head[AUDIENCE_TOP] = item_top, audience_top
        grow(a.items, item_top)
        grow(a.values, item_top)
        grow(a.audiences, audience_top)
        a.items[:item_top, ITEM_AUDIENCE] = state["item_audience"]
        a.items[:item_top, TIME] = state["item_time"]
        a.values[:item_top] = state["item_value"]
        for item in state["free_items"][::-1].tolist():
            a.items[item, NEXT] = head[ITEM_FREE]
            head[ITEM_FREE] = item
        records, members = len(state["run_floats"]), len(state["member_reach"])
        head[WANTED] = 2 * records * RECORD_WIDTH + (records // 4 + 4 * item_top) * LIST_WIDTH
        head[WANTED] += 2 * members * REACH_WIDTH + (members // 64 + 2 * audience_top) * ROOT_WIDTH
        self._make_room()
        names = ("member_starts", "member_reach", "member_fields", "run_starts", "run_floats", "run_ints")
        dump.load(*self._arrays, *(as_argument(state[name]) for name in names))
        if self._book is not None:
            self._book.load(state)

    def _item(self, item: int) -> int:
        if not 0 <= item < self._head[ITEM_TOP] or self._arrays.items[item, ITEM_AUDIENCE] < 0:
            raise KeyError(f"there is no item {item}")
        return int(item)

    def _audiences(self, audiences: ArrayLike) -> I64:
        numbers = as_ints(audiences)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < self._head[AUDIENCE_TOP]):
            raise KeyError(f"audiences are from 0 to {self._head[AUDIENCE_TOP] - 1}")
        return numbers

    def _make_room(self) -> None:
        """Have as much memory as a kernel has left word in `head`."""
        memory = self._arrays.m
        make_room(memory, self._head)
        self._arrays = self._arrays._replace(f=memory.view(np.float64))


def _check_lengths(first: NDArray[Any], second: NDArray[Any], third: NDArray[Any]) -> None:
    if not len(first) == len(second) == len(third):
        raise ValueError(f"{len(first)}, {len(second)} and {len(third)} entries, must be as many")
