"""The sender `regions`: rows go to the places that have points in their regions of subscription space.

Families whose rows say by themselves where they matter (`tidings.families.optional.Regional`) are not evaluated here: which
subscriptions are told is found out where they are. All others are evaluated, as by the sender `entered`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tidings.families.optional import Regional, RegionSpace
from tidings.families.registry import family, family_of, is_regional, spec_of
from tidings.kernels.events import CHANGE, Told
from tidings.kernels.point_index import PointIndex
from tidings.kernels.rows import I64, NONE
from tidings.model.catalog import Catalog, Table
from tidings.model.points import Event, PointBatch
from tidings.pipeline.edge.holders import Entered
from tidings.pipeline.edge.sender import Sender
from tidings.pipeline.replica.batch import Batch
from tidings.pipeline.table_changes import versions_at

_AXES_MAX = 24
"""Columns of a table that an index of points can tell apart."""
_ROWS_AT_ONCE = 65_536


class RegionSender(Sender):
    """Rows at the centre, and an index of the points of each space."""

    def __init__(
        self,
        catalog: Catalog,
        places: int,
        place_of: Callable[[str], int],
        *,
        by_commit: bool = True,
        is_stream: bool = False,
    ) -> None:
        super().__init__(catalog, places, place_of, by_commit=by_commit, is_stream=is_stream)
        self._catalog = catalog
        self._points_in: dict[RegionSpace, PointIndex] = {}
        """Points by the slots of their subscriptions."""
        self._index_of: dict[int, PointIndex] = {}
        """The index that has the point of a slot."""
        self._new: list[tuple[RegionSpace, I64, I64]] = []
        """Space, slots and coordinates of subscriptions that are created in the micro-batch."""
        self._gone: set[int] = set()

    def evaluates(self, form_key: str) -> bool:
        return not is_routed(form_key, self._catalog)

    def moved(self, points: PointBatch, slots: I64) -> None:
        super().moved(points, slots)
        if self.evaluates(points.form):
            return
        is_new = points.event == np.int8(Event.CREATE)
        self._enter(points.take(is_new), slots[is_new])
        self._gone.update(slots[~is_new].tolist())

    def load(self, state: Any, *, knows_holders: bool) -> None:
        super().load(state, knows_holders=knows_holders)
        for points, slots in self.replica.living_points():
            if not self.evaluates(points.form):
                self._enter(points, slots)
        self._add_points()

    def _enter(self, points: PointBatch, slots: I64) -> None:
        """Takes the points of new subscriptions."""
        for own in _regional(family_of(points.form)[0].name).in_space(points, self._catalog):
            self._new.append((own.space, slots[own.at], own.coords))

    def _entered(self, batch: Batch, told: Sequence[tuple[str, Told]]) -> list[Entered]:
        found = self._evaluated(told)
        events = batch.events
        assert events is not None
        new = self._add_points()
        store = self.replica.store
        for space, index in self._points_in.items():
            is_own = (events.kind == CHANGE) & (events.table == store.number(space.table.name)) & (events.new != NONE)
            at = np.flatnonzero(is_own)
            if len(at) and len(index):
                found.append(self._met(space, index, at, events.new[at]))
        for space, index in new.items():
            # What changes in this micro-batch has been sent to the new points too. They need what was there before it.
            for versions in self._rows_before(space.table):
                found.append(self._met(space, index, np.zeros(len(versions), np.int64), versions))
        for slot in self._gone:
            self._index_of.pop(slot).remove(slot)
        self._gone.clear()
        return found

    def _add_points(self) -> dict[RegionSpace, PointIndex]:
        """Adds the new points. Returns them once more, in indexes of their own."""
        apart: dict[RegionSpace, PointIndex] = {}
        for space, slots, coords in self._new:
            channels = np.zeros(len(slots), np.int64)
            for indexes in (self._points_in, apart):
                index = indexes.setdefault(space, PointIndex(2 * len(space.axes)))
                index.add_many(channels, slots, coords)
            self._index_of.update(dict.fromkeys(slots.tolist(), self._points_in[space]))
        self._new.clear()
        return apart

    def _met(self, space: RegionSpace, index: PointIndex, event: I64, versions: I64) -> Entered:
        """The versions whose regions meet points of an index, with the places of these."""
        regions = _regional(space.family).regions(space, self.replica.store, versions)
        channels = np.zeros(len(versions), np.int64)
        starts, slots, _ = index.stab(channels, regions.lo, regions.hi, regions.tags, regions.starts)
        places = np.zeros((len(versions), self.holders.words), np.int64)
        region, place = np.repeat(np.arange(len(versions)), np.diff(starts)), self._place[slots]
        np.bitwise_or.at(places, (region, place >> 6), np.int64(1) << (place & 63))
        met = places.any(axis=1)
        return event[met], versions[met], places[met]

    def _rows_before(self, table: Table) -> Iterator[I64]:
        """The rows that a table had before the micro-batch, some at a time."""
        versions = versions_at(self.replica.store, table, NONE)
        for start in range(0, len(versions), _ROWS_AT_ONCE):
            yield versions[start : start + _ROWS_AT_ONCE]


def _regional(name: str) -> Regional:
    found = family(name)
    assert isinstance(found, Regional)
    return found


@lru_cache(maxsize=4096)
def is_routed(form_key: str, catalog: Catalog) -> bool:
    """Whether rows find the subscriptions of a form by regions."""
    tables = spec_of(form_key, catalog).tables
    return is_regional(form_key) and all(len(catalog.table(name).axes) <= _AXES_MAX for name in tables)
