"""The store: a database, its tables, and transactions that several processes and threads run at once.

SQLite, in WAL mode, has one writer at a time: a writing transaction begins with BEGIN IMMEDIATE and waits there, so that none
has read what another then changes. In PostgreSQL writers lock the rows they are about (`SELECT .. FOR UPDATE`) and run side by
side otherwise. A transaction that was refused a lock, or met another one inserting the same key, is run again from its start.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)

from tidings.exchange.errors import StoreError
from tidings.exchange.schema import metadata
from tidings.model.errors import UsageError

T = TypeVar("T")

_IS_WRITER = "is_tidings_writer"
_URL_HINT = "write sqlite:///FILE or postgresql://USER@HOST/DATABASE"
_SCHEMA_LOCK = 0x7464_6E67
"""Number of the advisory lock under which PostgreSQL's tables are created."""
_SQLITE_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_POSTGRES_BUSY = frozenset({"40001", "40P01", "55P03"})
"""serialization_failure, deadlock_detected, lock_not_available."""
_COLLISIONS_MAX = 5
_PAUSE_S_MAX = 0.05


class Store:
    """A database with the tables of an exchange, which are created if they are missing.

    Threads may share a store; a process that is forked opens its own. patience_s: how long a transaction waits for the locks of
    others before StoreError. SQLite needs a file: what is in memory could not be shared.
    """

    def __init__(self, url: str, *, patience_s: float = 30.0) -> None:
        self._patience_s = patience_s
        self.engine = _engine(url, patience_s)
        self._is_sqlite = self.engine.dialect.name == "sqlite"
        try:
            if self._is_sqlite:
                self._persist(self._use_wal)
            self.write(self._create_tables)
        except BaseException:
            self.close()
            raise

    def write(self, work: Callable[[Connection], T]) -> T:
        """Runs a transaction that may write. If `work` raises, nothing of it is left; it may be called more than once."""
        return self._persist(lambda: self._run(work, {_IS_WRITER: True}))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Runs a transaction that sees the store as it was at one moment, and waits for nobody."""
        options = {} if self._is_sqlite else {"isolation_level": "REPEATABLE READ"}
        return self._persist(lambda: self._run(work, options))

    def close(self) -> None:
        """Closes all connections. The store can be used again, and then opens new ones."""
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, work: Callable[[Connection], T], options: dict[str, Any]) -> T:
        with self.engine.connect() as connection, connection.execution_options(**options).begin():
            return work(connection)

    def _use_wal(self) -> None:
        # The mode is kept in the file. SQLite does not wait for others here: `_persist` does.
        connection = self.engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL").fetchall()
        finally:
            connection.close()

    def _create_tables(self, connection: Connection) -> None:
        if not self._is_sqlite:
            # Two sessions that create the same table collide in PostgreSQL, IF NOT EXISTS or not.
            connection.execute(select(func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
        metadata.create_all(connection)

    def _persist(self, attempt: Callable[[], T]) -> T:
        """Repeats an attempt that was in others' way."""
        deadline = time.monotonic() + self._patience_s
        collisions = 0
        while True:
            try:
                return attempt()
            except (DBAPIError, sqlite3.DatabaseError) as error:
                if isinstance(error, IntegrityError):
                    collisions += 1
                    if collisions > _COLLISIONS_MAX:
                        raise
                elif not _is_busy(error):
                    if not _is_outside(error):
                        raise
                    cause = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
                    problem = f"the database cannot be used: {cause}"
                    raise StoreError(f"{problem}; when it can, call again with the same ids") from error
                elif time.monotonic() >= deadline:
                    raise StoreError(
                        f"the database was locked for {self._patience_s:g} s; end the transaction that holds it, or raise"
                        " patience_s"
                    ) from error
            # Waiting for different times lets one of several go first.
            time.sleep(random.uniform(0, _PAUSE_S_MAX))


def _engine(url: str, patience_s: float) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
            raise UsageError("a store needs a file, as other processes could not use one in memory: " + _URL_HINT)
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
        raise UsageError(f"a store is kept in SQLite or PostgreSQL, not in {engine.dialect.name}; {_URL_HINT}")
    return engine


def _prepare_sqlite(engine: Engine, patience_s: float) -> None:
    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _: object) -> None:
        # Without this, sqlite3 begins transactions by itself, and later than we need.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * patience_s)}")
        # A commit that was acknowledged survives a loss of power.
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
    return type(error) is DatabaseError or isinstance(error, OperationalError | InterfaceError | sqlite3.Error)
