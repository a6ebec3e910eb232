"""WebSocket, subprotocol `tidings.v1`: many subscriptions on one connection, which come and go while it is open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from tidings.server.gateway.cursor import Event, progress
from tidings.server.gateway.hub import Connection, Hub
from tidings.server.gateway.sse import Receive, Send

PROTOCOL = "tidings.v1"
BAD_FRAME, UNAUTHENTICATED, TOO_SLOW, QUOTA, RESTART = 4400, 4401, 4408, 4429, 1012
AUTH_SECONDS = 10.0
FRAME_BYTES_MAX = 1 << 16
_BLOCKED_SECONDS = 0.2


class ClientFrame(msgspec.Struct, forbid_unknown_fields=True):
    """What a client says."""

    type: Literal["auth", "subscribe", "unsubscribe", "ping"]
    token: str | None = None
    subscription: str | None = None
    after: str | None = None
    every_seconds: float | None = None


decode = msgspec.json.Decoder(ClientFrame).decode


class Closed(Exception):
    """The connection is closed with a code."""

    def __init__(self, code: int, reason: str = "") -> None:
        self.code = code
        self.reason = reason


Subscribe = Callable[[Connection, ClientFrame], Awaitable[bytes | None]]
"""Begins to follow a subscription. Gives an error as JSON, or None."""


class Session:
    """One connection whose client is known."""

    def __init__(self, hub: Hub, connection: Connection, receive: Receive, send: Send, subscribe: Subscribe) -> None:
        self._hub = hub
        self._connection = connection
        self._receive = receive
        self._send = send
        self._subscribe = subscribe

    async def run(self) -> None:
        log = self._hub.log
        await self._text(b'{"type": "ready", "epoch": "%b", "seq": %d}' % (log.epoch.encode(), log.passed))
        self._hub.watch(self._connection)
        hearing = asyncio.create_task(self._hear())
        try:
            await self._tell()
            if hearing.done() and not hearing.cancelled() and (error := hearing.exception()) is not None:
                raise error
        finally:
            hearing.cancel()
            self._hub.leave(self._connection)

    async def _tell(self) -> None:
        connection, epoch = self._connection, self._hub.log.epoch.encode()
        was_blocked = False
        while not connection.ending:
            events = await connection.events(was_blocked=was_blocked)
            if connection.ending:
                break
            if was_blocked and connection.cursor.gives_up:
                raise Closed(TOO_SLOW, "the client does not keep up")
            before = time.monotonic()
            if not events:
                events = [progress(self._hub.log.passed, is_whole=connection.cursor.is_whole)]
            for event in events:
                await self._text(_framed(event, epoch))
            was_blocked = time.monotonic() - before > _BLOCKED_SECONDS
        if connection.ending == "restart":
            raise Closed(RESTART, "the service is stopping")
        if connection.ending == "revoked":
            for event in connection.cursor.revoked():
                await self._text(_framed(event, epoch))
            raise Closed(UNAUTHENTICATED, "the key was revoked, or has expired")

    async def _hear(self) -> None:
        try:
            while True:
                message = await self._receive()
                if message["type"] == "websocket.disconnect":
                    return
                await self._handle(frame_of(message))
        finally:
            self._connection.end("gone")

    async def _handle(self, frame: ClientFrame) -> None:
        if frame.type == "ping":
            await self._text(b'{"type": "pong"}')
        elif frame.type == "auth":
            return
        elif frame.subscription is None:
            raise Closed(BAD_FRAME, "which subscription?")
        else:
            error = await self._subscribe(self._connection, frame)
            if error is not None:
                await self._text(error)
            self._hub.watch(self._connection)
            self._connection.wake()

    async def _text(self, data: bytes) -> None:
        await self._send({"type": "websocket.send", "text": data.decode()})


def frame_of(message: Any) -> ClientFrame:
    """The frame of a message. Closed if it is none."""
    data = message.get("text")
    if data is None or len(data.encode()) > FRAME_BYTES_MAX:
        raise Closed(BAD_FRAME, "a frame is text, of 64 KiB at most")
    try:
        return decode(data)
    except msgspec.MsgspecError as error:
        raise Closed(BAD_FRAME, str(error)[:100]) from None


def _framed(event: Event, epoch: bytes) -> bytes:
    position = b"" if event.position is None else b', "position": "%b-%d"' % (epoch, event.position)
    return b'{"type": "%b"%b, %b' % (event.kind.encode(), position, event.data[1:])
