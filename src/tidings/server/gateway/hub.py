"""The hub: the reader of the notice log, and whom it wakes when a subscription has something new."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from tidings.model.codes import Int64Array
from tidings.server.auth import Identity
from tidings.server.garbage import Collector
from tidings.server.gateway.cursor import Cursor, Event
from tidings.server.log.reader import LogReader
from tidings.server.waiting import Flag

KEEP_ALIVE_SECONDS = 15.0
_TICK_SECONDS = 1.0


class Connection:
    """A client that listens: a cursor, and what wakes it."""

    def __init__(self, hub: Hub, cursor: Cursor, caller: Identity) -> None:
        self._hub = hub
        self.cursor = cursor
        self.caller = caller
        self._wake = Flag()
        self._is_touched = False
        self.said_at = time.monotonic()
        """When it was last told anything."""
        self.ending = ""
        """Why the connection must be closed: gone, restart or revoked; empty: it need not."""

    def wake(self) -> None:
        self._wake.set()

    def touch(self, number: int) -> None:
        self.cursor.touch((number,))
        self._is_touched = True
        self._wake.set()

    def end(self, why: str) -> None:
        self.ending = why
        self._wake.set()

    async def news(self) -> None:
        """Waits until a subscription may have something new, or the service stops."""
        while not self.ending and not self._is_touched:
            await self._wake.wait()
            self._wake.clear()

    async def events(self, *, was_blocked: bool) -> list[Event]:
        """Waits until there is something to say, or it is time for a sign of life: then there are none."""
        while not self.ending:
            now = time.monotonic()
            self._wake.clear()
            if found := self.cursor.read(now, was_blocked=was_blocked):
                self.said_at = now
                self._hub.watch(self)
                return found
            if now - self.said_at >= KEEP_ALIVE_SECONDS - 2 * _TICK_SECONDS:
                self.said_at = now
                return []
            await self._wake.wait()
        return []


class Hub:
    """Watches over the log of one data folder, and all who listen to it."""

    def __init__(self, folder: Path) -> None:
        self.log = LogReader(folder)
        self._watchers: dict[int, set[Connection]] = defaultdict(set)
        self._sorted: Int64Array | None = None
        """Numbers of all who are watched, in order; None: to be made anew."""
        self._watched: dict[Connection, set[int]] = {}
        self.on_news: list[Callable[[Int64Array], object]] = []
        """Called with the numbers of subscriptions that have something new."""

    @property
    def connections(self) -> Iterable[Connection]:
        return self._watched

    def is_watched(self, number: int) -> bool:
        return number in self._watchers

    def __len__(self) -> int:
        return len(self._watched)

    def refresh(self, end: int | None = None) -> None:
        """Takes in what the log has now, and wakes whoever it is for."""
        numbers = self.log.refresh(end)
        if not len(numbers):
            return
        for call in self.on_news:
            call(numbers)
        if not self._watchers:
            return
        if self._sorted is None:
            self._sorted = np.sort(np.fromiter(self._watchers, np.int64, len(self._watchers)))
        at = np.minimum(np.searchsorted(self._sorted, numbers), len(self._sorted) - 1)
        for number in numbers[self._sorted[at] == numbers].tolist():
            for connection in self._watchers[number]:
                connection.touch(number)

    def watch(self, connection: Connection) -> None:
        """Brings what a connection is woken by up to date with its cursor."""
        wanted = set(connection.cursor.numbers)
        known = self._watched.setdefault(connection, set())
        if wanted == known:
            return
        for number in known - wanted:
            self._forget(number, connection)
        for number in wanted - known:
            self._watchers[number].add(connection)
            self._sorted = None
        self._watched[connection] = wanted

    def revoke(self, tenant: str, key: str | None) -> None:
        """Ends what was opened with a key of a tenant; None: with any, or a token."""
        for connection in self._watched:
            caller = connection.caller
            if caller.tenant == tenant and (key is None or caller.key == key):
                connection.end("revoked")

    def leave(self, connection: Connection) -> None:
        for number in self._watched.pop(connection, ()):
            self._forget(number, connection)

    def _forget(self, number: int, connection: Connection) -> None:
        self._watchers[number].discard(connection)
        if not self._watchers[number]:
            del self._watchers[number]
            self._sorted = None

    def tick(self, now: float) -> None:
        """Wakes those that need a sign of life, or whose net change is due; ends those whose caller has expired."""
        clock = time.time()
        for connection in self._watched:
            if connection.caller.subscriptions is None and not connection.caller.is_valid(clock):
                connection.end("revoked")
            is_silent = now - connection.said_at >= KEEP_ALIVE_SECONDS - 2 * _TICK_SECONDS
            due = connection.cursor.due()
            if is_silent or (due is not None and due <= now):
                connection.wake()

    async def run(self) -> None:
        """Ticks until it is cancelled."""
        garbage = Collector()
        while True:
            self.tick(time.monotonic())
            garbage.tick(time.monotonic())
            await asyncio.sleep(_TICK_SECONDS)
