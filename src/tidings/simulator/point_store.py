"""The points of all brokers: which of a cell's points an event is for.

Each broker would have an index of its own points. Here one index holds all of them and answers for many messages at a time;
an answer is divided among cells, and a broker is given those of its own cells only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.kernels.arrays import I64, runs_of
from tidings.kernels.point_index import PointIndex
from tidings.network.messages import Event
from tidings.network.zones import ZoneMap

_NOBODY = np.zeros(0, np.int64)
_POINT_BITS = 32


class PointStore:
    def __init__(self, coords: I64, cell_of: I64) -> None:
        """coords [n, D], and the cell of each point."""
        self._coords = coords
        self._cell_of = cell_of
        self._mapped = cell_of.copy()
        """The cell of each point by the zone map, which knows of a move when it is over."""
        self._owner = self._mapped
        self._index = PointIndex(coords.shape[1])
        count = len(coords)
        self._index.add_many(np.zeros(count, np.int64), np.arange(count, dtype=np.int32), coords)
        self._changes = 0
        self._found: dict[int, tuple[int, I64, dict[int, tuple[int, int]]]] = {}
        """Event -> changes of cells until then, points by cell, and where the points of a cell are"""

    def look_up(self, events: Sequence[Event]) -> None:
        """Finds the points of events that are about to be published."""
        starts = np.concatenate([[0], np.cumsum([len(event.lo) for event in events])]).astype(np.int64)
        lo = np.concatenate([event.lo for event in events])
        hi = np.concatenate([event.hi for event in events])
        channels, tags = np.zeros(len(events), np.int64), np.zeros(len(lo), np.uint8)
        ends, slots, _ = self._index.stab(channels, lo, hi, tags, starts)
        for event, start, stop in zip(events, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            # By cell, then by number: one sort of one integer is many times faster than a stable sort by cells.
            both = (self._cell_of[slots[start:stop]] << _POINT_BITS) | slots[start:stop]
            both.sort()
            cells, points = both >> _POINT_BITS, both & ((1 << _POINT_BITS) - 1)
            first, last = runs_of(cells)
            at = zip(first.tolist(), last.tolist(), strict=True)
            found = dict(zip(cells[first].tolist(), at, strict=True))
            self._found[event.seq] = self._changes, points, found

    def reached(self, event: Event) -> I64:
        """All points that an event is for."""
        return self._found[event.seq][1]

    def forget(self, event: Event) -> None:
        del self._found[event.seq]

    def find(self, event: Event, cell: int) -> I64:
        found = self._found.get(event.seq)
        if found is None:
            return _NOBODY
        points: I64
        changes, points, cells = found
        if changes == self._changes or cell in cells:
            first, last = cells.get(cell, (0, 0))
            return points[first:last]
        # The cell is a part of one that has been divided since.
        is_here = self._cell_of[points] == cell
        return points.compress(is_here)

    def divide(self, cell: int, low: int, high: int, dim: int, cut: int) -> tuple[I64, I64]:
        points = np.flatnonzero(self._cell_of == cell)
        is_low = self._coords[points, dim] <= cut
        lower, upper = points[is_low], points[~is_low]
        self._cell_of[lower], self._cell_of[upper] = low, high
        self._changes += 1
        return lower, upper

    def coordinates(self, points: I64) -> I64:
        coords: I64 = self._coords[points]
        return coords

    def in_cells(self, cells: Sequence[int]) -> dict[int, I64]:
        """The points of each of these cells."""
        order = np.argsort(self._cell_of, kind="stable")
        ends = self._cell_of[order]
        return {cell: order[np.searchsorted(ends, cell) : np.searchsorted(ends, cell, side="right")] for cell in cells}

    def follow(self, zone_map: ZoneMap) -> None:
        """From now on points lie where this map, the next of those known, has them: cells move before maps change."""
        moved = np.flatnonzero(~np.isin(self._mapped, zone_map.cell))
        for cell, lo, hi in zip(zone_map.cell.tolist(), zone_map.lo, zone_map.hi, strict=True):
            if not len(moved):
                break
            coords = self._coords[moved]
            is_here = ((coords >= lo) & (coords <= hi)).all(axis=1)
            self._mapped[moved[is_here]] = cell
            moved = moved[~is_here]
        owners = np.zeros(int(zone_map.cell.max()) + 1, np.int64)
        owners[zone_map.cell] = zone_map.owner
        self._owner = owners[self._mapped]

    def bounds(self) -> dict[int, tuple[I64, I64]]:
        """For each cell of the map that has points, their least and greatest coordinates."""
        order = np.argsort(self._mapped, kind="stable")
        grouped = self._mapped[order]
        first, _ = runs_of(grouped)
        if not len(first):
            return {}
        coords = self._coords[order]
        lo, hi = np.minimum.reduceat(coords, first, axis=0), np.maximum.reduceat(coords, first, axis=0)
        return dict(zip(grouped[first].tolist(), zip(lo, hi, strict=True), strict=True))

    def by_owner(self, event: Event) -> dict[int, int]:
        """How many points of each owner, by the map, an event is for."""
        owners, counts = np.unique(self._owner[self.reached(event)], return_counts=True)
        return dict(zip(owners.tolist(), counts.tolist(), strict=True))
