"""Peers of the top-k bench, as far as they are installed.

Each peer holds the rows and the ranges of a scene and gets its changes. It must know the first k rows of all subscriptions
after each change or, if it works in batches, after each batch. Its results are these rows, best first, one subscription after
the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from research.bench.peers import PeerWays, SparkPeer, Way
from research.workloads.topk.scene import Block, Scene
from tidings.bench.peers import DuckDbPeer, Peer
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray

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


def _ranked(scene: Scene, members: str = "members") -> str:
    return _RANKED.format(members=members, rows="rows", k=scene.k)


def _in_order(found: Any) -> list[int]:
    """Rows by member, best first."""
    order = np.lexsort((found["row"], found["score"], found["member"]))
    rows: list[int] = np.asarray(found["row"])[order].tolist()
    return rows


class NumpyHeld(Peer):
    """The first k rows of all subscriptions as a matrix, best first.

    A row that improves is inserted into all affected lines at once. For a row that gets worse, the affected lines are
    recomputed from their ranges.
    """

    def __init__(self, scene: Scene) -> None:
        order = np.argsort(scene.place, kind="stable")
        self._row, self._score = order, scene.score[order]
        self._at = np.empty(scene.rows, np.int64)
        self._at[order] = np.arange(scene.rows)
        place = scene.place[order]
        self._start = np.searchsorted(place, scene.ranges[:, 0], "left")
        self._stop = np.searchsorted(place, scene.ranges[:, 1], "right")
        self._held = np.full((scene.size, scene.k), -1)
        self._held_score = np.full((scene.size, scene.k), np.inf)
        for member in range(scene.size):
            self._look(member)

    def feed(self, part: Block) -> None:
        row, score = part
        for at, new in zip(self._at[row].tolist(), score.tolist(), strict=True):
            old, self._score[at] = self._score[at], new
            is_hit = (self._start <= at) & (at < self._stop) & (min(old, new) <= self._held_score[:, -1])
            members = np.flatnonzero(is_hit)
            if new <= old:
                self._insert(members, at, new)
            else:
                for member in members.tolist():
                    self._look(member)

    def found(self) -> list[int]:
        rows: list[int] = self._row[self._held[self._held >= 0]].tolist()
        return rows

    def _insert(self, members: Int64Array, at: int, score: float) -> None:
        held, scores = self._held[members], self._held_score[members]
        is_own = held == at
        held[is_own], scores[is_own] = -1, np.inf
        held = np.column_stack([held, np.full(len(members), at)])
        scores = np.column_stack([scores, np.full(len(members), score)])
        order = np.argsort(scores, axis=1, kind="stable")[:, :-1]
        self._held[members] = np.take_along_axis(held, order, axis=1)
        self._held_score[members] = np.take_along_axis(scores, order, axis=1)

    def _look(self, member: int) -> None:
        start, k = int(self._start[member]), self._held.shape[1]
        scores = self._score[start : self._stop[member]]
        best = np.argpartition(scores, k)[:k] if len(scores) > k else np.arange(len(scores))
        best = best[np.argsort(scores[best])]
        self._held[member, : len(best)], self._held_score[member, : len(best)] = start + best, scores[best]


class DuckDbAffected(DuckDbPeer):
    """Stores the worst score in each answer as a column; answers that a change affects by it are recomputed."""

    def __init__(self, scene: Scene) -> None:
        super().__init__({"rows": _rows(scene, scene.score), "members": _members(scene)})
        self._scene = scene
        self._score = scene.score.copy()
        self.connection.execute("ALTER TABLE members ADD COLUMN worst DOUBLE DEFAULT 'infinity'")
        self._held: dict[int, list[int]] = {}
        self._look("members")

    def feed(self, part: Block) -> None:
        for at, new in zip(part[0].tolist(), part[1].tolist(), strict=True):
            place, better = float(self._scene.place[at]), min(float(self._score[at]), new)
            self._score[at] = new
            run = self.connection.execute
            run("UPDATE rows SET score = ? WHERE id = ?", [new, at])
            run(
                "CREATE OR REPLACE TEMP TABLE affected AS SELECT id, low, high FROM members"
                " WHERE low <= ? AND high >= ? AND worst >= ?",
                [place, place, better],
            )
            self._look("affected")

    def found(self) -> list[int]:
        return [row for member in sorted(self._held) for row in self._held[member]]

    def _look(self, members: str) -> None:
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE best AS {_ranked(self._scene, members)}")
        self.connection.execute(
            "UPDATE members SET worst = b.worst FROM (SELECT member, CASE count(*) WHEN ? THEN max(score)"
            " ELSE 'infinity' END AS worst FROM best GROUP BY member) b WHERE members.id = b.member",
            [self._scene.k],
        )
        found = self.query("SELECT member, row FROM best ORDER BY member, score, row")
        lines: dict[int, list[int]] = {}
        for member, row in zip(found["member"].tolist(), found["row"].tolist(), strict=True):
            lines.setdefault(member, []).append(row)
        self._held.update(lines)


class DuckDbWindow(DuckDbPeer):
    """Recomputes all answers after every batch of changes."""

    def __init__(self, scene: Scene) -> None:
        super().__init__({"members": _members(scene)})
        self._scene, self._score = scene, scene.score.copy()
        self._found: Any = None

    def feed(self, part: Block) -> None:
        self._score[part[0]] = part[1]
        self.connection.register("rows", _rows(self._scene, self._score))
        self._found = self.query(_ranked(self._scene))

    def found(self) -> list[int]:
        return _in_order(self._found)


class SparkWindow(SparkPeer):
    """Recomputes all answers after every batch of changes, in Spark."""

    def __init__(self, scene: Scene, session: Any) -> None:
        super().__init__(session, {"members": _members(scene)})
        self._scene, self._score = scene, scene.score.copy()

    def feed(self, part: Block) -> None:
        self._score[part[0]] = part[1]
        self.give("rows", _rows(self._scene, self._score))
        self.run(_ranked(self._scene))

    def found(self) -> list[int]:
        return _in_order(self.query(_ranked(self._scene)))


def add_to(peers: PeerWays) -> None:
    peers.ways.append(Way("numpy", "peer: numpy, everybody's rows as a matrix", 10, NumpyHeld, 100_000))
    if peers.has("duckdb"):
        peers.ways.append(Way("duckdb", "peer: DuckDB, the affected anew", 10, DuckDbAffected, 10_000))
        label = "peer: DuckDB, all answers anew after 1,000 changes"
        peers.ways.append(Way("duckdb.window", label, 1_000, DuckDbWindow, 10_000))
    if session := peers.spark():
        label = "peer: Spark SQL, all answers anew after 1,000 changes"
        peers.ways.append(Way("spark.window", label, 1_000, lambda scene: SparkWindow(scene, session), 1_000))
