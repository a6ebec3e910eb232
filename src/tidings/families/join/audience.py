"""Who listens: points by place, and what can be asked about all of them at once."""

from __future__ import annotations

import numpy as np

from tidings.families.join.subscription import Space
from tidings.kernels.gaps import Gaps
from tidings.kernels.point_index import PointIndex
from tidings.kernels.stabs import Stabs
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.region import Regions, TagArray


class Audience:
    """Points of a space, known by slot, and the ranges they have on the first range column of each side."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._forest = PointIndex(space.dims)
        self._first = [side.first + 2 * side.ranged[0] if side.ranged else None for side in space.sides]
        self._stabs = [Stabs() for _ in space.sides]
        self._gaps = [Gaps() for _ in space.sides]
        self._coords = np.empty((0, space.dims), np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, slots: Int64Array, coords: Int64Array) -> None:
        top = int(slots.max(initial=-1)) + 1
        if top > len(self._coords):
            grown = np.empty((max(top, 2 * len(self._coords)), self.space.dims), np.int64)
            grown[: len(self._coords)] = self._coords
            self._coords = grown
        self._coords[slots] = coords
        self._count += len(slots)
        self._forest.add_many(np.zeros(len(slots), np.int64), slots, coords)
        for side, (lo, hi) in self._ranges(coords):
            self._stabs[side].add(lo, hi)
            self._gaps[side].add(lo, hi)

    def remove(self, slots: Int64Array) -> None:
        for side, (lo, hi) in self._ranges(self._coords[slots]):
            self._stabs[side].remove(lo, hi)
            self._gaps[side].remove(lo, hi)
        self._forest.remove_many(slots)
        self._count -= len(slots)

    def any(self, lo: Int64Array, hi: Int64Array) -> BoolArray:
        """Whether anybody lies in each of the boxes."""
        return self._forest.any(np.zeros(len(lo), np.int64), lo, hi)

    def few(self, lo: Int64Array, hi: Int64Array, most: int) -> tuple[Int64Array, Int64Array]:
        """(how many lie in each of the boxes, their slots [box, most]); the number is one too many where they are more."""
        counts, slots = self._forest.some(np.zeros(len(lo), np.int64), lo, hi, most)
        return counts, slots.astype(np.int64)

    def found(self, lo: Int64Array, hi: Int64Array) -> tuple[Int64Array, Int64Array]:
        """(starts, slots) of those who lie in each of the boxes."""
        count = len(lo)
        tags, starts = np.ones(count, np.uint8), np.arange(count + 1)
        ends, slots, _ = self._forest.stab(np.zeros(count, np.int64), lo, hi, tags, starts)
        return ends, slots.astype(np.int64)

    def affected(self, regions: Regions) -> tuple[Int64Array, Int64Array, TagArray]:
        """(message, slot, tags) of everybody in the regions."""
        nowhere = np.zeros(len(regions), np.int64)
        starts, slots, tags = self._forest.stab(nowhere, regions.lo, regions.hi, regions.tags, regions.starts)
        return np.repeat(np.arange(len(regions)), np.diff(starts)), slots.astype(np.int64), tags

    def coords(self, slots: Int64Array) -> Int64Array:
        return self._coords[slots]

    def marks(self, side: int) -> Int64Array:
        """Numbers such that everybody's range on the side holds one of them."""
        return self._stabs[side].anchors()

    def meets(self, side: int, lo_from: Int64Array, at: Int64Array, hi_to: Int64Array) -> BoolArray:
        """Whether anybody's range on the side holds `at` and lies within the gap."""
        return self._gaps[side].meets(lo_from, at, hi_to)

    def _ranges(self, coords: Int64Array) -> list[tuple[int, tuple[Int64Array, Int64Array]]]:
        """Per side that has a range column, those ranges that hold anything."""
        found = []
        for side, first in enumerate(self._first):
            if first is not None:
                lo, hi = coords[:, first], coords[:, first + 1]
                found.append((side, (lo[lo <= hi], hi[lo <= hi])))
        return found
