"""The classes that own the arrays of a range top-k index."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tidings.families.topk.kernels.plane_kdtree import PlaneKdTree
from tidings.families.topk.kernels.range_topk import change, net
from tidings.families.topk.kernels.range_topk.layout import (
    BAD_ENTRY,
    BAD_SET,
    BAD_X,
    BOXES,
    DONE,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    LOOKUPS,
    NEEDS_OUTPUT,
    NEEDS_ROOM,
    OWNER,
    PRESENT,
    PROGRESS,
    SENDS,
    SET_COUNT,
    SIZE,
    SNAPS,
    empty_arrays,
)
from tidings.families.topk.kernels.range_topk.net import NEW, NUMBER, OLD, SCRATCH, SEND_BOXES, TOUCHED_FIELDS
from tidings.families.topk.kernels.range_topk.output import Output, Outputs, Sends
from tidings.kernels.arguments import as_argument, as_ints, check_lengths
from tidings.kernels.arrays import grow
from tidings.kernels.extents import TOP, WANTED

__all__ = ["NetRangeTopkIndex", "RangeTopkIndex", "Sends"]

K_MAX = 1 << 16

_NO_POINTS = PlaneKdTree()
"""Stands for a tree where all points count, known or not."""


class RangeTopkIndex:
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
        self._outputs = Outputs(2 * k)

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
        """How many boxes have been looked at for points of a kd-tree."""
        return int(self._head[SNAPS])

    def new_set(self) -> int:
        """Number of a new set, without entries: 0, 1, 2 .."""
        number = int(self._head[SET_COUNT])
        grow(self._arrays.sets, number + 1)
        self._arrays.sets[number] = 0
        self._head[SET_COUNT] += 1
        return number

    def change(
        self,
        sets: ArrayLike,
        entries: ArrayLike,
        xs: ArrayLike,
        ys: ArrayLike,
        ties: ArrayLike,
        is_present: ArrayLike,
        among: PlaneKdTree | None = None,
    ) -> Sends:
        """Gives entries new numbers, or makes them absent, one after the other; returns who must be sent what.

        An entry whose numbers stay the same is sent to those who hold it. If something is wrong with a change, an error
        is raised, with the changes before that made. Among the points of a kd-tree, whose sets have the same numbers,
        nobody else counts: boxes are drawn around these, and joined where no other point is in between.
        """
        of, changed = as_ints(sets), as_ints(entries)
        numbers = (as_ints(xs), as_ints(ys), as_ints(ties))
        present = as_argument(is_present, np.bool_).reshape(-1)
        check_lengths(of, changed, *numbers, present)
        self._cover_entries(changed)
        send_starts = np.zeros(len(of) + 1, np.int64)
        output = self._outputs.get(len(of), 4 * self.k)
        at = 0
        tree = (*(_NO_POINTS if among is None else among).arrays, among is not None)
        columns = (of, changed, *numbers, present.view(np.uint8), send_starts)
        while (status := change.change(*self._arrays, *tree, *columns, *output, at)) != DONE:
            at = int(self._head[PROGRESS])
            if status == NEEDS_ROOM:
                self._make_room()
            elif status == NEEDS_OUTPUT:
                output = self._longer(output)
            else:
                raise _error(status, int(of[at]), int(changed[at]), int(numbers[0][at]))
        sends, boxes = int(self._head[SENDS]), int(self._head[BOXES])
        self._outputs.expect(len(of), boxes, self.k)
        return output.sends(send_starts, sends, boxes)

    def best(self, sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> tuple[I64, I64]:
        """The best entries of ranges: those of range i are entries[starts[i]:starts[i + 1]], lowest key first."""
        of, first, last = as_ints(sets), as_ints(los), as_ints(his)
        check_lengths(of, first, last)
        starts = np.zeros(len(of) + 1, np.int64)
        most = min(self.k, int(self._arrays.sets[: self._head[SET_COUNT], SIZE].max(initial=0)))
        found = np.empty(len(of) * most, np.int64)
        if change.best(*self._arrays, of, first, last, starts, found) != DONE:
            raise _error(BAD_SET, int(of[self._head[PROGRESS]]), 0, 0)
        return starts, found[: starts[-1]].copy()

    def retie(self, sets: ArrayLike, entries: ArrayLike, ties: ArrayLike) -> None:
        """Gives entries other ties; these must leave the entries of each set in the same order."""
        of, changed, new = as_ints(sets), as_ints(entries), as_ints(ties)
        check_lengths(of, changed, new)
        self._cover_entries(changed)
        if change.retie(*self._arrays, of, changed, new) != DONE:
            at = int(self._head[PROGRESS])
            raise KeyError(f"set {of[at]} has no entry {changed[at]}")

    def _cover_entries(self, entries: I64) -> None:
        if len(entries):
            if entries.min() < 0:
                raise ValueError(f"entry {entries.min()} must not be negative")
            grow(self._arrays.entries, int(entries.max()) + 1)

    def _make_room(self) -> None:
        """Gets as much memory as a kernel has left word in `head`."""
        grow(self._arrays.m, int(self._head[TOP] + self._head[WANTED]))

    def _longer(self, output: Output) -> Output:
        return self._outputs.longer(output, int(self._head[SENDS]), int(self._head[BOXES]))


class NetRangeTopkIndex(RangeTopkIndex):
    """A range top-k index that can also send the net effect of many changes at once, to those who need no more.

    All points hold what they should after all sends of a batch; in between, they may not. Each is sent as little as
    possible: an entry that it is to hold if that was changed, or was not held before, once; and one that it is to hold
    no more, if it would not drop that by itself, once.
    """

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self._slots = np.zeros(0, np.int64)
        """[entries] zero between batches; within one, who is touched or met."""
        self._met = np.zeros(0, np.int64)
        """[entries] room for those met."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, but for those of the last sends."""
        return super().nbytes + self._slots.nbytes + self._met.nbytes

    def net(
        self,
        sets: ArrayLike,
        entries: ArrayLike,
        xs: ArrayLike,
        ys: ArrayLike,
        ties: ArrayLike,
        is_present: ArrayLike,
    ) -> tuple[I64, Sends]:
        """Makes changes as `change` does; returns the set of each send, and what they come to: sends as of one change.

        An entry named whose numbers are the same in the end is sent to those who hold it. One that is still there but
        has another x, or is in another set, is sent as gone to those who hold it no more. A send may have several times
        k boxes. If something is wrong with a change, an error is raised, and none is made.
        """
        of, changed = as_ints(sets), as_ints(entries)
        numbers = (as_ints(xs), as_ints(ys), as_ints(ties))
        present = as_argument(is_present, np.bool_).reshape(-1)
        check_lengths(of, changed, *numbers, present)
        self._cover_entries(changed)
        if len(self._slots) < len(self._arrays.entries):
            self._slots = np.zeros(len(self._arrays.entries), np.int64)
            self._met = np.empty(len(self._arrays.entries), np.int64)
        room = np.empty((2 * len(of), TOUCHED_FIELDS), np.int64)
        status, count = net.gather(
            self._head, self._arrays.entries, of, changed, *numbers, present.view(np.uint8), self._slots, room
        )
        touched = room[:count]
        try:
            if status != DONE:
                at = int(self._head[PROGRESS])
                raise _error(status, int(of[at]), int(changed[at]), int(numbers[0][at]))
            sends = self._send(touched)
            # An entry that is gone is in no set, or in another.
            before, now = touched[self._slots[sends.entry] - 1, OLD + OWNER], self._arrays.entries[sends.entry, OWNER]
            return np.where(sends.is_gone, before, now) - 1, sends
        finally:
            self._slots[touched[:, NUMBER]] = 0

    def _send(self, touched: I64) -> Sends:
        order, gone, fallen = _order(touched)
        kept = np.empty((gone + fallen + SCRATCH, net.profile_words(self.k)), np.int64)
        net.keep(*self._arrays, touched[order[: gone + fallen], NUMBER], kept)
        self._settle(touched, NEW)
        self._head[SENDS] = self._head[BOXES] = 0
        output = self._outputs.get(len(touched), 2 * SEND_BOXES * (self.k + 1))
        at, count = 0, 0
        while True:
            status, count = net.send_batch(
                *self._arrays, touched, self._slots, self._met, kept, order, gone, fallen, *output, at, count
            )
            if status == DONE:
                break
            output, at = self._longer(output), int(self._head[PROGRESS])
        met = self._met[:count]
        if count:
            output = self._send_met(touched, met, output)
        self._slots[met] = 0
        sends, boxes = int(self._head[SENDS]), int(self._head[BOXES])
        self._outputs.expect(len(touched), boxes, self.k)
        return output.sends(np.array([0, sends]), sends, boxes)

    def _send_met(self, touched: I64, met: I64, output: Output) -> Output:
        """Sends entries that have not been touched: goes back to the old state to see who had them."""
        kept = np.empty((len(met) + 1, net.profile_words(self.k)), np.int64)
        net.keep(*self._arrays, met, kept)
        self._settle(touched, OLD)
        at = 0
        while net.send_met(*self._arrays, met, kept, *output, at) != DONE:
            output, at = self._longer(output), int(self._head[PROGRESS])
        self._settle(touched, NEW)
        return output

    def _settle(self, touched: I64, state: int) -> None:
        """Makes the sets what they are in the old or the new state; ValueError, and back in the old one, if not possible."""
        while (status := net.settle(*self._arrays, touched, state)) != DONE:
            if status == NEEDS_ROOM:
                self._make_room()
                continue
            refused = touched[self._head[PROGRESS]]
            self._settle(touched, OLD)
            raise _error(status, int(refused[NEW + OWNER]) - 1, int(refused[NUMBER]), int(refused[NEW + ENTRY_X]))


