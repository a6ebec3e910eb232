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

from research.bench.dataset import Dataset, starts
from research.servers.changes import ChangeBatch
from tidings.model.change import Op
from tidings.model.codes import Int64Array, codes_of_doubles

CATALOG_SQL = "CREATE TABLE items (id BIGINT PRIMARY KEY, kind TEXT, a DOUBLE, b DOUBLE, note TEXT);"
KINDS = 100
EXTENT, WIDTH = 1_000.0, 110.0

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SelectData(Dataset):
    """`kind` [size], `lo` and `hi` [size, 2]: subscription i wants kind[i] and lo[i] <= (a, b) <= hi[i]."""

    changes: int
    rows: int
    seed: int
    kind: Int64Array
    lo: FloatArray
    hi: FloatArray
    catalog_sql: str = CATALOG_SQL

    @staticmethod
    def make(size: int, changes: int, seed: int, rows: int = 100_000) -> SelectData:
        rng = np.random.default_rng([seed, size])
        lo = rng.uniform(-WIDTH, EXTENT, (size, 2))
        kind = rng.integers(KINDS, size=size)
        return SelectData(changes, rows, seed, kind, lo, lo + WIDTH)

    @property
    def size(self) -> int:
        return len(self.kind)

    def sql(self, i: int) -> str:
        (a_lo, b_lo), (a_hi, b_hi) = self.lo[i].tolist(), self.hi[i].tolist()
        ranges = f"a BETWEEN {a_lo!r} AND {a_hi!r} AND b BETWEEN {b_lo!r} AND {b_hi!r}"
        return f"SELECT * FROM items WHERE kind = 'k{self.kind[i]}' AND {ranges}"

    def coords(self) -> Int64Array:
        # (a_lo, a_hi, b_lo, b_hi)
        return codes_of_doubles(np.stack([self.lo, self.hi], axis=2).reshape(self.size, 4))

    def channel(self) -> tuple[pa.Array, ...]:
        return (kind_names().take(pa.array(self.kind)),)

    @cached_property
    def _row_kind(self) -> Int64Array:
        return np.random.default_rng([self.seed, 7]).integers(KINDS, size=self.rows)

    def inserts(self) -> Iterator[ChangeBatch]:
        rng = np.random.default_rng([self.seed, 8])
        for start, stop in starts(self.rows):
            yield self._changes(rng, Op.INSERT, np.arange(start, stop), start)

    def updates(self) -> Iterator[ChangeBatch]:
        """Updates to rows picked at random, each with new random a and b."""
        rng = np.random.default_rng([self.seed, 9])
        for start, stop in starts(self.changes):
            ids = rng.integers(self.rows, size=stop - start)
            yield self._changes(rng, Op.UPDATE, ids, self.rows + start)

    def stream(self, changes: int, at_a_time: int) -> Iterator[ChangeBatch]:
        rows = min(at_a_time, self.rows)
        data = replace(self, rows=rows, changes=changes - rows)
        yield from data.inserts()
        yield from data.updates()

    def _changes(self, rng: np.random.Generator, op: Op, ids: Int64Array, first: int) -> ChangeBatch:
        values = rng.uniform(0, EXTENT, (2, len(ids)))
        columns = [
            pa.array(ids),
            kind_names().take(pa.array(self._row_kind[ids])),
            *(pa.array(column) for column in values),
            pc.binary_join_element_wise("note on item ", pc.cast(pa.array(ids), pa.string()), ""),
        ]
        return self.batch("items", op, first, columns)


def kind_numbers(rows: pa.RecordBatch) -> Int64Array:
    """The number in each row's kind: k17 -> 17."""
    found: Int64Array = np.asarray(pc.cast(pc.utf8_slice_codeunits(rows.column("kind"), 1), pa.int64()))
    return found


def kind_names() -> pa.Array:
    return pa.array([f"k{kind}" for kind in range(KINDS)], pa.string())
