"""Crowds: points of a plane that come and go, and what a painter asks of them: who is in a box, if anybody."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidings.kernels import crowds_add, crowds_fill, crowds_query, crowds_remove
from tidings.kernels.arguments import as_ints
from tidings.kernels.crowds_arrays import (
    COUNT,
    DONE,
    I64,
    NEEDS_ROOM,
    NODE_TOP,
    NODES_WANTED,
    POINTS,
    PROGRESS,
    SIZE,
    TOP,
    WANTED,
    Arrays,
    empty_arrays,
)

__all__ = ["Crowds"]

LINE = 8
"""Words of a line of the processor's cache."""
MANY = 256
"""From so many points on, they are brought together before they are added."""


class Crowds:
    """Sets of points (lo, hi), any integers; one may be in a set several times.

    Sets are small non-negative integers chosen by the caller, which memory grows with; each is there, without points,
    from the start. Not safe for use by several threads at a time.
    """

    def __init__(self) -> None:
        self._arrays = empty_arrays()
        self._head = self._arrays.head

    def __len__(self) -> int:
        """Number of points of all sets."""
        return int(self._head[POINTS])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in self._arrays)

    @property
    def arrays(self) -> Arrays:
        """What kernels work on."""
        return self._arrays

    def count(self, number: int) -> int:
        """Number of points of a set."""
        root = self._arrays.sets[number] if 0 <= number < len(self._arrays.sets) else -1
        return int(self._arrays.nodes[root + COUNT]) if root >= 0 else 0

    def add(self, sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> None:
        """Add points to sets. Those that grow by half or more are made anew, balanced; others grow point by point."""
        of, first, last = _points(sets, los, his)
        self._cover_sets(of)
        self._add(of, first, last, np.ones(len(of), np.int64))

    def remove(self, sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> None:
        """Remove points from sets, each once; KeyError if one is not there, with those before that removed."""
        of, first, last = _points(sets, los, his)
        at = 0
        while (status := crowds_remove.remove(*self._arrays, of, first, last, at)) != DONE:
            at = int(self._head[PROGRESS])
            if status != NEEDS_ROOM:
                raise KeyError(f"set {of[at]} has no point ({first[at]}, {last[at]})")
            self._make_room()

    def clear(self, number: int) -> None:
        """Remove all points of a set."""
        if 0 <= number < len(self._arrays.sets):
            crowds_fill.clear(*self._arrays, np.array([number]))

    def snap(self, sets: ArrayLike, box_lo: ArrayLike, box_hi: ArrayLike) -> tuple[I64, I64, I64]:
        """How many points of a set are in a closed box, and their bounds, for each of some boxes [n, 2].

        The bounds of no points are turned round: the least that could be is the greatest integer.
        """
        of, lo, hi = as_ints(sets), as_ints(box_lo).reshape(-1, 2), as_ints(box_hi).reshape(-1, 2)
        _check_lengths(of, lo, hi)
        counts, lows, highs = crowds_query.snap_boxes(*self._arrays, of, lo, hi)
        return counts, lows, highs

    def dump(self) -> dict[str, NDArray[Any]]:
        """Everything, for `load`."""
        numbers = np.flatnonzero(self._arrays.sets >= 0)
        starts, los, his, times = crowds_fill.dump(*self._arrays, numbers)
        return {"set": np.repeat(numbers, np.diff(starts)), "lo": los, "hi": his, "times": times}

    def load(self, state: dict[str, NDArray[Any]]) -> None:
        """Become what was dumped; only if there are no points yet."""
        if len(self):
            raise ValueError("there are points already")
        of, los, his, times = (as_ints(state[name]) for name in ("set", "lo", "hi", "times"))
        self._cover_sets(of)
        self._add(of, los, his, times)

    def _add(self, of: I64, los: I64, his: I64, times: I64) -> None:
        if len(of) >= MANY:
            top = len(self._arrays.sets)
            starts, los, his, times = crowds_fill.group(top, of, los, his, times)
            added = np.diff(starts)
            is_filled = (added > 0) & (2 * added >= self._sizes())
            rest = np.repeat(~is_filled, added)
            of = np.repeat(np.arange(top), added)
            if is_filled.any():
                self._fill(np.flatnonzero(is_filled), of[~rest], los[~rest], his[~rest], times[~rest])
            of, los, his, times = of[rest], los[rest], his[rest], times[rest]
        at = 0
        while crowds_add.add(*self._arrays, of, los, his, times, at) != DONE:
            at = int(self._head[PROGRESS])
            self._make_room()

    def _fill(self, numbers: I64, of: I64, los: I64, his: I64, times: I64) -> None:
        """Make sets anew from the points they have and some more."""
        starts, *held = crowds_fill.dump(*self._arrays, numbers)
        if len(held[0]):
            held_of = np.repeat(numbers, np.diff(starts))
            columns = ((held_of, of), (held[0], los), (held[1], his), (held[2], times))
            all_starts, los, his, times = crowds_fill.group(len(self._arrays.sets), *map(np.concatenate, columns))
            crowds_fill.clear(*self._arrays, numbers)
            starts = all_starts[np.append(numbers, numbers[-1] + 1)]
        else:
            starts = np.searchsorted(of, np.append(numbers, len(self._arrays.sets)))
        while crowds_fill.fill(*self._arrays, numbers, starts, los, his, times) != DONE:
            self._make_room()
        self._give_back_room()

    def _sizes(self) -> I64:
        """How many different points each set has."""
        roots = self._arrays.sets
        sizes = np.zeros(len(roots), np.int64)
        sizes[roots >= 0] = self._arrays.nodes[roots[roots >= 0] + SIZE]
        return sizes

    def _cover_sets(self, of: I64) -> None:
        if len(of):
            if of.min() < 0:
                raise ValueError(f"set {of.min()} must not be negative")
            before = len(self._arrays.sets)
            _cover(self._arrays.sets, int(of.max()) + 1)
            self._arrays.sets[before:] = -1

    def _make_room(self) -> None:
        """Have as much memory as is wanted by what is in `head`."""
        self._arrays = self._arrays._replace(
            m=_covering(self._arrays.m, int(self._head[TOP]), int(self._head[WANTED])),
            nodes=_covering(self._arrays.nodes, int(self._head[NODE_TOP]), int(self._head[NODES_WANTED])),
        )

    def _give_back_room(self) -> None:
        """Keep little more memory than is used."""
        self._arrays = self._arrays._replace(
            m=_fitting(self._arrays.m, int(self._head[TOP])),
            nodes=_fitting(self._arrays.nodes, int(self._head[NODE_TOP])),
        )


def _cover(array: NDArray[Any], size: int) -> None:
    """Make an array at least so long, in place; large arrays are not copied where the platform can remap pages."""
    if size > len(array):
        array.resize(max(size, len(array) + max(64, len(array) // 4)), refcheck=False)


def _memory(old: I64, used: int, size: int) -> I64:
    """A memory of some size with what is used of an old one.

    It starts with a line of the processor's cache. Not grown in place: large arrays made anew are on large pages where
    the platform has those, and where things lie in memory is what a walk takes its time for.
    """
    room = np.empty(size + LINE, np.int64)
    start = -(room.ctypes.data // room.itemsize) % LINE
    memory = room[start : start + size]
    memory[:used] = old[:used]
    return memory


def _covering(memory: I64, used: int, wanted: int) -> I64:
    """The memory, or one with more room: rather more than is wanted, as that may be for what is done only at the next point."""
    return memory if used + wanted <= len(memory) else _memory(memory, used, used + wanted + max(wanted, used) // 4)


def _fitting(memory: I64, used: int) -> I64:
    """The memory, or if that has far too much room, one with less."""
    return memory if 2 * len(memory) <= 3 * used else _memory(memory, used, used + used // 16)


def _points(sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> tuple[I64, I64, I64]:
    columns = as_ints(sets), as_ints(los), as_ints(his)
    _check_lengths(*columns)
    return columns


def _check_lengths(*columns: NDArray[Any]) -> None:
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"{', '.join(str(len(column)) for column in columns)} values, must be as many")
