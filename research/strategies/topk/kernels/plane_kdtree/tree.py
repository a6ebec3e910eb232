"""The class that owns the arrays of plane kd-trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from research.strategies.topk.kernels.plane_kdtree import build, change
from research.strategies.topk.kernels.plane_kdtree.layout import (
    DONE,
    I64,
    LINE,
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
from tidings.kernels.arguments import as_ints, check_lengths
from tidings.kernels.arrays import grow

MANY = 256
"""From so many points on, they are brought together by sets before they are added."""


class PlaneKdTree:
    """Sets of points (lo, hi), any integers, a kd-tree each; a point may be in a set several times.

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

    def add(self, sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> None:
        """Adds points to sets. Those that grow by half or more are made anew, balanced; others grow point by point."""
        of, first, last = _points(sets, los, his)
        self._cover_sets(of)
        self._add(of, first, last, np.ones(len(of), np.int64))

    def remove(self, sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> None:
        """Removes points from sets, each once; KeyError if one is not there, with those before that removed."""
        of, first, last = _points(sets, los, his)
        at = 0
        while (status := change.remove(*self._arrays, of, first, last, at)) != DONE:
            at = int(self._head[PROGRESS])
            if status != NEEDS_ROOM:
                raise KeyError(f"set {of[at]} has no point ({first[at]}, {last[at]})")
            self._make_room()

    def dump(self) -> dict[str, NDArray[Any]]:
        """Everything, for `load`."""
        numbers = np.flatnonzero(self._arrays.sets >= 0)
        starts, los, his, times = build.dump(*self._arrays, numbers)
        return {"set": np.repeat(numbers, np.diff(starts)), "lo": los, "hi": his, "times": times}

    def load(self, state: dict[str, NDArray[Any]]) -> None:
        """Becomes what was dumped; only if there are no points yet."""
        if len(self):
            raise ValueError("there are points already")
        of, los, his, times = (as_ints(state[name]) for name in ("set", "lo", "hi", "times"))
        self._cover_sets(of)
        self._add(of, los, his, times)

    def _add(self, of: I64, los: I64, his: I64, times: I64) -> None:
        if len(of) >= MANY:
            top = len(self._arrays.sets)
            starts, los, his, times = build.group(top, of, los, his, times)
            added = np.diff(starts)
            is_filled = (added > 0) & (2 * added >= self._sizes())
            rest = np.repeat(~is_filled, added)
            of = np.repeat(np.arange(top), added)
            if is_filled.any():
                self._fill(np.flatnonzero(is_filled), of[~rest], los[~rest], his[~rest], times[~rest])
            of, los, his, times = of[rest], los[rest], his[rest], times[rest]
        at = 0
        while change.add(*self._arrays, of, los, his, times, at) != DONE:
            at = int(self._head[PROGRESS])
            self._make_room()

    def _fill(self, numbers: I64, of: I64, los: I64, his: I64, times: I64) -> None:
        """Makes sets anew from the points they have and some more."""
        starts, *held = build.dump(*self._arrays, numbers)
        if len(held[0]):
            held_of = np.repeat(numbers, np.diff(starts))
            columns = ((held_of, of), (held[0], los), (held[1], his), (held[2], times))
            all_starts, los, his, times = build.group(len(self._arrays.sets), *map(np.concatenate, columns))
            build.clear(*self._arrays, numbers)
            starts = all_starts[np.append(numbers, numbers[-1] + 1)]
        else:
            starts = np.searchsorted(of, np.append(numbers, len(self._arrays.sets)))
        while build.fill(*self._arrays, numbers, starts, los, his, times) != DONE:
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
            grow(self._arrays.sets, int(of.max()) + 1)
            self._arrays.sets[before:] = -1

    def _make_room(self) -> None:
        """Gets as much memory as a kernel has left word in `head`."""
        self._arrays = self._arrays._replace(
            m=_covering(self._arrays.m, int(self._head[TOP]), int(self._head[WANTED])),
            nodes=_covering(self._arrays.nodes, int(self._head[NODE_TOP]), int(self._head[NODES_WANTED])),
        )

    def _give_back_room(self) -> None:
        """Keeps little more memory than is used."""
        self._arrays = self._arrays._replace(
            m=_fitting(self._arrays.m, int(self._head[TOP])),
            nodes=_fitting(self._arrays.nodes, int(self._head[NODE_TOP])),
        )


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
    check_lengths(*columns)
    return columns
