"""Crashes within one process: the connection is dropped at a chosen moment, and whoever was at work hears of it no more."""

from __future__ import annotations

from sqlalchemy import Connection, event

from tidings.exchange import Store


class ConnectionDropped(Exception):
    pass


class CrashPoint:
    """Drops the connection of a store at the nth time that a moment comes, once it is told to.

    Moments: "statement", before one is executed, "commit", before it, and whatever else is reported by `reached`.
    """

    def __init__(self, store: Store) -> None:
        self._moment, self._left = "never", 0
        event.listen(
            store.engine, "before_cursor_execute", lambda connection, *_: self.reached("statement", connection)
        )
        event.listen(store.engine, "commit", lambda connection: self.reached("commit", connection))

    def set(self, moment: str, n: int = 0) -> None:
        self._moment, self._left = moment, n

    def reached(self, moment: str, connection: Connection | None = None) -> None:
        if moment != self._moment:
            return
        self._left -= 1
        if self._left == 0:
            if connection is not None:
                connection.invalidate()
            raise ConnectionDropped
