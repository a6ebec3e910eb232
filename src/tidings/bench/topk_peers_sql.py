"""The top-k bench in SQL: DuckDB for those a change affects, and DuckDB or Spark SQL for everybody after every batch."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.bench.topk_peers import Peer
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray
from tidings.workloads.topk.scene import Scene

_RANKED = """
SELECT member, row, score FROM (
  SELECT m.id AS member, r.id AS row, r.score AS score,
         row_number() OVER (PARTITION BY m.id ORDER BY r.score, r.id) AS place
  FROM {members} m JOIN {rows} r ON r.place BETWEEN m.low AND m.high
) ranked WHERE place <= {k}
"""
"""The first k rows of every member."""


def _members(scene: Scene) -> pa.Table:
    low, high = scene.ranges.T
    return pa.table({"id": np.arange(scene.size), "low": low, "high": high})


def _rows(scene: Scene, score: FloatArray) -> pa.Table:
    return pa.table({"id": np.arange(scene.rows), "place": scene.place, "score": score})


def _connect() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {os.cpu_count() or 1}")
    return connection


def _in_order(found: Any) -> Int64Array:
    """Rows by member, best first."""
    order = np.lexsort((found["row"], found["score"], found["member"]))
    return np.asarray(found["row"])[order].astype(np.int64)


class DuckDbAffected(Peer):
    """Everybody's worst score that still counts is a column; whoever a change concerns by it is looked after anew."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._place, self._score = scene.place, scene.score.copy()
        self._connection = _connect()
        for name, table in (("rows", _rows(scene, scene.score)), ("members", _members(scene))):
            self._connection.register("given", table)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self._connection.unregister("given")
        self._connection.execute("ALTER TABLE members ADD COLUMN worst DOUBLE DEFAULT 'infinity'")
        self._held: dict[int, list[int]] = {}
        self._look("members")

    def change(self, row: Int64Array, score: FloatArray) -> None:
        for at, new in zip(row.tolist(), score.tolist(), strict=True):
            place, better = float(self._place[at]), min(float(self._score[at]), new)
            self._score[at] = new
            run = self._connection.execute
            run("UPDATE rows SET score = ? WHERE id = ?", [new, at])
            run(
                "CREATE OR REPLACE TEMP TABLE affected AS SELECT id, low, high FROM members"
                " WHERE low <= ? AND high >= ? AND worst >= ?",
                [place, place, better],
            )
            self._look("affected")

    def answers(self) -> Int64Array:
        return np.array([row for member in sorted(self._held) for row in self._held[member]], np.int64)

    def close(self) -> None:
        self._connection.close()

    def _look(self, members: str) -> None:
        k = self._scene.k
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE best AS {_RANKED.format(members=members, rows='rows', k=k)}"
        )
        self._connection.execute(
            "UPDATE members SET worst = b.worst FROM (SELECT member, CASE count(*) WHEN ? THEN max(score)"
            " ELSE 'infinity' END AS worst FROM best GROUP BY member) b WHERE members.id = b.member",
            [k],
        )
        found = self._connection.execute("SELECT member, row FROM best ORDER BY member, score, row").fetchnumpy()
        lines: dict[int, list[int]] = {}
        for member, row in zip(found["member"].tolist(), found["row"].tolist(), strict=True):
            lines.setdefault(member, []).append(row)
        self._held.update(lines)


class _Window(Peer):
    """All answers anew after every batch of changes."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._score = scene.score.copy()

    def change(self, row: Int64Array, score: FloatArray) -> None:
        self._score[row] = score
        self._look(_rows(self._scene, self._score))

    @abstractmethod
    def _look(self, rows: pa.Table) -> None:
        """Finds all answers over these rows."""

    def _sql(self) -> str:
        return _RANKED.format(members="members", rows="rows", k=self._scene.k)


class DuckDbWindow(_Window):
    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._connection = _connect()
        self._connection.register("members", _members(scene))
        self._found: Any = None

    def _look(self, rows: pa.Table) -> None:
        self._connection.register("rows", rows)
        self._found = self._connection.execute(self._sql()).fetchnumpy()

    def answers(self) -> Int64Array:
        return _in_order(self._found)

    def close(self) -> None:
        self._connection.close()


class SparkWindow(_Window):
    """What it finds stays in Spark."""

    def __init__(self, scene: Scene, session: Any) -> None:
        super().__init__(scene)
        self._session = session
        members = session.createDataFrame(_members(scene)).repartition(2 * (os.cpu_count() or 1))
        self._members = members.cache()
        self._members.count()
        self._members.createOrReplaceTempView("members")

    def _look(self, rows: pa.Table) -> None:
        self._session.createDataFrame(rows).createOrReplaceTempView("rows")
        self._session.sql(self._sql()).write.format("noop").mode("overwrite").save()

    def answers(self) -> Int64Array:
        found = self._session.sql(self._sql()).toArrow()
        return _in_order({name: found.column(name).to_numpy() for name in ("member", "row", "score")})

    def close(self) -> None:
        self._members.unpersist(blocking=True)
