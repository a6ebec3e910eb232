"""A scene of binary joins as the pipeline sees it: a catalog, subscriptions as points, rows of both tables, changes to one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.families.join.subscription import Space, space_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch, Op, TableChanges, null_rows
from tidings.model.codes import Int64Array, codes_of_doubles
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog
from tidings.workloads.join.binary import BinaryCase, BinaryScene
from tidings.workloads.join.tables import BINARY, repeated

BATCH = 10_000
_R, _S = BINARY.tables


@dataclass(frozen=True)
class JoinData:
    """Subscriptions are all there from the start. The first changes insert the rows of S, then those that R starts with."""

    case: BinaryCase
    scene: BinaryScene
    seed: int
    catalog_sql: str = BINARY.catalog_sql

    @staticmethod
    def make(size: int, changes: int, seed: int, case: BinaryCase | None = None) -> JoinData:
        case = case or BinaryCase()
        return JoinData(case, case.scene(seed=seed, subscriptions=size, changes=changes), seed)

    @property
    def size(self) -> int:
        return self.scene.size

    @cached_property
    def catalog(self) -> Catalog:
        return parse_catalog(self.catalog_sql)

    @cached_property
    def space(self) -> Space:
        """The space of the only form there is."""
        return space_of(
            Form.from_key(Door(self.catalog).place(BINARY.sql((0, 1), (0.0, 1.0, 0.0, 1.0))).form), self.catalog
        )

    def sql(self, i: int) -> str:
        return BINARY.sql((0, 1), self.scene.ranges[i].tolist())

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
            codes_of_doubles(self.scene.ranges),
            np.ones(self.size, np.bool_),
            pa.array([b""], pa.binary()).take(pa.array(np.zeros(self.size, np.int64))),
        )

    def inserts(self) -> Iterator[ChangeBatch]:
        """Rows of S, then of R, in batches of one table each."""
        partners = len(self.scene.s_b)
        for start in range(0, partners, BATCH):
            row = np.arange(start, min(start + BATCH, partners))
            yield self._batch(_S.name, start, row, np.full(len(row), Op.INSERT, np.int8))
        for start in range(0, self.scene.r_size, BATCH):
            row = np.arange(start, min(start + BATCH, self.scene.r_size))
            yield self._batch(_R.name, partners + start, row, np.full(len(row), Op.INSERT, np.int8))

    def updates(self) -> Iterator[ChangeBatch]:
        """Batches of changes to R. The last may be short."""
        first = len(self.scene.s_b) + self.scene.r_size
        for start in range(0, self.scene.changes, BATCH):
            part = slice(start, start + BATCH)
            op = np.where(self.scene.is_insert[part], Op.INSERT, Op.DELETE).astype(np.int8)
            yield self._batch(_R.name, first + start, self.scene.changed[part], op)

    def stream(self, changes: int, at_a_time: int) -> Iterator[ChangeBatch]:
        """So many changes: rows first, as far as they fit into one micro-batch, then changes of R."""
        all_rows = self.case.r_size + self.case.s_size
        case = self.case if all_rows <= at_a_time else self.case.sized(at_a_time * self.case.r_size // all_rows)
        rows = case.r_size + case.s_size
        data = JoinData.make(0, changes - rows, self.seed, case)
        yield from data.inserts()
        yield from data.updates()

    def images(self, changes: ChangeBatch) -> TableChanges:
        """The changes with their images; this takes every row to change once, which is so here."""
        has = changes.op != Op.DELETE
        rows, nothing = changes.rows, null_rows(changes.rows)
        both = pa.Table.from_batches([rows, nothing]).combine_chunks().to_batches()[0]
        at = np.arange(len(changes))
        before, after = (both.take(pa.array(np.where(is_there, at, at + len(at)))) for is_there in (~has, has))
        return TableChanges(changes.table, changes.seq, ~has, before, has, after)

    def rows(self, table: str, row: Int64Array) -> pa.RecordBatch:
        scene, schema = self.scene, self.catalog.table(table).schema
        values = (scene.r_b, scene.r_a) if table == _R.name else (scene.s_b, scene.s_c)
        note = pa.array([repeated(f"{table}, ", scene.payload)]).take(pa.array(np.zeros(len(row), np.int64)))
        return pa.RecordBatch.from_arrays(
            [pa.array(row), *(pa.array(value[row]) for value in values), note], schema=schema
        )

    def _batch(self, table: str, first: int, row: Int64Array, op: npt.NDArray[np.int8]) -> ChangeBatch:
        position = np.arange(first, first + len(row))
        return ChangeBatch(table, position, position + 1, op, self.rows(table, row))
