"""The obvious ways to do the select bench without Tidings: scans with numpy, a join per batch in DuckDB or Spark SQL.

Each peer holds all subscriptions and is given the new rows of changes; it must find, for each, the ids of the subscriptions
that match. That is less than Tidings does, which also looks for those that matched the old row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from research.bench.peers import PeerWays, SparkPeer, Way
from research.bench.select.data import KINDS, SelectData, kind_names, kind_numbers
from tidings.bench.peers import DuckDbPeer, Peer
from tidings.model.codes import Int64Array

_MATCHES = """
SELECT /*+ BROADCAST(c) */ c.row, s.id FROM changes c JOIN subscriptions s
ON c.kind = s.kind AND c.a BETWEEN s.a_lo AND s.a_hi AND c.b BETWEEN s.b_lo AND s.b_hi
"""


class NumpyScan(Peer):
    """Compares every change with every subscription or, if these are kept by kind, with those to its kind."""

    def __init__(self, data: SelectData, *, is_by_kind: bool = False) -> None:
        self._is_by_kind = is_by_kind
        kind = data.kind.astype(np.int16)
        groups = [np.flatnonzero(kind == number) for number in range(KINDS)] if is_by_kind else [np.arange(data.size)]
        ends = [column for i in range(2) for column in (data.lo[:, i], data.hi[:, i])]
        self._groups = [(ids, kind[ids], [np.ascontiguousarray(column[ids]) for column in ends]) for ids in groups]
        self._found: list[Int64Array] = []

    def feed(self, part: pa.RecordBatch) -> None:
        values = zip(
            kind_numbers(part).tolist(), part.column("a").to_pylist(), part.column("b").to_pylist(), strict=True
        )
        self._found = [self._one(*value) for value in values]

    def found(self) -> list[int]:
        return [len(ids) for ids in self._found]

    def _one(self, kind: int, a: float, b: float) -> Int64Array:
        ids, kinds, (a_lo, a_hi, b_lo, b_hi) = self._groups[kind if self._is_by_kind else 0]
        is_in = (a_lo <= a) & (a <= a_hi) & (b_lo <= b) & (b <= b_hi)
        found: Int64Array = ids[is_in if self._is_by_kind else is_in & (kinds == kind)]
        return found


class DuckDbJoin(DuckDbPeer):
    """A join of the batch with the table of subscriptions."""

    def __init__(self, data: SelectData) -> None:
        super().__init__({"subscriptions": _table(data)})
        self._rows = 0
        self._found: Any = None

    def feed(self, part: pa.RecordBatch) -> None:
        self._rows = part.num_rows
        self.connection.register("changes", _numbered(part))
        self._found = self.query(_MATCHES)

    def found(self) -> list[int]:
        return _counts(self._found["row"], self._rows)


class SparkJoin(SparkPeer):
    """A join of the batch, broadcast, with the cached DataFrame of subscriptions."""

    def __init__(self, data: SelectData, session: Any) -> None:
        super().__init__(session, {"subscriptions": _table(data)})
        self._rows = 0

    def feed(self, part: pa.RecordBatch) -> None:
        self._rows = part.num_rows
        self.give("changes", _numbered(part))
        self.run(_MATCHES)

    def found(self) -> list[int]:
        return _counts(self.query(_MATCHES)["row"], self._rows)


def add_to(peers: PeerWays) -> None:
    peers.ways.append(Way("numpy.scan", "peer: numpy, scan", 10, NumpyScan))
    label = "peer: numpy, scan within the kind"
    peers.ways.append(Way("numpy.by_kind", label, 1_000, lambda data: NumpyScan(data, is_by_kind=True)))
    if peers.has("duckdb"):
        peers.ways.append(Way("duckdb.10k", "peer: DuckDB, join 10k changes at a time", 10_000, DuckDbJoin))
    if session := peers.spark():
        for key, batch in (("10k", 10_000), ("100", 100)):
            label = f"peer: Spark SQL, join {key} changes at a time"
            peers.ways.append(Way(f"spark.{key}", label, batch, lambda data: SparkJoin(data, session)))


def _counts(row: Int64Array, rows: int) -> list[int]:
    found: list[int] = np.bincount(row, minlength=rows).tolist()
    return found


def _table(data: SelectData) -> pa.Table:
    """The subscriptions as a table (id, kind, a_lo, a_hi, b_lo, b_hi)."""
    ends = {
        f"{name}_{end}": values[:, i]
        for i, name in enumerate("ab")
        for end, values in (("lo", data.lo), ("hi", data.hi))
    }
    columns = {"id": np.arange(data.size), "kind": kind_names().take(pa.array(data.kind)), **ends}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _numbered(rows: pa.RecordBatch) -> pa.Table:
    columns = {"row": pa.array(np.arange(rows.num_rows)), **{name: rows.column(name) for name in ("kind", "a", "b")}}
    return pa.table(columns)
