"""Connections to the server, and what its errors mean for users."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from tidings.model.errors import TidingsError, UsageError

if TYPE_CHECKING:
    import psycopg

Connection = Any
"""psycopg.Connection: the package is optional, and imported when a source is opened."""

SESSION = (
    # Values are printed the same way whatever the server or the user has set.
    "SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'iso_8601'; SET TimeZone = 'UTC'; SET extra_float_digits = 1;"
    "SET bytea_output = 'hex'; SET client_encoding = 'UTF8'; SET xmloption = 'content';"
    # A policy that hides rows would make the snapshot incomplete: better an error. Other limits are ours.
    "SET row_security = off; SET statement_timeout = 0; SET lock_timeout = 0;"
)
_IN_USE, _MISSING, _STATE = "55006", "42704", "55000"
_IN_USE_SECONDS = 30.0
_AWAY_SECONDS = 60.0
_START_SECONDS = 2
"""Somebody waits for the answer."""

T = TypeVar("T")


class ServerAway(UsageError):
    """The server cannot be reached, or lets nobody in."""


def driver() -> ModuleType:
    """psycopg. UsageError if it is not installed."""
    try:
        import psycopg
    except ImportError:
        raise UsageError("the source postgres needs psycopg: pip install '.[postgres]' in the clone") from None
    return psycopg


def connect(dsn: str, seconds: int = 10) -> Connection:
    """A session. ServerAway if there is none to be had. seconds: how long it is waited for, if `dsn` does not say."""
    psycopg = driver()
    try:
        known = psycopg.conninfo.conninfo_to_dict(dsn)
        limit = {} if "connect_timeout" in known else {"connect_timeout": seconds}
        connection = psycopg.connect(dsn, autocommit=True, application_name="tidings", **limit)
        connection.execute(SESSION)
    except psycopg.Error as error:
        raise ServerAway(f"cannot connect to PostgreSQL: {_said(error)}. Check the address and the user") from None
    return connection


@contextmanager
def session(dsn: str) -> Iterator[Connection]:
    """A session for work before a run: its errors are the user's to mend."""
    psycopg = driver()
    with connect(dsn, _START_SECONDS) as connection:
        try:
            yield connection
        except psycopg.Error as error:
            raise explained(error) from None


class Server:
    """A session that is opened when it is needed, and opened again when it broke: a server that restarts is waited for."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._open: Connection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_dsn": self._dsn, "_open": None}

    def run(self, work: Callable[[Connection], T]) -> T:
        """Does work that may be done twice. Waits while the server is away, or another session has the slot."""
        psycopg = driver()
        started = time.monotonic()
        while True:
            waited = time.monotonic() - started
            try:
                if self._open is None:
                    self._open = connect(self._dsn)
                return work(self._open)
            except ServerAway as error:
                if waited > _AWAY_SECONDS:
                    raise UsageError(str(error)) from None
            except psycopg.Error as error:
                is_away = self._open is None or self._open.broken or self._open.closed
                if not is_away and (error.sqlstate != _IN_USE or waited > _IN_USE_SECONDS):
                    raise explained(error) from None
                if is_away and waited > _AWAY_SECONDS:
                    raise explained(error) from None
                if is_away:
                    self.close()
            time.sleep(0.2)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def explained(error: psycopg.Error) -> TidingsError:
    """The error of a statement in words that say what to do."""
    said = _said(error)
    advice = ""
    if error.sqlstate == _IN_USE:
        advice = "Another session reads this slot. Stop it, or give each run a slot of its own (option slot)"
    elif error.sqlstate == "42501":
        advice = (
            "The user lacks a right: it needs REPLICATION (ALTER ROLE .. REPLICATION) for the slot, SELECT on the tables, and"
            " to own them if it is to create the publication"
        )
    elif error.sqlstate == "53400":
        advice = "Raise max_replication_slots, or drop a slot that nobody uses (pg_replication_slots shows them)"
    elif error.sqlstate in (_STATE, _MISSING, "58P01"):
        advice = (
            "If the server has removed the log that the slot needs, changes are lost: drop the slot, remove checkpoint and"
            " spool, and begin anew. max_slot_wal_keep_size says how much the server keeps"
        )
    return UsageError(f"PostgreSQL refused: {said}. {advice}".removesuffix(". ") + ("." if advice else ""))


def _said(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
