"""Peers of the join bench, as far as they are installed.

Each peer holds the ranges and the rows of S, and gets inserted and deleted rows of R: it must find, for each row, the
subscriptions whose answers it changes, in ascending order. That is less work than ours, since peers do not keep R, and do not
know which subscription holds which row of S.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from research.bench.peers import PeerWays, SparkPeer, Way
from research.workloads.join.binary import BinaryScene
from tidings.bench.peers import DuckDbPeer, Peer
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray, IntArray

RowsOfR = tuple[IntArray, FloatArray]
"""`b` and `a` of rows of R."""

_AFFECTED = """
SELECT r.id AS row, m.id AS member FROM r JOIN members m ON r.a BETWEEN m.a_lo AND m.a_hi
WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b AND s.c BETWEEN m.c_lo AND m.c_hi)
"""


def _tables(scene: BinaryScene) -> dict[str, pa.Table]:
    ends = zip(("a_lo", "a_hi", "c_lo", "c_hi"), scene.ranges.T, strict=True)
    members = pa.table({"id": np.arange(scene.size), **dict(ends)})
    return {"members": members, "s": pa.table({"b": scene.s_b, "c": scene.s_c})}


def _rows(part: RowsOfR) -> pa.Table:
    return pa.table({"id": np.arange(len(part[0])), "b": part[0], "a": part[1]})


def _by_row(count: int, row: Int64Array, member: Int64Array) -> list[list[int]]:
    order = np.lexsort((member, row))
    return [part.tolist() for part in np.split(member[order], np.searchsorted(row[order], np.arange(1, count)))]


class NumpyScan(Peer):
    """Ranges as columns: finds who selects the row, and which of these have a partner of it in the other range."""

    def __init__(self, scene: BinaryScene) -> None:
        self._a_lo, self._a_hi, self._c_lo, self._c_hi = (np.ascontiguousarray(column) for column in scene.ranges.T)
        order = np.lexsort((scene.s_c, scene.s_b))
        values = np.arange(max(scene.s_b.max(initial=0), scene.r_b.max(initial=0)) + 2)
        self._c = scene.s_c[order]
        self._starts = np.searchsorted(scene.s_b[order], values)
        self._found: list[Int64Array] = []

    def feed(self, part: RowsOfR) -> None:
        self._found = [self._one(b, a) for b, a in zip(part[0].tolist(), part[1].tolist(), strict=True)]

    def found(self) -> list[list[int]]:
        return [members.tolist() for members in self._found]

    def _one(self, b: int, a: float) -> Int64Array:
        partners = self._c[self._starts[b] : self._starts[b + 1]]
        if len(partners) == 0:
            return np.empty(0, np.int64)
        select = np.flatnonzero((self._a_lo <= a) & (a <= self._a_hi))
        first = np.searchsorted(partners, self._c_lo[select])
        last = np.searchsorted(partners, self._c_hi[select], "right")
        return select[first < last]


class DuckDbExists(DuckDbPeer):
    """A single row is given as parameters, several as a table."""

    def __init__(self, scene: BinaryScene) -> None:
        super().__init__(_tables(scene))
        self._found: list[list[int]] = []

    def feed(self, part: RowsOfR) -> None:
        if len(part[0]) == 1:
            self._found = [sorted(self._one(int(part[0][0]), float(part[1][0])))]
            return
        self.connection.register("r", _rows(part))
        found = self.query(_AFFECTED)
        self._found = _by_row(len(part[0]), found["row"], found["member"])

    def found(self) -> list[list[int]]:
        return self._found

    def _one(self, b: int, a: float) -> list[int]:
        found: list[int] = (
            self.connection.execute(
                "SELECT m.id FROM members m WHERE ? BETWEEN m.a_lo AND m.a_hi"
                " AND EXISTS (SELECT 1 FROM s WHERE s.b = ? AND s.c BETWEEN m.c_lo AND m.c_hi)",
                [a, b],
            )
            .fetchnumpy()["id"]
            .tolist()
        )
        return found


class SparkExists(SparkPeer):
    def __init__(self, scene: BinaryScene, session: Any) -> None:
        super().__init__(session, _tables(scene))
        self._count = 0

    def feed(self, part: RowsOfR) -> None:
        self._count = len(part[0])
        self.give("r", _rows(part))
        self.run(_AFFECTED)

    def found(self) -> list[list[int]]:
        found = self.query(_AFFECTED)
        return _by_row(self._count, found["row"], found["member"])


def add_to(peers: PeerWays) -> None:
    label = "peer: numpy, all ranges against a row and its partners"
    peers.ways.append(Way("numpy", label, 10, NumpyScan, 1_000_000))
    if peers.has("duckdb"):
        peers.ways.append(Way("duckdb", "peer: DuckDB, EXISTS for one row", 1, DuckDbExists, 1_000_000))
        label = "peer: DuckDB, EXISTS for 1,000 rows at once"
        peers.ways.append(Way("duckdb.batch", label, 1_000, DuckDbExists, 100_000))
    if session := peers.spark():
        label = "peer: Spark SQL, EXISTS for 1,000 rows at once"
        peers.ways.append(Way("spark", label, 1_000, lambda scene: SparkExists(scene, session), 100_000))
