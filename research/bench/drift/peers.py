"""Peers of the drift bench: arrays of thresholds in numpy, a table with two indexes in PostgreSQL.

Each peer holds the thresholds of all members of one item and is given its moves; it must find the members each move
touches, and set their thresholds anew.
"""

from __future__ import annotations

import numpy as np

from research.bench.drift.data import Timeline
from research.bench.peers import PeerWays, Way
from research.bench.psql import Psql
from tidings.bench.peers import Peer
from tidings.workloads.draws import FloatArray

_ROWS_AT_A_TIME = 5_000


class NumpyThresholds(Peer):
    """Compares every move with both thresholds of every member."""

    def __init__(self, timeline: Timeline) -> None:
        reach, value = timeline.member_reach, timeline.move_value[0]
        self._reach = reach
        self._low, self._high = value - reach, value + reach
        self._told: list[int] = []

    def feed(self, part: FloatArray) -> None:
        self._told = []
        for value in part.tolist():
            at = np.flatnonzero((value >= self._high) | (value <= self._low))
            self._low[at], self._high[at] = value - self._reach[at], value + self._reach[at]
            self._told.append(len(at))

    def found(self) -> list[int]:
        """How many members each move touched."""
        return self._told


class Postgres(Peer):
    """A table with an index on each threshold, and per move an UPDATE by each.

    A single UPDATE with OR takes four times as long: it is done by bitmaps of both indexes, and these never forget the
    entries of rows that have been moved since.
    """

    def __init__(self, timeline: Timeline, session: Psql) -> None:
        self._session = session
        self._told: list[int] = []
        value = float(timeline.move_value[0])
        columns = "id int, reach float8, low float8, high float8"
        session.run([f"CREATE UNLOGGED TABLE members ({columns})"])
        texts = timeline.member_reach.tolist()
        for start in range(0, len(texts), _ROWS_AT_A_TIME):
            rows = ",".join(f"({id},{r!r})" for id, r in enumerate(texts[start : start + _ROWS_AT_A_TIME], start))
            thresholds = f"{value!r}::float8 - r::float8, {value!r}::float8 + r::float8"
            session.run([f"INSERT INTO members SELECT id, r, {thresholds} FROM (VALUES {rows}) AS given (id, r)"])
        session.run(["CREATE INDEX ON members (low)", "CREATE INDEX ON members (high)", "VACUUM ANALYZE members"])
        session.run(["SET enable_seqscan = off", "SET enable_bitmapscan = off"])

    def feed(self, part: FloatArray) -> None:
        answers = self._session.run(
            f"UPDATE members SET low = {v!r}::float8 - reach, high = {v!r}::float8 + reach WHERE {passed} {v!r}::float8"
            for v in part.tolist()
            for passed in ("high <=", "low >=")
        )
        counts = [int(answer.removeprefix("UPDATE ")) for answer in answers]
        self._told = [high + low for high, low in zip(counts[::2], counts[1::2], strict=True)]

    def found(self) -> list[int]:
        return self._told

    def close(self) -> None:
        self._session.run(["DROP TABLE members"])


def add_to(peers: PeerWays) -> None:
    peers.ways.append(Way("numpy", "peer: numpy, arrays of thresholds", 10, NumpyThresholds))
    if session := peers.postgres():
        label = "peer: PostgreSQL, an index on each threshold"
        peers.ways.append(Way("postgres", label, 10, lambda timeline: Postgres(timeline, session)))
