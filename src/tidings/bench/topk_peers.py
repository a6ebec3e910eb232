"""The obvious ways to do the top-k bench without Tidings, and which of them can be had here.

Each peer holds the rows and the ranges of a scene and is given its changes; it must know everybody's first k rows after
each of them or, where it works in batches, after each batch.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from tidings.bench.peers import AnyPeer, Peers, Way
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray
from tidings.workloads.topk.scene import Scene


class Peer(AnyPeer):
    """One way, loaded with the rows and ranges of one scene."""

    @abstractmethod
    def change(self, row: Int64Array, score: FloatArray) -> None:
        """Gives rows new scores: what is timed."""

    @abstractmethod
    def answers(self) -> Int64Array:
        """The rows everybody has now, best first, one subscription after the other."""


class NumpyHeld(Peer):
    """Everybody's first k rows as a matrix, best first.

    A row that gets better goes into the lines it is good enough for, all at once; one that gets worse is looked for in
    all lines, and whoever may have lost it looks through the own range anew.
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

    def change(self, row: Int64Array, score: FloatArray) -> None:
        for at, new in zip(self._at[row].tolist(), score.tolist(), strict=True):
            old, self._score[at] = self._score[at], new
            is_hit = (self._start <= at) & (at < self._stop) & (min(old, new) <= self._held_score[:, -1])
            members = np.flatnonzero(is_hit)
            if new <= old:
                self._insert(members, at, new)
            else:
                for member in members.tolist():
                    self._look(member)

    def answers(self) -> Int64Array:
        rows: Int64Array = self._row[self._held[self._held >= 0]]
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


def add_to(peers: Peers[Scene, Peer]) -> None:
    from tidings.bench.topk_peers_sql import DuckDbAffected, DuckDbWindow, SparkWindow

    peers.ways.append(Way("numpy", "peer: numpy, everybody's rows as a matrix", 10, NumpyHeld, 100_000))
    if peers.has("duckdb"):
        peers.ways.append(Way("duckdb", "peer: DuckDB, the affected anew", 10, DuckDbAffected, 10_000))
        label = "peer: DuckDB, all answers anew after 1,000 changes"
        peers.ways.append(Way("duckdb.window", label, 1_000, DuckDbWindow, 10_000))
    if session := peers.spark():
        label = "peer: Spark SQL, all answers anew after 1,000 changes"
        peers.ways.append(Way("spark.window", label, 1_000, lambda scene: SparkWindow(scene, session), 1_000))
