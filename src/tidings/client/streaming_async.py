"""A stream over HTTP that stays open: connects again and goes on where it was. For asyncio; see `streaming`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

import httpx2

from tidings.client.errors import ServiceError, error_of, unreachable
from tidings.client.following import Following, Told
from tidings.client.reconnect import Attempts
from tidings.client.sse import EventParser
from tidings.client.streaming import PATH, TIMEOUT


class AsyncStreaming(AsyncIterator[Told]):
    """New notifications of some subscriptions, in order. Ends when all of them have ended, or when closed."""

    def __init__(self, http: httpx2.AsyncClient, following: Following, on_passed: Callable[[int], object]) -> None:
        """on_passed: called with the seq up to which all was given out, whenever the service has said so."""
        self.following = following
        self._http = http
        self._on_passed = on_passed
        self._attempts = Attempts(following)
        self._given = following.position
        self._waiting: deque[Told] = deque()
        self._response: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._parser = EventParser()
        self._is_closed = False

    async def __anext__(self) -> Told:
        while not self._waiting:
            self._on_passed(self.following.passed)
            if self.following.is_over or self._is_closed:
                await self.close()
                raise StopAsyncIteration
            wait_seconds = await (self._open() if self._response is None else self._read())
            if wait_seconds:
                await asyncio.sleep(wait_seconds)
        told = self._waiting.popleft()
        self._given = told.position
        return told

    @property
    def position(self) -> str | None:
        """Where to resume to get what was not given out yet, and nothing else that could be avoided."""
        return self._given if self._waiting else self.following.position

    async def _open(self) -> float:
        """Opens a connection. Gives the seconds to wait if that failed."""
        following = self.following
        request = self._http.build_request(
            "GET", PATH, params=following.query, headers=following.headers, timeout=TIMEOUT
        )
        try:
            response = await self._http.send(request, stream=True)
            if response.status_code != 200:
                try:
                    error: ServiceError = error_of(response.status_code, response.headers, await response.aread())
                finally:
                    await response.aclose()
                return self._attempts.failed(error)
        except httpx2.TransportError as cause:
            return self._attempts.failed(unreachable(str(self._http.base_url), cause))
        self._response = response
        self._chunks = response.aiter_bytes()
        self._parser = EventParser()
        self._attempts.opened()
        return 0.0

    async def _read(self) -> float:
        """Takes what has come. Gives the seconds to wait if the connection has ended."""
        try:
            chunk = None if self._chunks is None else await anext(self._chunks, None)
        except (httpx2.TransportError, httpx2.StreamError):
            chunk = None
        if chunk is not None:
            for event in self._parser.feed(chunk):
                self._attempts.heard(self._parser.retry_ms)
                told = self.following.take(event)
                if told is not None:
                    self._waiting.append(told)
            if not self.following.is_torn:
                return 0.0
        await self._drop()
        return 0.0 if self.following.is_over or self._is_closed else self._attempts.cut()

    async def _drop(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            await response.aclose()

    async def close(self) -> None:
        """Ends the stream. A task that waits for its next notification is to be cancelled instead."""
        self._is_closed = True
        await self._drop()
