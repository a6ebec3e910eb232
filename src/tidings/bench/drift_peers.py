"""The obvious ways to do the drift bench without Tidings: arrays of thresholds in numpy, two indexes in PostgreSQL.

Each peer holds the thresholds of all members of one item and is given its moves; it must find the members each move
touches, and set their thresholds anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from tidings.bench import Say
from tidings.bench.drift_timeline import FloatArray
from tidings.bench.postgres import Psql, find_server, server
from tidings.model.codes import Int64Array

_ROWS_AT_A_TIME = 5_000


class Peer(ABC):
    """One way, loaded with the members of one size, all last told the same value."""

    @abstractmethod
    def move(self, values: FloatArray) -> Int64Array:
        """Makes the moves; gives how many members each touched."""

    def close(self) -> None:  # noqa: B027
        """Frees what the peer holds; most hold nothing."""


class NumpyThresholds(Peer):
    """Compares every move with both thresholds of every member."""

    def __init__(self, reach: FloatArray, value: float) -> None:
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

    def __init__(self, reach: FloatArray, value: float, session: Psql) -> None:
        self._session = session
        columns = "id int, reach float8, low float8, high float8"
        session.run([f"CREATE UNLOGGED TABLE members ({columns})"])
        texts = reach.tolist()
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


class Peers:
    """The peers that are installed here. `ways`: (key, label, moves at a time, how to load)."""

    def __init__(self) -> None:
        self.ways: list[tuple[str, str, int, Callable[[FloatArray, float], Peer]]] = []
        self.missing: list[str] = []

    @staticmethod
    @contextmanager
    def start(is_wanted: bool, say: Say) -> Iterator[Peers]:
        """Starts what must run for all sizes (PostgreSQL), and stops it at the end."""
        peers = Peers()
        with ExitStack() as stack:
            if is_wanted:
                peers._start(stack, say)
            yield peers

    def _start(self, stack: ExitStack, say: Say) -> None:
        self.ways.append(("numpy", "peer: numpy, arrays of thresholds", 10, NumpyThresholds))
        programs = find_server()
        if programs is None:
            self.missing.append("PostgreSQL")
            return
        say("starting PostgreSQL")
        session = stack.enter_context(server(programs))
        label = "peer: PostgreSQL, an index on each threshold"
        self.ways.append(("postgres", label, 10, lambda reach, value: Postgres(reach, value, session)))
