"""A stream over HTTP that stays open: connects again and goes on where it was. For threads; see `streaming_async`."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator

import httpx2

from tidings.client.errors import ServiceError, error_of, unreachable
from tidings.client.following import Following, Told
from tidings.client.reconnect import Attempts
from tidings.client.sse import EventParser

# The service says something at least every 15 seconds: silence for longer means that the connection is dead.
TIMEOUT = httpx2.Timeout(10.0, read=40.0)
PATH = "/v1/stream"


class Streaming(Iterator[Told]):
    """New notifications of some subscriptions, in order. Ends when all of them have ended, or when closed by any thread."""

    def __init__(self, http: httpx2.Client, following: Following, on_passed: Callable[[int], object]) -> None:
        """on_passed: called with the seq up to which all was given out, whenever the service has said so."""
        self.following = following
        self._http = http
        self._on_passed = on_passed
        self._attempts = Attempts(following)
        self._given = following.position
        self._waiting: deque[Told] = deque()
        self._response: httpx2.Response | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._parser = EventParser()
        self._closed = threading.Event()
        self._reading = threading.Lock()

    def __next__(self) -> Told:
        while not self._waiting:
            self._on_passed(self.following.passed)
            if self.following.is_over or self._closed.is_set():
                self.close()
                raise StopIteration
            with self._reading:
                wait_seconds = self._open() if self._response is None else self._read()
            if wait_seconds:
                self._closed.wait(wait_seconds)
        told = self._waiting.popleft()
        self._given = told.position
        return told

    @property
    def position(self) -> str | None:
        """Where to resume to get what was not given out yet, and nothing else that could be avoided."""
        return self._given if self._waiting else self.following.position

    def _open(self) -> float:
        """Opens a connection. Gives the seconds to wait if that failed."""
        following = self.following
        request = self._http.build_request(
            "GET", PATH, params=following.query, headers=following.headers, timeout=TIMEOUT
        )
        try:
            response = self._http.send(request, stream=True)
            if response.status_code != 200:
                try:
                    error: ServiceError = error_of(response.status_code, response.headers, response.read())
                finally:
                    response.close()
                return self._attempts.failed(error)
        except httpx2.TransportError as cause:
            return self._attempts.failed(unreachable(str(self._http.base_url), cause))
        self._response = response
        self._chunks = response.iter_bytes()
        self._parser = EventParser()
        self._attempts.opened()
        return 0.0

    def _read(self) -> float:
        """Takes what has come. Gives the seconds to wait if the connection has ended."""
        try:
            chunk = next(self._chunks, None)
        except (httpx2.TransportError, httpx2.StreamError, OSError, ValueError):
            # Also what a socket says that another thread has shut down.
            chunk = None
        if chunk is not None:
            for event in self._parser.feed(chunk):
                self._attempts.heard(self._parser.retry_ms)
                told = self.following.take(event)
                if told is not None:
                    self._waiting.append(told)
            if not self.following.is_torn:
                return 0.0
        self._drop()
        return 0.0 if self.following.is_over or self._closed.is_set() else self._attempts.cut()

    def _drop(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.close()

    def close(self) -> None:
        """Ends the stream, for a thread that waits for its next notification too."""
        self._closed.set()
        response = self._response
        if response is not None:
            stream = response.extensions.get("network_stream")
            under = None if stream is None else stream.get_extra_info("socket")
            if isinstance(under, socket.socket):
                with contextlib.suppress(OSError):
                    under.shutdown(socket.SHUT_RDWR)
        if self._reading.acquire(timeout=TIMEOUT.connect or 10.0):
            try:
                self._drop()
            finally:
                self._reading.release()
