"""Subscriber index: points of subscriptions by coordinates, with queries for many boxes at once."""

from __future__ import annotations

import numpy as np

from research.strategies.join.kernels.contained_intervals import ContainedIntervals
from research.strategies.join.kernels.piercing_set import PiercingSet
from research.strategies.join.space import Space
from tidings.kernels.arrays import covering
from tidings.kernels.point_index import PointIndex
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.region import Regions, TagArray


class SubscriberIndex:
    """Points of a space by slot, and their ranges on the first range column of each side."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._forest = PointIndex(space.dims)
        self._first = [side.first + 2 * side.ranged[0] if side.ranged else None for side in space.sides]
        self._piercing = [PiercingSet() for _ in space.sides]
        self._contained = [ContainedIntervals() for _ in space.sides]
        self._coords = np.empty((0, space.dims), np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, slots: Int64Array, coords: Int64Array) -> None:
        self._coords = covering(self._coords, slots)
        self._coords[slots] = coords
        self._count += len(slots)
        self._forest.add_many(np.zeros(len(slots), np.int64), slots, coords)
        for side, (lo, hi) in self._ranges(coords):
            self._piercing[side].add(lo, hi)
            self._contained[side].add(lo, hi)

    def remove(self, slots: Int64Array) -> None:
        for side, (lo, hi) in self._ranges(self._coords[slots]):
            self._piercing[side].remove(lo, hi)
            self._contained[side].remove(lo, hi)
        self._forest.remove_many(slots)
        self._count -= len(slots)

    def any(self, lo: Int64Array, hi: Int64Array) -> BoolArray:
        """Whether each of the boxes contains a point, [boxes]. lo, hi: [boxes, dims]."""
        return self._forest.any(np.zeros(len(lo), np.int64), lo, hi)

    def few(self, lo: Int64Array, hi: Int64Array, most: int) -> tuple[Int64Array, Int64Array]:
        """(number of points in each of the boxes, most + 1 if there are more; their slots, [boxes, most])."""
        counts, slots = self._forest.some(np.zeros(len(lo), np.int64), lo, hi, most)
        return counts, slots.astype(np.int64)

    def found(self, lo: Int64Array, hi: Int64Array) -> tuple[Int64Array, Int64Array]:
        """(starts, slots) of the points in each of the boxes."""
        count = len(lo)
        tags, starts = np.ones(count, np.uint8), np.arange(count + 1)
        ends, slots, _ = self._forest.stab(np.zeros(count, np.int64), lo, hi, tags, starts)
        return ends, slots.astype(np.int64)

    def affected(self, regions: Regions) -> tuple[Int64Array, Int64Array, TagArray]:
        """(message, slot, tags), all [pairs], of all points in the regions."""
        nowhere = np.zeros(len(regions), np.int64)
        starts, slots, tags = self._forest.stab(nowhere, regions.lo, regions.hi, regions.tags, regions.starts)
        return np.repeat(np.arange(len(regions)), np.diff(starts)), slots.astype(np.int64), tags

    def coords(self, slots: Int64Array) -> Int64Array:
        return self._coords[slots]

    def marks(self, side: int) -> Int64Array:
        """A few numbers such that every range on the side contains one of them."""
        return self._piercing[side].anchors()

    def any_within(self, side: int, lo_from: Int64Array, at: Int64Array, hi_to: Int64Array) -> BoolArray:
        """Whether a range on the side contains at[i] and lies within lo_from[i] .. hi_to[i], [at]."""
        return self._contained[side].any_within(lo_from, at, hi_to)

    def _ranges(self, coords: Int64Array) -> list[tuple[int, tuple[Int64Array, Int64Array]]]:
        """(side, (lower ends, upper ends) of the ranges that are not empty) for each side with a range column."""
        found = []
        for side, first in enumerate(self._first):
            if first is not None:
                lo, hi = coords[:, first], coords[:, first + 1]
                found.append((side, (lo[lo <= hi], hi[lo <= hi])))
        return found
