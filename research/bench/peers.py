"""Peers of the benches of single families: ways to do them without Tidings, with tables kept in Spark or PostgreSQL."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from research.bench.psql import Psql, server
from tidings.bench import Say
from tidings.bench.peers import Peer, Peers
from tidings.bench.postgres import find_server


class SparkPeer(Peer):
    """A session with cached tables. What a query finds stays in Spark."""

    def __init__(self, session: Any, tables: Mapping[str, pa.Table]) -> None:
        self._session = session
        self._kept = []
        for name, rows in tables.items():
            frame = session.createDataFrame(rows).repartition(2 * (os.cpu_count() or 1)).cache()
            frame.count()
            frame.createOrReplaceTempView(name)
            self._kept.append(frame)

    def give(self, name: str, rows: pa.Table) -> None:
        """A table that is not kept."""
        self._session.createDataFrame(rows).createOrReplaceTempView(name)

    def run(self, sql: str) -> None:
        self._session.sql(sql).write.format("noop").mode("overwrite").save()

    def query(self, sql: str) -> dict[str, Any]:
        """Columns by name."""
        found = self._session.sql(sql).toArrow()
        return {name: found.column(name).to_numpy() for name in found.column_names}

    def close(self) -> None:
        for frame in self._kept:
            frame.unpersist(blocking=True)


@dataclass(frozen=True)
class Way:
    key: str
    label: str
    at_a_time: int
    """Changes."""
    load: Callable[[Any], Peer]
    size_max: int = sys.maxsize
    """The peer is left out with more subscriptions, as it would take minutes."""


class PeerWays(Peers):
    """The installed peers, and the ways to use them that a bench has added."""

    def __init__(self, stack: ExitStack, say: Say) -> None:
        super().__init__(stack, say)
        self.ways: list[Way] = []

    def postgres(self) -> Psql | None:
        """A session with a server of our own."""
        programs = find_server()
        if programs is None:
            self.missing.append("PostgreSQL")
            return None
        self.say("starting PostgreSQL")
        return self._stack.enter_context(server(programs))

    def for_size(self, size: int) -> list[Way]:
        return [way for way in self.ways if size <= way.size_max]
