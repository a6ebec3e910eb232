"""A database that several processes and threads share, and its transactions: SQLite in WAL mode, or PostgreSQL.

SQLite has one writer at a time: a writing transaction begins with BEGIN IMMEDIATE and waits there, so that none has read what
another then changes. In PostgreSQL writers lock the rows they are about (`SELECT .. FOR UPDATE`) and run beside each other.
A transaction that was refused a lock is run again from its start. What was committed survives a loss of power.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)

from tidings.model.errors import TidingsError, UsageError

T = TypeVar("T")

_IS_WRITER = "is_tidings_writer"
_URL_HINT = "write sqlite:///FILE or postgresql://USER@HOST/DATABASE"
_SQLITE_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_POSTGRES_BUSY = frozenset({"40001", "40P01", "55P03"})
"""serialization_failure, deadlock_detected, lock_not_available."""
_PAUSE_S_MAX = 0.05


class Database(ABC):
    """Opened with its tables, which are created or brought up to date.

    Any thread may call; a process that is forked opens its own. patience_s: how long a transaction waits for the locks of
    others. SQLite needs a file: what is in memory could not be shared.
    """

    what: ClassVar[str]
    """What is kept in it, for messages: `registry`."""
    error: ClassVar[type[TidingsError]]
    """Raised where the database is away, full, or locked for too long."""
    advice: ClassVar[str] = ""
    """What to do then, behind the message."""
    collisions_max: ClassVar[int] = 0
    """How often a transaction is run again that has met another one inserting the same key."""
    is_private: ClassVar[bool] = False
    """Whether the file of SQLite, and those beside it, may be read by their owner only."""

    def __init__(self, url: str, *, patience_s: float = 30.0) -> None:
        self._patience_s = patience_s
        self.engine = self._open(url)
        self._is_sqlite = self.engine.dialect.name == "sqlite"
        try:
            if self._is_sqlite:
                self._persist(self._use_wal)
            self.write(self._create_tables)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _create_tables(self, connection: Connection) -> None: ...

    def write(self, work: Callable[[Connection], T]) -> T:
        """Runs a transaction that may write. If `work` raises, nothing of it is left; it may be called more than once."""
        return self._persist(lambda: self._run(work, {_IS_WRITER: True}))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Runs a transaction that sees the database as it was at one moment, and waits for nobody."""
        options = {} if self._is_sqlite else {"isolation_level": "REPEATABLE READ"}
        return self._persist(lambda: self._run(work, options))

    def close(self) -> None:
        """Closes all connections. The database can be used again, and then opens new ones."""
        self.engine.dispose()

    def __enter__(self) -> Self:
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
                    if collisions > self.collisions_max:
                        raise
                elif not _is_busy(error):
                    if not _is_outside(error):
                        raise
                    cause = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
                    raise self.error(f"the database of the {self.what} cannot be used: {cause}{self.advice}") from error
                elif time.monotonic() >= deadline:
                    raise self.error(
                        f"the database of the {self.what} was locked for {self._patience_s:g} s; end the transaction that holds"
                        " it, or raise patience_s"
                    ) from error
            # Waiting for different times lets one of several go first.
            time.sleep(random.uniform(0, _PAUSE_S_MAX))

    def _open(self, url: str) -> Engine:
        try:
            parsed = make_url(url)
            if parsed.drivername == "postgresql":
                parsed = parsed.set(drivername="postgresql+psycopg")
            is_sqlite = parsed.get_backend_name() == "sqlite"
            if is_sqlite and parsed.database in (None, "", ":memory:"):
                raise UsageError(f"the {self.what} needs a file, as nobody could share one in memory: {_URL_HINT}")
            if is_sqlite and self.is_private:
                _create_private(Path(str(parsed.database)), self.what)
            engine = create_engine(parsed, pool_pre_ping=not is_sqlite)
        except (ArgumentError, NoSuchModuleError):
            # The text is not shown: it may have a password.
            raise UsageError(f"this is no address of a database; {_URL_HINT}") from None
        except ModuleNotFoundError as error:
            needed = f"the database needs the package {error.name}"
            raise UsageError(f"{needed}: pip install '.[postgres]' in the clone") from None
        if engine.dialect.name == "sqlite":
            _prepare_sqlite(engine, self._patience_s)
        elif engine.dialect.name == "postgresql":
            _prepare_postgres(engine, self._patience_s)
        else:
            raise UsageError(
                f"the {self.what} is kept in SQLite or PostgreSQL, not in {engine.dialect.name}; {_URL_HINT}"
            )
        return engine


def _create_private(path: Path, what: str) -> None:
    """Creates the file so that only its owner can read it. SQLite's other files follow it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise UsageError(f"the {what} {path} cannot be opened: {error.strerror}") from None


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
