"""The classes that own the arrays of a range top-k index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from research.strategies.topk.kernels.range_topk import change
from research.strategies.topk.kernels.range_topk.layout import (
    BAD_ENTRY,
    BAD_SET,
    BAD_X,
    BOXES,
    DONE,
    I64,
    LOOKUPS,
    NEEDS_OUTPUT,
    NEEDS_ROOM,
    PRESENT,
    PROGRESS,
    SENDS,
    SET_COUNT,
    SIDES,
    SIZE,
    empty_arrays,
)
from research.strategies.topk.kernels.range_topk.output import Output, Outputs, Sends
from tidings.kernels.arguments import as_argument, as_ints, check_lengths
from tidings.kernels.arrays import grow
from tidings.kernels.extents import TOP, WANTED

__all__ = ["RangeTopkIndex", "Sends"]

K_MAX = 1 << 16


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
    def sides(self) -> int:
        """How often the nearest better entries on one side of another have been looked for."""
        return int(self._head[SIDES])

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
    ) -> Sends:
        """Gives entries new numbers, or makes them absent, one after the other; returns who must be sent what.

        An entry whose numbers stay the same is sent to those who hold it. If something is wrong with a change, an error
        is raised, with the changes before that made.
        """
        return self._change(change.change, (), sets, entries, xs, ys, ties, is_present)

    def load(self, *columns: ArrayLike) -> Sends:
        """As `change`, before there is anybody to send anything to."""
        return self.change(*columns)

    def _change(
        self,
        kernel: Callable[..., int],
        more: tuple[I64, ...],
        sets: ArrayLike,
        entries: ArrayLike,
        xs: ArrayLike,
        ys: ArrayLike,
        ties: ArrayLike,
        is_present: ArrayLike,
    ) -> Sends:
        """As `change`, by a kernel that takes `more` arrays behind those of the index."""
        of, changed = as_ints(sets), as_ints(entries)
        numbers = (as_ints(xs), as_ints(ys), as_ints(ties))
        present = as_argument(is_present, np.bool_).reshape(-1)
        check_lengths(of, changed, *numbers, present)
        self._cover_entries(changed)
        send_starts = np.zeros(len(of) + 1, np.int64)
        output = self._outputs.get(len(of), 4 * self.k)
        at = 0
        columns = (of, changed, *numbers, present.view(np.uint8), send_starts)
        while (status := kernel(*self._arrays, *more, *columns, *output, at)) != DONE:
            at = int(self._head[PROGRESS])
            if status == NEEDS_ROOM:
                self._make_room()
            elif status == NEEDS_OUTPUT:
                output = self._longer(output)
            else:
                raise error_of(status, int(of[at]), int(changed[at]), int(numbers[0][at]))
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
            raise error_of(BAD_SET, int(of[self._head[PROGRESS]]), 0, 0)
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


def error_of(status: int, number: int, entry: int, x: int) -> Exception:
    """What to raise for a change that cannot be made."""
    if status == BAD_SET:
        return KeyError(f"there is no set {number}")
    if status == BAD_ENTRY:
        return ValueError(f"entry {entry} is not in set {number}, but in another")
    if status == BAD_X:
        return ValueError(f"x of entry {entry} is {x}, must not be the least or the greatest integer")
    return ValueError(f"x and tie of entry {entry} are those of another in set {number}")
