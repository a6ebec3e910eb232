"""Peers: the straightforward ways to do a bench without Tidings, and which of them are installed."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from tidings.bench import Say
from tidings.bench.postgres import Psql, find_server, server


class Peer(ABC):
    """A peer loaded with the data of one size."""

    @abstractmethod
    def feed(self, part: Any) -> None:
        """Applies some changes. This is what is timed."""

    @abstractmethod
    def found(self) -> list[Any]:
        """The peer's results for the changes it was fed last, to be compared with ours."""

    def close(self) -> None:  # noqa: B027
        """Frees what the peer holds; most hold nothing."""


class DuckDbPeer(Peer):
    """A connection on all processors, with tables of DuckDB's own."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {os.cpu_count() or 1}")
        for name, rows in tables.items():
            self.create(name, rows)

    def create(self, name: str, rows: pa.Table) -> None:
        self.connection.register("given", rows)
        self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self.connection.unregister("given")

    def query(self, sql: str) -> dict[str, Any]:
        """Columns by name."""
        found: dict[str, Any] = self.connection.execute(sql).fetchnumpy()
        return found

    def close(self) -> None:
        self.connection.close()


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


class Peers:
    """The installed peers. Servers and sessions that all sizes share are started when first used, and stopped by `stack`."""

    def __init__(self, stack: ExitStack, say: Say) -> None:
        self.ways: list[Way] = []
        self.missing: list[str] = []
        self.say = say
        self._stack = stack

    def has(self, package: str) -> bool:
        """Whether the package is installed; it is missing if not."""
        is_there = find_spec(package) is not None
        if not is_there:
            self.missing.append(package)
        return is_there

    def spark(self) -> Any:
        """A session, or None."""
        if not self.has("pyspark"):
            return None
        from tidings.spark.session import spark_session

        self.say("starting Spark")
        settings = {"spark.sql.adaptive.enabled": "true"}
        cores = f"local[{os.cpu_count() or 1}]"
        return self._stack.enter_context(spark_session("tidings bench", cores, config=settings))

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
