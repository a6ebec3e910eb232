"""The front's end of the engine process: starts it, asks it, hears of every micro-batch, starts it again if it dies."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import time
from collections.abc import Callable

from tidings.model.errors import RunError, UsageError
from tidings.server.engine.frames import (
    HEAD,
    Broken,
    Changes,
    Done,
    Events,
    Result,
    Settings,
    Stalled,
    Step,
    Stored,
    decode_report,
    frame,
)
from tidings.server.engine.spawn import Spawned, spawn
from tidings.terminal import say

_RESTART_SECONDS = 0.2
_RESTART_SECONDS_MAX = 5.0
_END_SECONDS = 8.0
_STALLED_SECONDS = 0.5
"""After a full disk requests are refused for so long; then one finds out whether there is room again."""
_RECEIVED_BYTES = 1 << 28
EVENTS_MAX = 1_000
"""Subscription events of one request."""


class NotReady(Exception):
    """The engine cannot take a request now; its text says why."""


class EngineLink:
    """One engine process at a time. on_done: called with every micro-batch, before whoever asked for it is answered."""

    def __init__(self, settings: Settings, on_done: Callable[[Done], object], spawned: Spawned | None = None) -> None:
        """spawned: the first process, if it has been started already."""
        self._settings = settings
        self._spawned = spawned
        self._on_done = on_done
        self._tokens = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Result]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._first = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False
        self.is_ready = False
        self._stalled_at = 0.0
        self.stalled = ""
        """Why nothing can be taken; empty: it can."""
        self.starts = 0

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Returns when the first micro-batch has run. UsageError or RunError if the engine cannot be started."""
        self._task = asyncio.create_task(self._keep())
        await self._first

    async def _keep(self) -> None:
        wait = _RESTART_SECONDS
        while not self._is_ending:
            reason = await self._live()
            self.is_ready = False
            self._fail(reason or "the engine has ended; it is being started again")
            if self._is_ending:
                return
            if not self._first.done():
                self._first.set_exception(RunError(reason or "the engine ended before it was ready"))
                return
            say(f"the engine ended{': ' + reason if reason else ''}; starting it again")
            await asyncio.sleep(wait)
            wait = min(2 * wait, _RESTART_SECONDS_MAX) if self.starts > 3 else _RESTART_SECONDS

    async def _live(self) -> str:
        """One life of the process. Gives what it said at its end, if anything."""
        self._process, connection = self._spawned or spawn(self._settings.engine)
        self._spawned = None
        self.starts += 1
        reader, self._writer = await asyncio.open_connection(sock=connection, limit=_RECEIVED_BYTES)
        self._writer.write(frame(self._settings))
        reason = ""
        try:
            while True:
                (size,) = HEAD.unpack(await reader.readexactly(HEAD.size))
                report = decode_report(await reader.readexactly(size))
                if isinstance(report, Done):
                    self._done(report)
                elif isinstance(report, Stored):
                    self._answer(report.results)
                elif isinstance(report, Stalled):
                    if not self.stalled:
                        say(report.reason)
                    self.stalled, self._stalled_at = report.reason, time.monotonic()
                elif isinstance(report, Step):
                    say(report.text)
                else:
                    reason = report.reason
                    self._broken(report)
        except (asyncio.IncompleteReadError, OSError):
            pass
        self._writer.close()
        self._writer = None
        await asyncio.to_thread(self._process.wait)
        return reason

    def _broken(self, report: Broken) -> None:
        if not self._first.done():
            kind = UsageError if report.is_usage else RunError
            self._first.set_exception(kind(report.reason))
            self._is_ending = True

    def _done(self, report: Done) -> None:
        self._on_done(report)
        self._answer(report.results)
        self.is_ready = True
        if not self._first.done():
            self._first.set_result(None)

    def _answer(self, results: list[Result]) -> None:
        if not any(result.failed for result in results):
            self.stalled = ""
        for result in results:
            future = self._waiting.pop(result.token, None)
            if future is not None and not future.done():
                future.set_result(result)

    def _fail(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(NotReady(reason))

    async def changes(self, producer: str, text: bytes) -> Result:
        """Durable, applied and in the log when this returns; on Spark durable only."""
        return await self._ask(lambda token: Changes(token, producer, text))

    async def events(self, lines: list[bytes]) -> Result:
        """Answers to at most EVENTS_MAX subscription events."""
        return await self._ask(lambda token: Events(token, lines))

    async def _ask(self, make: Callable[[int], Changes | Events]) -> Result:
        if self._writer is None or not self.is_ready:
            raise NotReady("the engine is starting")
        if self.stalled and time.monotonic() - self._stalled_at < _STALLED_SECONDS:
            raise NotReady(self.stalled)
        token = next(self._tokens)
        future = self._waiting[token] = asyncio.get_running_loop().create_future()
        self._writer.write(frame(make(token)))
        try:
            await self._writer.drain()
        except OSError:
            raise NotReady("the engine has ended; it is being started again") from None
        result: Result = await future
        if result.failed:
            raise NotReady(result.failed)
        return result

    async def close(self) -> None:
        """Lets the engine finish its micro-batch and end."""
        self._is_ending = True
        if self._writer is not None:
            self._writer.close()
        if self._task is not None:
            done, _ = await asyncio.wait([self._task], timeout=_END_SECONDS)
            if not done and self._process is not None:
                self._process.kill()
                await asyncio.wait([self._task], timeout=1.0)
