"""A scene as the pipeline sees it: a catalog, subscriptions as points, changes to rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.bench.topk_player import points_of
from tidings.families.spec import Form
from tidings.families.topk.subscription import Space, space_of
from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch, Op
from tidings.model.codes import Int64Array
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog
from tidings.workloads.draws import FloatArray
from tidings.workloads.topk.cases import UNIFORM
from tidings.workloads.topk.scene import Scene, scene_of
from tidings.workloads.topk.table import ITEMS

BATCH = 10_000


@dataclass(frozen=True)
class TopkData:
    """Subscriptions are all there from the start. The first changes insert the rows."""

    scene: Scene
    seed: int
    catalog_sql: str = ITEMS.catalog_sql

    @staticmethod
    def make(size: int, changes: int, seed: int, rows: int = BATCH) -> TopkData:
        """Rows and ranges anywhere, scores that jump; `changes` come after the rows."""
        return TopkData(scene_of(UNIFORM, seed=seed, rows=rows, subscriptions=size, changes=changes), seed)

    @property
    def size(self) -> int:
        return self.scene.size

    @cached_property
    def catalog(self) -> Catalog:
        return parse_catalog(self.catalog_sql)

    @cached_property
    def space(self) -> Space:
        """The space of the only form there is."""
        return space_of(Form.from_key(Door(self.catalog).place(ITEMS.sql(0, 1, self.scene.k)).form), self.catalog)

    def sql(self, i: int) -> str:
        low, high = self.scene.ranges[i].tolist()
        return ITEMS.sql(low, high, self.scene.k)

    @cached_property
    def ids(self) -> pa.Array:
        return pc.binary_join_element_wise("s", pc.cast(pa.array(np.arange(self.size)), pa.string()), "")

    def points(self) -> PointBatch:
        """All subscriptions as events that create them, made columnar: the door would give the same."""
        return PointBatch(
            self.space.key,
            np.full(self.size, Event.CREATE, np.int8),
            np.zeros(self.size, np.int64),
            np.arange(self.size),
            self.ids,
            (),
            points_of(self.scene),
            np.ones(self.size, np.bool_),
            pa.array([b""], pa.binary()).take(pa.array(np.zeros(self.size, np.int64))),
        )

    def inserts(self) -> Iterator[ChangeBatch]:
        for start in range(0, self.scene.rows, BATCH):
            row = np.arange(start, min(start + BATCH, self.scene.rows))
            yield self._batch(Op.INSERT, start, row, self.scene.score[row])

    def updates(self) -> Iterator[ChangeBatch]:
        """Batches of changes. The last may be short."""
        for start in range(0, self.scene.changes, BATCH):
            part = slice(start, start + BATCH)
            yield self._batch(Op.UPDATE, self.scene.rows + start, self.scene.changed[part], self.scene.new_score[part])

    def stream(self, changes: int, at_a_time: int) -> Iterator[ChangeBatch]:
        """So many changes: rows first, as far as they fit into one micro-batch, then updates of those rows."""
        rows = min(at_a_time, self.scene.rows)
        data = TopkData.make(0, changes - rows, self.seed, rows)
        yield from data.inserts()
        yield from data.updates()

    def rows(self, row: Int64Array, score: FloatArray) -> pa.RecordBatch:
        columns = [pa.array(row), pa.array(self.scene.place[row]), pa.array(score)]
        return pa.RecordBatch.from_arrays(columns, schema=self.catalog.table(ITEMS.name).schema)

    def _batch(self, op: Op, first: int, row: Int64Array, score: FloatArray) -> ChangeBatch:
        position = np.arange(first, first + len(row))
        return ChangeBatch(ITEMS.name, position, position + 1, np.full(len(row), op, np.int8), self.rows(row, score))
