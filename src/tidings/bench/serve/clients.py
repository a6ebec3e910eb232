"""Thousands of clients in one process: bare sockets and epoll, so that they are not what is measured.

`main` runs in a process of its own. It reads words from stdin, one a line: a number connects so many more
clients, and is answered by `connected` when each has its snapshot; `stop` writes what was received to a file, and ends. Of an
event only its kind, its seq and the moment of its arrival are looked at.
"""

from __future__ import annotations

import gc
import os
import re
import select
import socket
import struct
import time
from pathlib import Path

import msgspec
import numpy as np

SSE, WEBSOCKET = "sse", "websocket"
_CONNECTING_MAX = 64
_READ_BYTES = 1 << 18
_EVENT = re.compile(rb"event: (\w+)\n(?:id: [^\n]*\n)?data: ([^\n]*)\n\n")
_SEQ = re.compile(rb'"seq": (\d+)')
_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
_TEXT, _PING, _PONG, _LONG = 0x81, 0x89, 0x8A, 126


class Settings(msgspec.Struct):
    """ids: a subscription for each client. transports: of each client. out: file for what was received."""

    host: str
    port: int
    ids: list[str]
    transports: list[str]
    out: str


def opening(host: str, id: str, transport: str) -> bytes:
    """The request that opens a connection; for a WebSocket its handshake."""
    if transport == SSE:
        return f"GET /v1/subscriptions/{id}/stream HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()
    upgrade = f"upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-key: {_KEY}\r\nsec-websocket-version: 13\r\n"
    return f"GET /v1/ws HTTP/1.1\r\nhost: {host}\r\n{upgrade}sec-websocket-protocol: tidings.v1\r\n\r\n".encode()


def subscribing(id: str) -> bytes:
    """The frame that follows a subscription, masked by zeros."""
    text = msgspec.json.encode({"type": "subscribe", "subscription": id})
    size = struct.pack(">B", 0x80 | len(text)) if len(text) < _LONG else struct.pack(">BH", 0x80 | _LONG, len(text))
    return bytes([_TEXT]) + size + bytes(4) + text


class Clients:
    """All clients. Columns of what was received: client, seq, time in ns, net_from (-1: not a net change)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._poll = select.epoll()
        self._sockets: dict[int, tuple[int, socket.socket]] = {}
        self._rests = [b""] * len(settings.ids)
        self._is_upgraded = [False] * len(settings.ids)
        self._begun = [-1] * len(settings.ids)
        """Seq of each client's first snapshot."""
        self._received: list[tuple[int, int, int, int]] = []
        self._wanted = self._opened = self._ready = 0
        self._is_waited_for = False
        self._lost = self._resets = 0

    def run(self) -> None:
        commands = b""
        self._poll.register(0, select.EPOLLIN)
        while True:
            for handle, _ in self._poll.poll():
                if handle:
                    self._read(handle)
                    continue
                commands += os.read(0, 1 << 12)
                *words, commands = commands.split(b"\n")
                for word in words:
                    if word == b"stop":
                        self._write()
                        return
                    self._wanted += int(word)
                    self._is_waited_for = True
            while self._opened < self._wanted and self._opened - self._ready < _CONNECTING_MAX:
                self._open(self._opened)
            if self._is_waited_for and self._ready + self._lost >= self._wanted:
                self._is_waited_for = False
                os.write(1, b"connected\n")

    def _open(self, client: int) -> None:
        settings = self._settings
        found = socket.create_connection((settings.host, settings.port))
        found.sendall(opening(settings.host, settings.ids[client], settings.transports[client]))
        found.setblocking(False)
        self._sockets[found.fileno()] = (client, found)
        self._poll.register(found.fileno(), select.EPOLLIN)
        self._opened += 1

    def _read(self, handle: int) -> None:
        client, source = self._sockets[handle]
        try:
            data = source.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now = time.monotonic_ns()
        if not data:
            self._lost += 1
            self._poll.unregister(handle)
            del self._sockets[handle]
            source.close()
            return
        if self._rests[client]:
            data = self._rests[client] + data
        if self._settings.transports[client] == SSE:
            self._rests[client] = self._events(client, data, now)
        else:
            self._rests[client] = self._frames(client, source, data, now)

    def _events(self, client: int, data: bytes, now: int) -> bytes:
        """Takes in whole events; gives what is left. Sizes of chunks stand between events, where nothing looks for them."""
        end = 0
        for match in _EVENT.finditer(data):
            self._take(client, match[1], match[2], now)
            end = match.end()
        return data[end:]

    def _frames(self, client: int, source: socket.socket, data: bytes, now: int) -> bytes:
        at = 0
        if not self._is_upgraded[client]:
            at = data.find(b"\r\n\r\n") + 4
            if at < 4:
                return data
            self._is_upgraded[client] = True
            source.sendall(subscribing(self._settings.ids[client]))
        while at + 2 <= len(data):
            size, head = data[at + 1], 2
            if size >= _LONG:
                head = 4 if size == _LONG else 10
                if at + head > len(data):
                    break
                size = int.from_bytes(data[at + 2 : at + head])
            if at + head + size > len(data):
                break
            if data[at] == _TEXT:
                text = data[at + head : at + head + size]
                self._take(client, text[len(b'{"type": "') : text.index(b'"', 10)], text, now)
            elif data[at] == _PING:
                # Who does not answer is taken for dead. Masked by zeros, and of less than 126 bytes, as all such frames are.
                source.sendall(bytes([_PONG, 0x80 | size]) + bytes(4) + data[at + head : at + head + size])
            at += head + size
        return data[at:]

    def _take(self, client: int, kind: bytes, text: bytes, now: int) -> None:
        if kind == b"change":
            seq = int(_SEQ.search(text)[1])  # type: ignore[index]
            at = text.find(b'"net_from": ')
            net_from = -1 if at < 0 else int(text[at + 12 : text.index(b",", at)])
            self._received.append((client, seq, now, net_from))
        elif kind == b"snapshot":
            if self._begun[client] < 0:
                self._ready += 1
                self._begun[client] = int(_SEQ.search(text)[1])  # type: ignore[index]
            else:
                self._resets += 1
        elif kind in (b"reset", b"end", b"error"):
            self._resets += 1

    def _write(self) -> None:
        columns = np.array(self._received, np.int64).reshape(-1, 4)
        np.savez(self._settings.out, begun=self._begun, received=columns, lost=self._lost, resets=self._resets)


def main(path: str) -> None:
    # To look for garbage among all that was received takes a third of a second, in which nothing seems to arrive.
    gc.disable()
    settings = msgspec.json.decode(Path(path).read_bytes(), type=Settings)
    Clients(settings).run()
