"""The registry's database: its tables, and statements that SQLite and PostgreSQL spell differently."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self, TypeVar

from sqlalchemy import Connection, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite

from tidings.database import Database
from tidings.model.errors import RunError
from tidings.server.registry.migrations import migrate

T = TypeVar("T")

_CHUNK = 500
"""How many values an IN takes."""


class RegistryError(RunError):
    """The registry's database cannot be used now: it is away, full, or locked for too long."""


class RegistryDatabase(Database):
    """A database with the registry's tables. clock: seconds since 1970."""

    what = "registry"
    error = RegistryError
    # Secrets of webhooks are in it.
    is_private = True

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time, patience_s: float = 30.0) -> None:
        self._clock = clock
        super().__init__(url, patience_s=patience_s)

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], float] = time.time) -> Self:
        """Opens `sqlite:///FILE` or `postgresql://..`. The file is created, readable by its owner only; its folder is not."""
        return cls(url, clock=clock)

    def _create_tables(self, connection: Connection) -> None:
        migrate(connection)

    def _upsert(self, table: Table) -> Insert:
        """Inserts rows, or replaces those with the same primary key."""
        own = [column.name for column in table.primary_key]
        others = [column.name for column in table.columns if not column.primary_key]
        if self._is_sqlite:
            lite = sqlite.insert(table)
            return lite.on_conflict_do_update(index_elements=own, set_={name: lite.excluded[name] for name in others})
        full = postgresql.insert(table)
        return full.on_conflict_do_update(index_elements=own, set_={name: full.excluded[name] for name in others})

    def _insert_missing(self, table: Table) -> Insert:
        """Inserts rows whose primary key is not there yet."""
        insert = sqlite.insert if self._is_sqlite else postgresql.insert
        return insert(table).on_conflict_do_nothing()


def registry_url(data: Path, url: str | None) -> str:
    """The address of the registry of a data folder, unless another one was given."""
    return url or f"sqlite:///{data / 'registry.db'}"


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in parts small enough for an IN."""
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]
