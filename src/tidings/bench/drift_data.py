"""A timeline as the pipeline sees it: a catalog, subscriptions as points, moves as changes to rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.bench.drift_timeline import Timeline
from tidings.families.drift.subscription import Space, space_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch, Op, TableChanges
from tidings.model.codes import Int64Array, codes_of_doubles
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog
from tidings.workloads.drift.quotes import CATALOG_SQL

BATCH = 10_000
_START = np.datetime64("2026-01-05T09:30:00", "us")


@dataclass(frozen=True)
class DriftData:
    """The first move of an item inserts its row; every item has made one before any makes its second."""

    timeline: Timeline
    catalog_sql: str = CATALOG_SQL

    @cached_property
    def catalog(self) -> Catalog:
        return parse_catalog(self.catalog_sql)

    @property
    def size(self) -> int:
        return self.timeline.size

    @cached_property
    def space(self) -> Space:
        """The space of the only form there is."""
        return space_of(Form.from_key(Door(self.catalog).place(self.timeline.sql(0)).form), self.catalog)

    @cached_property
    def ids(self) -> pa.Array:
        return pc.binary_join_element_wise("s", pc.cast(pa.array(np.arange(self.size)), pa.string()), "")

    def points(self) -> PointBatch:
        """All subscriptions as events that create them, made columnar: the door would give the same."""
        timeline = self.timeline
        coords = np.zeros((self.size, 2), np.int64)
        coords[:, 0] = codes_of_doubles(timeline.member_reach)
        return PointBatch(
            self.space.key,
            np.full(self.size, Event.CREATE, np.int8),
            timeline.member_after,
            np.arange(self.size),
            self.ids,
            (pa.array(timeline.names, pa.string()).take(pa.array(timeline.member_item)),),
            coords,
            np.ones(self.size, np.bool_),
            pa.array([b""], pa.binary()).take(pa.array(np.zeros(self.size, np.int64))),
        )

    def inserts(self) -> Iterator[ChangeBatch]:
        yield self.batch(0, len(self.timeline.names))

    def updates(self) -> Iterator[ChangeBatch]:
        """Batches of moves. The last may be short."""
        for start in range(len(self.timeline.names), self.timeline.moves, BATCH):
            yield self.batch(start, min(start + BATCH, self.timeline.moves))

    def stream(self, changes: int, at_a_time: int) -> Iterator[ChangeBatch]:
        """The first so many changes."""
        assert changes <= self.timeline.moves
        for start in range(0, changes, at_a_time):
            yield self.batch(start, min(start + at_a_time, changes))

    def batch(self, start: int, stop: int) -> ChangeBatch:
        position = np.arange(start, stop)
        op = np.where(position < len(self.timeline.names), Op.INSERT, Op.UPDATE).astype(np.int8)
        return ChangeBatch("quotes", position, position + 1, op, self._rows(position))

    def images(self, start: int, stop: int) -> TableChanges:
        """Moves with what the messages made of them need: the rows as they are then, and for old ones the same."""
        rows, there = self._rows(np.arange(start, stop)), np.ones(stop - start, np.bool_)
        return TableChanges("quotes", np.arange(start, stop) + 1, there, rows, there, rows)

    def _rows(self, move: Int64Array) -> pa.RecordBatch:
        """One row per move; volume and time are made up."""
        timeline = self.timeline
        columns = [
            pa.array(timeline.names, pa.string()).take(pa.array(timeline.move_item[move])),
            pa.array(timeline.move_value[move]),
            pa.array(move * 7_919 % 100_000),
            pa.array(_START + move.astype("timedelta64[s]")),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.catalog.table("quotes").schema)
