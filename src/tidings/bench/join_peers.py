"""The obvious ways to do the join bench without Tidings, and which of them can be had here.

Each peer holds the ranges and the rows of S, and is given rows of R that come or go: it must find everyone whose answer each
changes. That is less than what we do, since they do not keep R and do not know who has got which row of S before.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from tidings.bench.peers import AnyPeer, Peers, Way
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray, IntArray
from tidings.workloads.join.binary import BinaryScene


class Peer(AnyPeer):
    """One way, loaded with the ranges and the partners of one scene."""

    @abstractmethod
    def find(self, b: IntArray, a: FloatArray) -> None:
        """Finds whom rows of R affect: what is timed."""

    @abstractmethod
    def found(self) -> list[Int64Array]:
        """Whom each of the rows given last affects, in ascending order."""


class NumpyScan(Peer):
    """Everyone's ranges as columns: who selects the row, and of these, whose other range has one of its partners."""

    def __init__(self, scene: BinaryScene) -> None:
        self._a_lo, self._a_hi, self._c_lo, self._c_hi = (np.ascontiguousarray(column) for column in scene.ranges.T)
        order = np.lexsort((scene.s_c, scene.s_b))
        values = np.arange(max(scene.s_b.max(initial=0), scene.r_b.max(initial=0)) + 2)
        self._c = scene.s_c[order]
        self._starts = np.searchsorted(scene.s_b[order], values)
        self._found: list[Int64Array] = []

    def find(self, b: IntArray, a: FloatArray) -> None:
        self._found = [self._one(value, at) for value, at in zip(b.tolist(), a.tolist(), strict=True)]

    def found(self) -> list[Int64Array]:
        return self._found

    def _one(self, b: int, a: float) -> Int64Array:
        partners = self._c[self._starts[b] : self._starts[b + 1]]
        if len(partners) == 0:
            return np.empty(0, np.int64)
        select = np.flatnonzero((self._a_lo <= a) & (a <= self._a_hi))
        first = np.searchsorted(partners, self._c_lo[select])
        last = np.searchsorted(partners, self._c_hi[select], "right")
        return select[first < last]


def add_to(peers: Peers[BinaryScene, Peer]) -> None:
    from tidings.bench.join_peers_sql import DuckDbExists, SparkExists

    label = "peer: numpy, all ranges against a row and its partners"
    peers.ways.append(Way("numpy", label, 10, NumpyScan, 1_000_000))
    if peers.has("duckdb"):
        peers.ways.append(Way("duckdb", "peer: DuckDB, EXISTS for one row", 1, DuckDbExists, 1_000_000))
        label = "peer: DuckDB, EXISTS for 1,000 rows at once"
        peers.ways.append(Way("duckdb.batch", label, 1_000, DuckDbExists, 100_000))
    if session := peers.spark():
        label = "peer: Spark SQL, EXISTS for 1,000 rows at once"
        peers.ways.append(Way("spark", label, 1_000, lambda scene: SparkExists(scene, session), 100_000))