def _order(touched: I64) -> tuple[I64, int, int]:
    """In which order to send: first those gone from their x, or their set, then the fallen ones; how many of each."""
    old, new = touched[:, OLD:NEW], touched[:, NEW:]
    was, is_there = old[:, OWNER] > 0, new[:, OWNER] > 0
    stayed = was & is_there & (old[:, ENTRY_X] == new[:, ENTRY_X])
    y_old, y = old[:, ENTRY_Y], new[:, ENTRY_Y]
    fell = stayed & ((y > y_old) | ((y == y_old) & (new[:, ENTRY_TIE] > old[:, ENTRY_TIE])))
    gone, fallen = np.flatnonzero(was & ~stayed), np.flatnonzero(fell)
    fallen = fallen[np.lexsort((new[fallen, ENTRY_TIE], new[fallen, ENTRY_Y]))[::-1]]
    return np.concatenate([gone, fallen, np.flatnonzero(is_there & ~fell)]), len(gone), len(fallen)


def _error(status: int, number: int, entry: int, x: int) -> Exception:
    """What to raise for a change that cannot be made."""
    if status == BAD_SET:
        return KeyError(f"there is no set {number}")
    if status == BAD_ENTRY:
        return ValueError(f"entry {entry} is not in set {number}, but in another")
    if status == BAD_X:
        return ValueError(f"x of entry {entry} is {x}, must not be the least or the greatest integer")
    return ValueError(f"x and tie of entry {entry} are those of another in set {number}")
