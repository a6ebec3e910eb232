"""A scene of binary joins as the pipeline sees it: a catalog, subscriptions as points, rows of both tables, changes to one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from research.bench.dataset import Dataset, starts
from research.servers.changes import ChangeBatch, null_rows
from research.strategies.join.space import Space, space_of
from research.workloads.join.binary import BinaryCase, BinaryScene
from research.workloads.join.tables import BINARY, repeated
from tidings.model.change import Op, TableChanges
from tidings.model.codes import Int64Array, codes_of_doubles

_R, _S = BINARY.tables


@dataclass(frozen=True)
class JoinData(Dataset):
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
    def space(self) -> Space:
        return space_of(self.form, self.catalog)

    def sql(self, i: int) -> str:
        return BINARY.sql((0, 1), self.scene.ranges[i].tolist())

    def coords(self) -> Int64Array:
        return codes_of_doubles(self.scene.ranges)

    def inserts(self) -> Iterator[ChangeBatch]:
        """Rows of S, then of R."""
        partners = len(self.scene.s_b)
        for table, rows, first in ((_S, partners, 0), (_R, self.scene.r_size, partners)):
            for start, stop in starts(rows):
                yield self.batch(
                    table.name, Op.INSERT, first + start, self._columns(table.name, np.arange(start, stop))
                )

    def updates(self) -> Iterator[ChangeBatch]:
        """Changes to R."""
        scene, first = self.scene, len(self.scene.s_b) + self.scene.r_size
        for start, stop in starts(scene.changes):
            op = np.where(scene.is_insert[start:stop], Op.INSERT, Op.DELETE).astype(np.int8)
            yield self.batch(_R.name, op, first + start, self._columns(_R.name, scene.changed[start:stop]))

    def stream(self, changes: int, at_a_time: int) -> Iterator[ChangeBatch]:
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

    def _columns(self, table: str, row: Int64Array) -> list[pa.Array]:
        scene = self.scene
        values = (scene.r_b, scene.r_a) if table == _R.name else (scene.s_b, scene.s_c)
        note = pa.array([repeated(f"{table}, ", scene.payload)]).take(pa.array(np.zeros(len(row), np.int64)))
        return [pa.array(row), *(pa.array(value[row]) for value in values), note]
