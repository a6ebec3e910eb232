"""The join bench in SQL: those for whom rows of R have a partner in S, by DuckDB or Spark SQL."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.bench.join_peers import Peer
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray, IntArray
from tidings.workloads.join.binary import BinaryScene

_AFFECTED = """
SELECT r.id AS row, m.id AS member FROM r JOIN members m ON r.a BETWEEN m.a_lo AND m.a_hi
WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b AND s.c BETWEEN m.c_lo AND m.c_hi)
"""


def _members(scene: BinaryScene) -> pa.Table:
    ends = zip(("a_lo", "a_hi", "c_lo", "c_hi"), scene.ranges.T, strict=True)
    return pa.table({"id": np.arange(scene.size), **dict(ends)})


def _partners(scene: BinaryScene) -> pa.Table:
    return pa.table({"b": scene.s_b, "c": scene.s_c})


def _rows(b: IntArray, a: FloatArray) -> pa.Table:
    return pa.table({"id": np.arange(len(b)), "b": b, "a": a})


def _by_row(count: int, row: Int64Array, member: Int64Array) -> list[Int64Array]:
    order = np.lexsort((member, row))
    return np.split(member[order], np.searchsorted(row[order], np.arange(1, count)))


class DuckDbExists(Peer):
    """Tables of DuckDB's own; a single row is given as parameters, several as a table."""

    def __init__(self, scene: BinaryScene) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {os.cpu_count() or 1}")
        for name, table in (("members", _members(scene)), ("s", _partners(scene))):
            self._connection.register("given", table)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self._connection.unregister("given")
        self._found: list[Int64Array] = []

    def find(self, b: IntArray, a: FloatArray) -> None:
        if len(b) == 1:
            self._found = [np.sort(self._one(int(b[0]), float(a[0])))]
            return
        self._connection.register("r", _rows(b, a))
        found = self._connection.execute(_AFFECTED).fetchnumpy()
        self._found = _by_row(len(b), found["row"], found["member"])

    def found(self) -> list[Int64Array]:
        return self._found

    def close(self) -> None:
        self._connection.close()

    def _one(self, b: int, a: float) -> Int64Array:
        found: Int64Array = self._connection.execute(
            "SELECT m.id FROM members m WHERE ? BETWEEN m.a_lo AND m.a_hi"
            " AND EXISTS (SELECT 1 FROM s WHERE s.b = ? AND s.c BETWEEN m.c_lo AND m.c_hi)",
            [a, b],
        ).fetchnumpy()["id"]
        return found


class SparkExists(Peer):
    """What it finds stays in Spark."""

    def __init__(self, scene: BinaryScene, session: Any) -> None:
        self._session = session
        self._count = 0
        self._kept = []
        for name, table in (("members", _members(scene)), ("s", _partners(scene))):
            frame = session.createDataFrame(table).repartition(2 * (os.cpu_count() or 1)).cache()
            frame.count()
            frame.createOrReplaceTempView(name)
            self._kept.append(frame)

    def find(self, b: IntArray, a: FloatArray) -> None:
        self._count = len(b)
        self._session.createDataFrame(_rows(b, a)).createOrReplaceTempView("r")
        self._session.sql(_AFFECTED).write.format("noop").mode("overwrite").save()

    def found(self) -> list[Int64Array]:
        found = self._session.sql(_AFFECTED).toArrow()
        return _by_row(self._count, found.column("row").to_numpy(), found.column("member").to_numpy())

    def close(self) -> None:
        for frame in self._kept:
            frame.unpersist(blocking=True)
