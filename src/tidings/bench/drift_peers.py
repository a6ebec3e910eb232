"""The obvious ways to do the drift bench without Tidings: arrays of thresholds in numpy, two indexes in PostgreSQL.

Each peer holds the thresholds of all members of one item and is given its moves; it must find the members each move
touches, and set their thresholds anew.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from tidings.bench.drift_timeline import FloatArray, Timeline
from tidings.bench.peers import AnyPeer, Peers, Way
from tidings.bench.postgres import Psql
from tidings.model.codes import Int64Array

_ROWS_AT_A_TIME = 5_000


class Peer(AnyPeer):
    """One way, loaded with the members of a timeline, all last told its first value."""

    @abstractmethod
    def move(self, values: FloatArray) -> Int64Array:
        """Makes the moves; gives how many members each touched."""


class NumpyThresholds(Peer):
    """Compares every move with both thresholds of every member."""

    def __init__(self, timeline: Timeline) -> None:
        reach, value = timeline.member_reach, timeline.move_value[0]
        self._reach = reach
        self._low, self._high = value - reach, value + reach

    def move(self, values: FloatArray) -> Int64Array:
        counts = []
        for value in values.tolist():
            at = np.flatnonzero((value >= self._high) | (value <= self._low))
            self._low[at], self._high[at] = value - self._reach[at], value + self._reach[at]
            counts.append(len(at))
        return np.array(counts, np.int64)


class Postgres(Peer):
    """A table with an index on each threshold, and per move an UPDATE by each.

    A single UPDATE with OR takes four times as long: it is done by bitmaps of both indexes, and these never forget the
    entries of rows that have been moved since.
    """

    def __init__(self, timeline: Timeline, session: Psql) -> None:
        self._session = session
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

    def move(self, values: FloatArray) -> Int64Array:
        answers = self._session.run(
            f"UPDATE members SET low = {v!r}::float8 - reach, high = {v!r}::float8 + reach WHERE {passed} {v!r}::float8"
            for v in values.tolist()
            for passed in ("high <=", "low >=")
        )
        counts = np.array([int(answer.removeprefix("UPDATE ")) for answer in answers], np.int64)
        total: Int64Array = counts.reshape(-1, 2).sum(axis=1)
        return total

    def close(self) -> None:
        self._session.run(["DROP TABLE members"])


def add_to(peers: Peers[Timeline, Peer]) -> None:
    peers.ways.append(Way("numpy", "peer: numpy, arrays of thresholds", 10, NumpyThresholds))
    if session := peers.postgres():
        label = "peer: PostgreSQL, an index on each threshold"
        peers.ways.append(Way("postgres", label, 10, lambda timeline: Postgres(timeline, session)))
