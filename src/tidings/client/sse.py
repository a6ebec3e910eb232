"""Server-sent events, without I/O: bytes in, events out, wherever the bytes were cut.

>>> parser = EventParser()
>>> parser.feed(b"event: change\\nid: k7-12\\nda")
[]
>>> parser.feed(b'ta: {"seq": 12}\\n\\n')
[ServerEvent(name='change', data='{"seq": 12}', id='k7-12')]

Lines end with LF, CR or CRLF, as https://html.spec.whatwg.org/multipage/server-sent-events.html has it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BREAK = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event of a stream. id: the last one that the stream has had, with this event or before it; empty if none."""

    name: str
    data: str
    id: str = ""


class EventParser:
    """Parser of one connection. A half event at the end of a connection is never given out."""

    def __init__(self) -> None:
        self.retry_ms: int | None = None
        """How long the server asks clients to wait before they connect again; None if it has not said."""
        self._pieces: list[bytes] = []
        self._is_first_line = True
        self._is_behind_cr = False
        self._id = ""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that these bytes complete."""
        if self._is_behind_cr and chunk:
            # A CR has ended its line already; the LF of a CRLF that was cut in two adds nothing.
            chunk = chunk.removeprefix(b"\n")
            self._is_behind_cr = False
        if not chunk:
            return []
        self._is_behind_cr = chunk.endswith(b"\r")
        first, *others = _BREAK.split(chunk)
        self._pieces.append(first)
        if not others:
            return []
        *lines, rest = b"".join(self._pieces), *others
        self._pieces = [rest] if rest else []
        found = []
        for line in lines:
            event = self._take(line)
            if event is not None:
                found.append(event)
        return found

    def _take(self, line: bytes) -> ServerEvent | None:
        if self._is_first_line:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._is_first_line = False
        if not line:
            return self._complete()
        name, _, text = line.partition(b":")
        value = text.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value
        elif name == b"id" and "\0" not in value:
            self._id = value
        elif name == b"retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)
        return None

    def _complete(self) -> ServerEvent | None:
        name, data = self._name or "message", self._data
        self._name, self._data = "", []
        return ServerEvent(name, "\n".join(data), self._id) if data else None
