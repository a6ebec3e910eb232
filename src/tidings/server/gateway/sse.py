"""Server-sent events, as raw ASGI: a handler of a framework costs a third more for each event, and twice the memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tidings.server.gateway.cursor import Event, progress
from tidings.server.gateway.hub import Connection, Hub

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_BLOCKED_SECONDS = 0.2
"""A client whose buffer was full for so long does not keep up."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def encode(events: list[Event], epoch: bytes) -> bytes:
    parts = []
    for event in events:
        id = b"" if event.position is None else b"id: %b-%d\n" % (epoch, event.position)
        parts.append(b"event: %b\n%bdata: %b\n\n" % (event.kind.encode(), id, event.data))
    return b"".join(parts)


async def stream(
    hub: Hub, connection: Connection, receive: Receive, send: Send, headers: list[tuple[bytes, bytes]]
) -> None:
    """Sends a connection's events until the client leaves, all its subscriptions have ended, or the server ends."""
    await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *headers]})
    await send({"type": "http.response.body", "body": b"retry: 1000\n\n", "more_body": True})
    gone = asyncio.create_task(until_gone(receive, connection))
    epoch = hub.log.epoch.encode()
    hub.watch(connection)
    was_blocked = False
    try:
        while not connection.ending:
            events = await connection.events(was_blocked=was_blocked)
            if connection.ending:
                break
            if was_blocked and connection.cursor.gives_up:
                break
            before = time.monotonic()
            await send(
                {
                    "type": "http.response.body",
                    "body": encode(events or [progress(hub.log.passed, is_whole=connection.cursor.is_whole)], epoch),
                    "more_body": True,
                }
            )
            was_blocked = time.monotonic() - before > _BLOCKED_SECONDS
            if not len(connection.cursor):
                break
        if connection.ending != "gone":
            last = connection.cursor.revoked() if connection.ending == "revoked" else []
            await send({"type": "http.response.body", "body": encode(last, epoch), "more_body": False})
    finally:
        gone.cancel()
        hub.leave(connection)


async def until_gone(receive: Receive, connection: Connection) -> None:
    """Ends a connection whose client has left: the server does not end its handler."""
    while (await receive())["type"] != "http.disconnect":
        pass
    connection.end("gone")
