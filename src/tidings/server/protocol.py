"""The protocols of uvicorn, with what they lack: a limit on the size of headers, and on the time they take to come; and
connections that take little memory while they are open.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tidings.server.api.errors import ApiError, encode
from tidings.server.api.http import new_request_id
from tidings.server.limits import BULK_BODY_BYTES_MAX, HEADER_BYTES_MAX, HEADER_SECONDS_MAX
from tidings.server.waiting import Flag, Inbox

_IGNORED_SECONDS_MAX = 30.0
_WAITING_BYTES = 1 << 14
_SLOW = ApiError("too_slow", "the headers come too slowly")
_LARGE = ApiError("too_large", "the headers are too large")
_BAD = ApiError("bad_request", "this is not HTTP")


class Protocol(HttpToolsProtocol):
    """A connection. A request whose headers are not there within ten seconds, or are too large, ends it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Many small writes that wait take three times the memory of their bytes; the system's own buffer is beside it.
        transport.set_write_buffer_limits(high=_WAITING_BYTES)
        self._header_bytes = 0
        self._ignored_bytes = 0
        self._is_in_body = False
        self._timer: asyncio.TimerHandle | None = None
        self._await_headers()

    def _await_headers(self) -> None:
        self._is_in_body = False
        self._header_bytes = 0
        self._stop_timer()
        self._timer = self.loop.call_later(HEADER_SECONDS_MAX, self._refuse, _SLOW)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def send_400_response(self, msg: str) -> None:
        """For what the parser cannot read."""
        self._answer(_BAD)
        self.transport.close()

    def _answer(self, error: ApiError) -> None:
        id = new_request_id()
        body = encode(error.body(id))
        head = f"HTTP/1.1 {error.status} Refused\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}x-request-id: {id}\r\nconnection: close\r\n\r\n".encode() + body)

    def _refuse(self, error: ApiError) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            if self._header_bytes:
                self._answer(error)
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        if not self._is_in_body:
            if self._timer is None:
                self._await_headers()
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES_MAX and b"\r\n\r\n" not in data[: HEADER_BYTES_MAX + 4]:
                self._refuse(_LARGE)
                return
        elif self.cycle is not None and self.cycle.response_complete:
            # The rest of a body that was refused. Most clients look for an answer when they have sent everything.
            self._ignored_bytes += len(data)
            if self._timer is None:
                self._timer = self.loop.call_later(_IGNORED_SECONDS_MAX, self.transport.close)
            if self._ignored_bytes > BULK_BODY_BYTES_MAX:
                self.transport.close()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._is_in_body = True
        self._ignored_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_in_body = False
        self._header_bytes = 0
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket, half as large as uvicorn's: it forgets the handshake, and waits with less."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.queue = Inbox()  # type: ignore[assignment]
        self.writable = Flag()  # type: ignore[assignment]
        self.writable.set()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.accept" and self.handshake_complete:
            # Whoever parses what comes holds on to the request.
            self.request.headers.clear()
            self.response.headers.clear()


def config(**options: Any) -> dict[str, Any]:
    """Options of uvicorn that the service relies on."""
    return {
        "http": Protocol,
        "ws": WebSocketProtocol,
        "loop": "uvloop",
        "lifespan": "off",
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "date_header": False,
        "timeout_keep_alive": 30,
        # Twice what is allowed, so that there is a frame to refuse by its own code.
        "ws_max_size": 1 << 17,
        "ws_per_message_deflate": False,
        "backlog": 4096,
        **options,
    }
