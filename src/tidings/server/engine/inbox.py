"""Requests that gather while a micro-batch runs: they are the next one."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from tidings.model.change import NO_TIME
from tidings.pipeline.stream_lines import TEXT, Run, blocks_of, runs_of
from tidings.server.engine.frames import Changes, Events
from tidings.sources import Record

EVENTS_MAX = 1_000
"""Subscription events of a micro-batch, so that whoever creates many at once keeps nobody waiting."""
_BYTES_MAX = 16 * 2**20
_API = "api"


class Taken(NamedTuple):
    """Requests of one micro-batch. changes, events: as blocks of lines. lines: of each request of changes."""

    changes: list[bytes]
    events: list[bytes]
    requests: list[Changes | Events]
    lines: list[int]


NOTHING = Taken([], [], [], [])


class Inbox:
    """Filled by the thread that reads the connection, emptied by the engine."""

    def __init__(self) -> None:
        self._waiting: deque[Changes | Events] = deque()
        self._is_there = threading.Event()
        self.is_closed = False

    def put(self, request: Changes | Events) -> None:
        self._waiting.append(request)
        self._is_there.set()

    def close(self) -> None:
        self.is_closed = True
        self._is_there.set()

    def wait(self, seconds: float | None) -> bool:
        """Whether a request is there, or comes within so many seconds."""
        return self._is_there.wait(seconds)

    def take(self) -> Taken:
        """Those that wait, up to a limit."""
        self._is_there.clear()
        taken: list[Changes | Events] = []
        size = events = 0
        while self._waiting and size < _BYTES_MAX:
            request = self._waiting[0]
            if isinstance(request, Events):
                if events and events + len(request.lines) > EVENTS_MAX:
                    break
                events += len(request.lines)
            else:
                size += len(request.text)
            taken.append(self._waiting.popleft())
        if self._waiting or self.is_closed:
            self._is_there.set()
        return _blocks(taken)


def place_name(token: int) -> str:
    """The name of a request's place: as names of files are, so that its end ends a transaction."""
    return f"{token:019d}"


def _blocks(taken: list[Changes | Events]) -> Taken:
    changes: list[tuple[str, Run]] = []
    events: list[tuple[str, Run]] = []
    lines = []
    for request in taken:
        place = TEXT + place_name(request.token).encode()
        if isinstance(request, Changes):
            found = runs_of([Record(request.producer, place, NO_TIME, request.text)])
            lines.append(sum(len(run.texts) for _, run in found))
            changes += found
        else:
            events += runs_of([Record(_API, place, NO_TIME, b"\n".join(request.lines))])
            lines.append(len(request.lines))
    return Taken(blocks_of(changes), blocks_of(events), taken, lines)
