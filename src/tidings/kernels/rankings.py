"""Rankings: who must be told what, of all those who hold the k best entries in a range of their own, at each change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidings.kernels import rankings_best, rankings_change, rankings_dump
from tidings.kernels.arguments import as_argument, as_ints
from tidings.kernels.crowds import Crowds
from tidings.kernels.rankings_arrays import (
    BAD_ENTRY,
    BAD_SET,
    BAD_X,
    BOXES,
    DONE,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    INT64_MAX,
    INT64_MIN,
    LOOKUPS,
    NEEDS_OUTPUT,
    NEEDS_ROOM,
    NEXT,
    PRESENT,
    PROGRESS,
    SENDS,
    SET_FREE,
    SET_TOP,
    SIZE,
    SNAPS,
    TOP,
    WANTED,
    empty_arrays,
)
from tidings.kernels.rankings_dump import words_for
from tidings.kernels.rankings_output import Outputs

__all__ = ["Rankings", "Sends"]

K_MAX = 1 << 16
Flags = NDArray[np.bool_]


class Sends(NamedTuple):
    """What changes have to tell, in order.

    Those of change i are send_starts[i]:send_starts[i + 1]. Send j is of an entry, as it is after the change or gone,
    to the points in the boxes box_starts[j]:box_starts[j + 1], which are closed and disjoint, at least one, and not more
    than some times k. Points and boxes are (lo, hi), or that for each of several axes.
    """

    send_starts: I64
    entry: I64
    is_gone: Flags
    box_starts: I64
    box_lo: I64
    """[boxes, 2 * axes]"""
    box_hi: I64
    """[boxes, 2 * axes]"""

    @property
    def lo_min(self) -> I64:
        """Least lo of each box; lo_max, hi_min and hi_max are its other bounds."""
        return self.box_lo[:, 0]

    @property
    def lo_max(self) -> I64:
        return self.box_hi[:, 0]

    @property
    def hi_min(self) -> I64:
        return self.box_lo[:, 1]

    @property
    def hi_max(self) -> I64:
        return self.box_hi[:, 1]


class Rankings:
    """Sets of entries with numbers x, y and tie each, for those who hold the k best entries of a range.

    Entries are ranked by (y, tie), lowest first, and stand from left to right by (x, tie); the ties of a set are all
    different. A point (lo, hi) holds the k best of the entries with lo <= x <= hi, or all if there are fewer. Who gets
    an entry that is sent overwrites it if it is held, and removes it if it is gone; one that is not held is added, unless
    it is gone, and then the last of more than k is dropped. So all hold what they should after each change.

    With fewer groups than k, a send has no more boxes than these, but larger ones, and reaches points that need it not;
    they all cover its x, so it does them no harm.

    Entries are small non-negative integers chosen by the caller, which memory grows with; one is in one set at a time.
    x is above INT64_MIN and below INT64_MAX; lo and hi may be any, and if lo > hi, nothing is said of that point.

    Not safe for use by several threads at a time.
    """

    def __init__(self, k: int, groups: int | None = None) -> None:
        if not 0 < k <= K_MAX:
            raise ValueError(f"k is {k}, must be from 1 to {K_MAX}")
        if groups is not None and groups < 1:
            raise ValueError(f"groups are {groups}, must be at least 1")
        self.k = k
        self._arrays = empty_arrays(k, k if groups is None else min(k, groups))
        self._head = self._arrays.head
        self._outputs = Outputs()
        self._boxes_per_change = 2 * k

    def __len__(self) -> int:
        """Number of entries present in all sets."""
        return int(self._head[PRESENT])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, but for those of the last sends, which are kept to be used again."""
        return sum(array.nbytes for array in self._arrays)

    @property
    def lookups(self) -> int:
        """How often the next entry to take the place of another has been looked for, in vain or not."""
        return int(self._head[LOOKUPS])

    @property
    def snaps(self) -> int:
        """How many boxes have been looked at for points of crowds."""
        return int(self._head[SNAPS])

    def new_set(self) -> int:
        """Number of a new set, without entries."""
        number = int(self._head[SET_FREE])
        if number >= 0:
            self._head[SET_FREE] = self._arrays.sets[number, NEXT]
        else:
            number = int(self._head[SET_TOP])
            _cover(self._arrays.sets, number + 1)
            self._head[SET_TOP] += 1
        self._arrays.sets[number] = 0
        return number

    def free_set(self, number: int) -> None:
        """Forget a set and its entries; its number may be given to another."""
        rankings_dump.clear(*self._arrays, self._set(number))
        self._arrays.sets[number, SIZE] = -1
        self._arrays.sets[number, NEXT] = self._head[SET_FREE]
        self._head[SET_FREE] = number

    def count(self, number: int) -> int:
        """Number of entries of a set."""
        return int(self._arrays.sets[self._set(number), SIZE])

    def entries(self, number: int) -> dict[int, tuple[int, int, int]]:
        """The entries of a set, from left to right, each with its x, y and tie."""
        number = self._set(number)
        _, listed = rankings_dump.list_entries(*self._arrays, number, number + 1)
        fields = self._arrays.entries[listed][:, [ENTRY_X, ENTRY_Y, ENTRY_TIE]].tolist()
        return {entry: (x, y, tie) for entry, (x, y, tie) in zip(listed.tolist(), fields, strict=True)}

    def change(
        self,
        sets: ArrayLike,
        entries: ArrayLike,
        xs: ArrayLike,
        ys: ArrayLike,
        ties: ArrayLike,
        is_present: ArrayLike,
        among: Crowds | None = None,
    ) -> Sends:
        """Give entries new numbers, or make them absent, one after the other, and tell who must be told what.

        An entry whose numbers stay the same is sent to those who hold it. If something is wrong with a change, an error
        is raised, with the changes before that made. Among crowds, whose sets have the same numbers, only their points
        are told: boxes are drawn around these, and joined where no other point is in between.
        """
        of, changed = as_ints(sets), as_ints(entries)
        numbers = (as_ints(xs), as_ints(ys), as_ints(ties))
        present = as_argument(is_present, np.bool_).reshape(-1)
        _check_lengths(of, changed, *numbers, present)
        self._cover_entries(changed)
        send_starts = np.zeros(len(of) + 1, np.int64)
        output = self._outputs.get(len(of) * self._boxes_per_change + 4 * self.k)
        at = 0
        columns = (of, changed, *numbers, present.view(np.uint8), send_starts)
        while (
            status := rankings_change.change(*self._arrays, *columns, *output, at)
            if among is None
            else rankings_change.change_among(*self._arrays, *among.arrays, *columns, *output, at)
        ) != DONE:
            at = int(self._head[PROGRESS])
            if status == NEEDS_ROOM:
                self._make_room()
            elif status == NEEDS_OUTPUT:
                output = self._outputs.longer(output, int(self._head[SENDS]), int(self._head[BOXES]))
            else:
                raise _error(status, int(of[at]), int(changed[at]), int(numbers[0][at]))
        sends, boxes = int(self._head[SENDS]), int(self._head[BOXES])
        # For the next time: rather too much than too little, as copying costs more than pages that are not used.
        self._boxes_per_change = max(
            boxes * 5 // (4 * max(len(of), 1)) + self.k, self._boxes_per_change - self._boxes_per_change // 8
        )
        sent, is_gone, box_starts, box_lo, box_hi = output
        return Sends(
            send_starts,
            sent[:sends],
            is_gone[:sends].view(np.bool_),
            box_starts[: sends + 1],
            box_lo[:boxes],
            box_hi[:boxes],
        )

    def best(self, sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> tuple[I64, I64]:
        """The best entries of ranges: those of range i are entries[starts[i]:starts[i + 1]], lowest key first."""
        of, first, last = as_ints(sets), as_ints(los), as_ints(his)
        _check_lengths(of, first, last)
        starts = np.zeros(len(of) + 1, np.int64)
        most = min(self.k, int(self._arrays.sets[: self._head[SET_TOP], SIZE].max(initial=0)))
        found = np.empty(len(of) * most, np.int64)
        if rankings_best.best(*self._arrays, of, first, last, starts, found) != DONE:
            raise _error(BAD_SET, int(of[self._head[PROGRESS]]), 0, 0)
        return starts, found[: starts[-1]].copy()

    def fill(self, number: int, entries: ArrayLike, xs: ArrayLike, ys: ArrayLike, ties: ArrayLike) -> None:
        """Give a set without entries many at a time, and tell nobody; all or, if an error is raised, none."""
        if self.count(number):
            raise ValueError(f"set {number} has entries already")
        added, numbers = as_ints(entries), (as_ints(xs), as_ints(ys), as_ints(ties))
        _check_lengths(added, *numbers)
        if len(added) and (numbers[0].min() == INT64_MIN or numbers[0].max() == INT64_MAX):
            raise ValueError("x must not be the least or the greatest integer")
        order = np.lexsort((numbers[2], numbers[0]))
        self._fill(np.array([number]), np.array([0, len(added)]), added[order], *(column[order] for column in numbers))

    def retie(self, sets: ArrayLike, entries: ArrayLike, ties: ArrayLike) -> None:
        """Give entries other ties; these must leave the entries of each set in the same order."""
        of, changed, new = as_ints(sets), as_ints(entries), as_ints(ties)
        _check_lengths(of, changed, new)
        self._cover_entries(changed)
        status = rankings_dump.retie(*self._arrays, of, changed, new)
        if status != DONE:
            at = int(self._head[PROGRESS])
            raise KeyError(f"set {of[at]} has no entry {changed[at]}")

    def dump(self) -> dict[str, NDArray[Any]]:
        """Everything, for `load`."""
        starts, listed = rankings_dump.list_entries(*self._arrays, 0, int(self._head[SET_TOP]))
        free = []
        number = int(self._head[SET_FREE])
        while number >= 0:
            free.append(number)
            number = int(self._arrays.sets[number, NEXT])
        fields = self._arrays.entries[listed]
        return {
            "starts": starts,
            "free_sets": np.array(free, np.int64),
            "entry": listed,
            "x": fields[:, ENTRY_X],
            "y": fields[:, ENTRY_Y],
            "tie": fields[:, ENTRY_TIE],
            "lookups": np.array([self.lookups]),
            "snaps": np.array([self.snaps]),
        }

    def load(self, state: dict[str, NDArray[Any]]) -> None:
        """Become what was dumped, by one with the same k; only if there are no sets yet."""
        if self._head[SET_TOP]:
            raise ValueError("there are sets already")
        columns = [as_ints(state[name]) for name in ("starts", "entry", "x", "y", "tie")]
        top = len(columns[0]) - 1
        _cover(self._arrays.sets, top)
        self._head[SET_TOP] = top
        self._head[LOOKUPS], self._head[SNAPS] = state["lookups"][0], state["snaps"][0]
        self._fill(np.arange(top), *columns)
        for number in state["free_sets"][::-1].tolist():
            self._arrays.sets[number, SIZE] = -1
            self._arrays.sets[number, NEXT] = self._head[SET_FREE]
            self._head[SET_FREE] = number

    def _fill(self, of: I64, starts: I64, added: I64, xs: I64, ys: I64, ties: I64) -> None:
        self._cover_entries(added)
        self._head[WANTED] = words_for(np.diff(starts))
        self._make_room()
        if rankings_dump.fill(*self._arrays, of, starts, added, xs, ys, ties) != DONE:
            raise ValueError(f"entry {added[self._head[PROGRESS]]} is present already")

    def _set(self, number: int) -> int:
        if not 0 <= number < self._head[SET_TOP] or self._arrays.sets[number, SIZE] < 0:
            raise KeyError(f"there is no set {number}")
        return int(number)

    def _cover_entries(self, entries: I64) -> None:
        if len(entries):
            if entries.min() < 0:
                raise ValueError(f"entry {entries.min()} must not be negative")
            _cover(self._arrays.entries, int(entries.max()) + 1)

    def _make_room(self) -> None:
        """Have as much memory as a kernel has left word in `head`."""
        _cover(self._arrays.m, int(self._head[TOP] + self._head[WANTED]))


def _cover(array: NDArray[Any], size: int) -> None:
    """Make an array at least so long, in place; large arrays are not copied where the platform can remap pages."""
    if size > len(array):
        array.resize((max(size, len(array) + max(64, len(array) // 4)), *array.shape[1:]), refcheck=False)


def _check_lengths(*columns: NDArray[Any]) -> None:
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"{', '.join(str(len(column)) for column in columns)} values, must be as many")


def _error(status: int, number: int, entry: int, x: int) -> Exception:
    """What to raise for a change that cannot be made."""
    if status == BAD_SET:
        return KeyError(f"there is no set {number}")
    if status == BAD_ENTRY:
        return ValueError(f"entry {entry} is not in set {number}, but in another")
    if status == BAD_X:
        return ValueError(f"x of entry {entry} is {x}, must not be the least or the greatest integer")
    return ValueError(f"x and tie of entry {entry} are those of another in set {number}")
