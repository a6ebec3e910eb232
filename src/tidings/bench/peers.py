"""Peers: the straightforward ways to do a bench without Tidings, and which of them are installed."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from tidings.bench import Say


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


class Peers:
    """The installed peers. Servers and sessions that all sizes share are started when first used, and stopped by `stack`."""

    def __init__(self, stack: ExitStack, say: Say) -> None:
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
