"""Data of the select bench: subscriptions with one equality and two ranges, and updates that move rows at random.

A range holds a tenth of its column and there are 100 kinds, so a row matches about one subscription in 10,000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch, Op
from tidings.model.codes import Int64Array, codes_of
from tidings.model.points import Event, PointBatch
from tidings.model.types import ColumnType
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

CATALOG_SQL = "CREATE TABLE items (id BIGINT PRIMARY KEY, kind TEXT, a DOUBLE, b DOUBLE, note TEXT);"
KINDS = 100
EXTENT, WIDTH = 1_000.0, 110.0
BATCH = 10_000

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SelectData:
    """`kind` [size], `lo` and `hi` [size, 2]: subscription i wants kind[i] and lo[i] <= (a, b) <= hi[i]."""

    size: int
    changes: int
    rows: int
    seed: int
    catalog: Catalog
    kind: Int64Array
    lo: FloatArray
    hi: FloatArray
    catalog_sql: str = CATALOG_SQL

    @staticmethod
    def make(size: int, changes: int, seed: int, rows: int = 100_000) -> SelectData:
        rng = np.random.default_rng([seed, size])
        lo = rng.uniform(-WIDTH, EXTENT, (size, 2))
        kind = rng.integers(KINDS, size=size)
        return SelectData(size, changes, rows, seed, parse_catalog(CATALOG_SQL), kind, lo, lo + WIDTH)

    def sql(self, i: int) -> str:
        (a_lo, b_lo), (a_hi, b_hi) = self.lo[i].tolist(), self.hi[i].tolist()
        ranges = f"a BETWEEN {a_lo!r} AND {a_hi!r} AND b BETWEEN {b_lo!r} AND {b_hi!r}"
        return f"SELECT * FROM items WHERE kind = 'k{self.kind[i]}' AND {ranges}"

    def points(self) -> PointBatch:
        """All subscriptions as events that create them, made columnar: the door would give the same."""
        placed = Door(self.catalog).place(self.sql(0))
        coords = np.empty((self.size, 4), np.int64)
        for column in range(2):
            for end, values in ((0, self.lo), (1, self.hi)):
                coords[:, 2 * column + end], _ = codes_of(ColumnType.DOUBLE, pa.array(values[:, column]))
        assert placed.coords == tuple(coords[0].tolist())
        assert placed.channels == ((f"k{self.kind[0]}",),)
        return PointBatch(
            placed.form,
            np.full(self.size, Event.CREATE, np.int8),
            np.zeros(self.size, np.int64),
            np.arange(self.size),
            pc.binary_join_element_wise("s", pc.cast(pa.array(np.arange(self.size)), pa.string()), ""),
            (_kind_names().take(pa.array(self.kind)),),
            coords,
            np.ones(self.size, np.bool_),
            pa.array([b""], pa.binary()).take(pa.array(np.zeros(self.size, np.int64))),
        )

    @cached_property
    def _row_kind(self) -> Int64Array:
        return np.random.default_rng([self.seed, 7]).integers(KINDS, size=self.rows)

    def inserts(self) -> Iterator[ChangeBatch]:
        rng = np.random.default_rng([self.seed, 8])
        for start in range(0, self.rows, BATCH):
            ids = np.arange(start, min(start + BATCH, self.rows))
            yield self._batch(rng, Op.INSERT, ids, start)

    def updates(self) -> Iterator[ChangeBatch]:
        """Batches of updates to rows picked at random, each with new random a and b. The last may be short."""
        rng = np.random.default_rng([self.seed, 9])
        for start in range(0, self.changes, BATCH):
            ids = rng.integers(self.rows, size=min(BATCH, self.changes - start))
            yield self._batch(rng, Op.UPDATE, ids, self.rows + start)

    def stream(self, changes: int, at_a_time: int) -> Iterator[ChangeBatch]:
        """So many changes: all rows first, as far as they fit into one micro-batch, then updates of those rows."""
        rows = min(at_a_time, self.rows)
        data = replace(self, rows=rows, changes=changes - rows)
        yield from data.inserts()
        yield from data.updates()

    def _batch(self, rng: np.random.Generator, op: Op, ids: Int64Array, first: int) -> ChangeBatch:
        values = rng.uniform(0, EXTENT, (2, len(ids)))
        columns = [
            pa.array(ids),
            _kind_names().take(pa.array(self._row_kind[ids])),
            *(pa.array(column) for column in values),
            pc.binary_join_element_wise("note on item ", pc.cast(pa.array(ids), pa.string()), ""),
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.catalog.table("items").schema)
        position = np.arange(first, first + len(ids))
        return ChangeBatch("items", position, position + 1, np.full(len(ids), op, np.int8), rows)


def kind_numbers(rows: pa.RecordBatch) -> Int64Array:
    """The number in each row's kind: k17 -> 17."""
    found: Int64Array = np.asarray(pc.cast(pc.utf8_slice_codeunits(rows.column("kind"), 1), pa.int64()))
    return found


def _kind_names() -> pa.Array:
    return pa.array([f"k{kind}" for kind in range(KINDS)], pa.string())
