"""The registry's database and its transactions: SQLite in WAL mode, or PostgreSQL.

A writing transaction of SQLite begins with BEGIN IMMEDIATE and waits there for other writers, so that none has read what
another then changes. What was committed survives a loss of power. Any thread may call; several processes may share a database.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Engine, Insert, Table, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError

from tidings.model.errors import RunError, UsageError
from tidings.server.registry.migrations import migrate

T = TypeVar("T")

_IS_WRITER = "is_tidings_writer"
_URL_HINT = "write sqlite:///FILE or postgresql://USER@HOST/DATABASE"
_SQLITE_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_POSTGRES_BUSY = frozenset({"40001", "40P01", "55P03"})
"""serialization_failure, deadlock_detected, lock_not_available."""
_PAUSE_S_MAX = 0.05
_CHUNK = 500
"""How many values an IN takes."""


class RegistryError(RunError):
    """The registry's database cannot be used now: it is away, full, or locked for too long."""


class Database:
    """A database with the registry's tables, which are created or brought up to date when it is opened.

    clock: seconds since 1970. patience_s: how long a transaction waits for the locks of others before RegistryError.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time, patience_s: float = 30.0) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._engine = _engine(url, patience_s)
        self._is_sqlite = self._engine.dialect.name == "sqlite"
        try:
            if self._is_sqlite:
                self._persist(self._use_wal)
            self._write(migrate)
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], float] = time.time) -> Self:
        """Opens `sqlite:///FILE` or `postgresql://..`. The file is created, readable by its owner only; its folder is not."""
        return cls(url, clock=clock)

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, work: Callable[[Connection], T]) -> T:
        """Runs a transaction. If `work` raises, nothing of it is left; it may be called more than once."""
        return self._persist(lambda: self._run(work, {_IS_WRITER: True}))

    def _read(self, work: Callable[[Connection], T]) -> T:
        return self._persist(lambda: self._run(work, {}))

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

    def _run(self, work: Callable[[Connection], T], options: dict[str, Any]) -> T:
        with self._engine.connect() as connection, connection.execution_options(**options).begin():
            return work(connection)

    def _use_wal(self) -> None:
        # The mode is kept in the file. SQLite does not wait for others here: `_persist` does.
        connection = self._engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL").fetchall()
        finally:
            connection.close()

    def _persist(self, attempt: Callable[[], T]) -> T:
        """Repeats an attempt that was in others' way."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return attempt()
            except (DBAPIError, sqlite3.DatabaseError) as error:
                if not _is_busy(error):
                    if not _is_outside(error):
                        raise
                    cause = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
                    raise RegistryError(f"the registry's database cannot be used: {cause}") from error
                if time.monotonic() >= deadline:
                    raise RegistryError(
                        f"the registry's database was locked for {self._patience_s:g} s: end the transaction that holds it"
                    ) from error
            # Waiting for different times lets one of several go first.
            time.sleep(random.uniform(0, _PAUSE_S_MAX))


def registry_url(data: Path, url: str | None) -> str:
    """The address of the registry of a data folder, unless another one was given."""
    return url or f"sqlite:///{data / 'registry.db'}"


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in parts small enough for an IN."""
    for start in range(0, len(values), _CHUNK):
        yield values[start : start + _CHUNK]


def _engine(url: str, patience_s: float) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == "sqlite":
            if parsed.database in (None, "", ":memory:"):
                raise UsageError(f"a registry needs a file, as one in memory would be lost: {_URL_HINT}")
            _create_private(Path(str(parsed.database)))
        engine = create_engine(parsed, pool_pre_ping=parsed.get_backend_name() != "sqlite")
    except (ArgumentError, NoSuchModuleError):
        # The text is not shown: it may have a password.
        raise UsageError(f"this is no address of a database; {_URL_HINT}") from None
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the database needs the package {error.name}: pip install '.[postgres]' in the clone"
        ) from None
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(engine, patience_s)
    elif engine.dialect.name == "postgresql":
        _prepare_postgres(engine, patience_s)
    else:
        raise UsageError(f"a registry is kept in SQLite or PostgreSQL, not in {engine.dialect.name}; {_URL_HINT}")
    return engine


def _create_private(path: Path) -> None:
    """Creates the file so that only its owner can read it: secrets of webhooks are in it. SQLite's other files follow it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise UsageError(f"the registry {path} cannot be opened: {error.strerror}") from None


def _prepare_sqlite(engine: Engine, patience_s: float) -> None:
    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _: object) -> None:
        # Without this, sqlite3 begins transactions by itself, and later than we need.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * patience_s)}")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        is_writer = connection.get_execution_options().get(_IS_WRITER, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN")


def _prepare_postgres(engine: Engine, patience_s: float) -> None:
    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        connection.execute(f"SET lock_timeout = {int(1000 * patience_s)}")
        connection.commit()


def _is_busy(error: BaseException) -> bool:
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        # The lower byte is the code, the others say more about it.
        return (getattr(cause, "sqlite_errorcode", 0) or 0) & 0xFF in _SQLITE_BUSY
    return getattr(cause, "sqlstate", None) in _POSTGRES_BUSY


def _is_outside(error: Exception) -> bool:
    """Whether the environment is to blame, and not the program."""
    return isinstance(error, OperationalError | InterfaceError | sqlite3.Error)
