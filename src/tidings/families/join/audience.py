"""Who listens: the points of a join form, by name and by place, and what can be asked about all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.families.join.subscription import Space
from tidings.families.targets import IndexedTargets
from tidings.kernels.gaps import Gaps
from tidings.kernels.stabs import Stabs
from tidings.model.channel import ChannelKey
from tidings.model.codes import BoolArray, Int64Array


class Audience(IndexedTargets):
    """Points, and the ranges they have on the first range column of each side."""

    def __init__(self, space: Space) -> None:
        super().__init__(space.dims)
        self._first = [side.first + 2 * side.ranged[0] if side.ranged else None for side in space.sides]
        self._stabs = [Stabs() for _ in space.sides]
        self._gaps = [Gaps() for _ in space.sides]

    def __len__(self) -> int:
        return len(self._slots)

    def any(self, lo: Int64Array, hi: Int64Array) -> BoolArray:
        """Whether anybody lies in each of the boxes."""
        return self._forest.any(np.zeros(len(lo), np.int64), lo, hi)

    def found(self, lo: Int64Array, hi: Int64Array) -> tuple[Int64Array, Int64Array]:
        """(starts, slots) of those who lie in each of the boxes."""
        count = len(lo)
        tags, starts = np.ones(count, np.uint8), np.arange(count + 1)
        ends, slots, _ = self._forest.stab(np.zeros(count, np.int64), lo, hi, tags, starts)
        return ends, slots.astype(np.int64)

    def coords(self, slots: Int64Array) -> Int64Array:
        return self._coords[slots]

    def some(self, count: int) -> Int64Array:
        """The points of a few, spread over all."""
        slots = np.fromiter(self._slots.values(), np.int64, len(self._slots))
        return self._coords[slots[:: max(1, len(slots) // count)]]

    def marks(self, side: int) -> Int64Array:
        """Numbers such that everybody's range on the side holds one of them."""
        return self._stabs[side].anchors()

    def meets(self, side: int, lo_from: Int64Array, at: Int64Array, hi_to: Int64Array) -> BoolArray:
        """Whether anybody's range on the side holds `at` and lies within the gap."""
        return self._gaps[side].meets(lo_from, at, hi_to)

    def _add(self, ids: Sequence[str], keys: Sequence[ChannelKey], coords: Int64Array) -> Int64Array:
        for side, (lo, hi) in self._ranges(coords):
            self._stabs[side].add(lo, hi)
            self._gaps[side].add(lo, hi)
        return super()._add(ids, keys, coords)

    def _remove(self, slots: list[int]) -> None:
        for side, (lo, hi) in self._ranges(self._coords[slots]):
            self._stabs[side].remove(lo, hi)
            self._gaps[side].remove(lo, hi)
        super()._remove(slots)

    def _ranges(self, coords: Int64Array) -> list[tuple[int, tuple[Int64Array, Int64Array]]]:
        """Per side that has a range column, those ranges that hold anything."""
        found = []
        for side, first in enumerate(self._first):
            if first is not None:
                lo, hi = coords[:, first], coords[:, first + 1]
                found.append((side, (lo[lo <= hi], hi[lo <= hi])))
        return found
