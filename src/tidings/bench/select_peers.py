"""The obvious ways to do the select bench without Tidings: scans with numpy, a join per batch in DuckDB or Spark SQL.

Each peer holds all subscriptions and is given the new rows of changes; it must find, for each, the ids of the subscriptions
that match. That is less than Tidings does, which also looks for those that matched the old row.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.bench.peers import AnyPeer, Peers, Way
from tidings.bench.select_data import KINDS, SelectData, kind_numbers
from tidings.model.codes import Int64Array

_RANGES = "c.a BETWEEN s.a_lo AND s.a_hi AND c.b BETWEEN s.b_lo AND s.b_hi"


class Peer(AnyPeer):
    """One way, loaded with the subscriptions of one size."""

    @abstractmethod
    def match(self, rows: pa.RecordBatch) -> object:
        """Finds all matches of the rows: what is timed."""

    @abstractmethod
    def counts(self, rows: pa.RecordBatch) -> Int64Array:
        """How many subscriptions match each row."""


class NumpyScan(Peer):
    """Compares every change with every subscription."""

    def __init__(self, data: SelectData) -> None:
        self._kind = data.kind.astype(np.int16)
        self._ends = [np.ascontiguousarray(ends[:, i]) for i in range(2) for ends in (data.lo, data.hi)]

    def match(self, rows: pa.RecordBatch) -> list[Int64Array]:
        a_lo, a_hi, b_lo, b_hi = self._ends
        values = zip(
            kind_numbers(rows).tolist(), rows.column("a").to_pylist(), rows.column("b").to_pylist(), strict=True
        )
        return [
            np.flatnonzero((self._kind == kind) & (a_lo <= a) & (a <= a_hi) & (b_lo <= b) & (b <= b_hi))
            for kind, a, b in values
        ]

    def counts(self, rows: pa.RecordBatch) -> Int64Array:
        return np.array([len(found) for found in self.match(rows)], np.int64)


class NumpyByKind(Peer):
    """Compares every change with the subscriptions to its kind."""

    def __init__(self, data: SelectData) -> None:
        self._ids = [np.flatnonzero(data.kind == kind) for kind in range(KINDS)]
        self._ends = [
            [np.ascontiguousarray(ends[ids, i]) for i in range(2) for ends in (data.lo, data.hi)] for ids in self._ids
        ]

    def match(self, rows: pa.RecordBatch) -> list[Int64Array]:
        found = []
        values = zip(
            kind_numbers(rows).tolist(), rows.column("a").to_pylist(), rows.column("b").to_pylist(), strict=True
        )
        for kind, a, b in values:
            a_lo, a_hi, b_lo, b_hi = self._ends[kind]
            found.append(self._ids[kind][(a_lo <= a) & (a <= a_hi) & (b_lo <= b) & (b <= b_hi)])
        return found

    def counts(self, rows: pa.RecordBatch) -> Int64Array:
        return np.array([len(found) for found in self.match(rows)], np.int64)


class DuckDbJoin(Peer):
    """A join of the batch with the table of subscriptions."""

    def __init__(self, data: SelectData) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {os.cpu_count() or 1}")
        self._connection.register("given", _table(data))
        self._connection.execute("CREATE TABLE subscriptions AS SELECT * FROM given")
        self._connection.unregister("given")

    def match(self, rows: pa.RecordBatch) -> dict[str, Any]:
        self._connection.register("changes", _numbered(rows))
        sql = f"SELECT c.row, s.id FROM changes c JOIN subscriptions s ON c.kind = s.kind AND {_RANGES}"
        found: dict[str, Any] = self._connection.execute(sql).fetchnumpy()
        return found

    def counts(self, rows: pa.RecordBatch) -> Int64Array:
        return np.bincount(self.match(rows)["row"], minlength=rows.num_rows)

    def close(self) -> None:
        self._connection.close()


class SparkJoin(Peer):
    """A join of the batch, broadcast, with the cached DataFrame of subscriptions. What it finds stays in Spark."""

    def __init__(self, data: SelectData, session: Any) -> None:
        self._session = session
        self._subscriptions = session.createDataFrame(_table(data)).repartition(2 * (os.cpu_count() or 1)).cache()
        self._subscriptions.count()
        self._subscriptions.createOrReplaceTempView("subscriptions")

    def match(self, rows: pa.RecordBatch) -> None:
        self._join(rows).write.format("noop").mode("overwrite").save()

    def counts(self, rows: pa.RecordBatch) -> Int64Array:
        found = self._join(rows).groupBy("row").count().collect()
        counts = np.zeros(rows.num_rows, np.int64)
        for entry in found:
            counts[entry["row"]] = entry["count"]
        return counts

    def close(self) -> None:
        self._subscriptions.unpersist(blocking=True)

    def _join(self, rows: pa.RecordBatch) -> Any:
        self._session.createDataFrame(_numbered(rows)).createOrReplaceTempView("changes")
        joined = f"changes c JOIN subscriptions s ON c.kind = s.kind AND {_RANGES}"
        return self._session.sql(f"SELECT /*+ BROADCAST(c) */ c.row, s.id FROM {joined}")


def add_to(peers: Peers[SelectData, Peer]) -> None:
    peers.ways.append(Way("numpy.scan", "peer: numpy, scan", 10, NumpyScan))
    peers.ways.append(Way("numpy.by_kind", "peer: numpy, scan within the kind", 1_000, NumpyByKind))
    if peers.has("duckdb"):
        peers.ways.append(Way("duckdb.10k", "peer: DuckDB, join 10k changes at a time", 10_000, DuckDbJoin))
    if session := peers.spark():
        for key, batch in (("10k", 10_000), ("100", 100)):
            label = f"peer: Spark SQL, join {key} changes at a time"
            peers.ways.append(Way(f"spark.{key}", label, batch, lambda data: SparkJoin(data, session)))


def _table(data: SelectData) -> pa.Table:
    """The subscriptions as a table (id, kind, a_lo, a_hi, b_lo, b_hi)."""
    names = pa.array([f"k{kind}" for kind in range(KINDS)], pa.string())
    ends = {
        f"{name}_{end}": values[:, i]
        for i, name in enumerate("ab")
        for end, values in (("lo", data.lo), ("hi", data.hi))
    }
    columns = {"id": np.arange(data.size), "kind": names.take(pa.array(data.kind)), **ends}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _numbered(rows: pa.RecordBatch) -> pa.Table:
    columns = {"row": pa.array(np.arange(rows.num_rows)), **{name: rows.column(name) for name in ("kind", "a", "b")}}
    return pa.table(columns)
