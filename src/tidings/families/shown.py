"""Numbers the projections of subscriptions, and renders the tails of notification lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring

import numpy as np

from tidings.kernels.events import Events, Projections, Told
from tidings.kernels.lines import render_tails
from tidings.kernels.rows import I64, U8

Shown = tuple[tuple[int, int, int, str], ...]
"""A projection: (side, number of table, number of column, name in the output) of each shown column."""
_IDLE_MIN = 64


@dataclass
class _Entry:
    number: int
    users: int = 0


class ProjectionTable:
    """Projections by number. `len()` is how many are in use.

    One that nobody uses keeps its number for a while, as who comes next often shows the same: unused ones are at most as
    many as used ones, or _IDLE_MIN. A number that has been given up goes to the next new projection.
    """

    def __init__(self) -> None:
        self._known: dict[Shown, _Entry] = {}
        self._idle: dict[Shown, None] = {}
        """Known projections without users, the one that has been so longest first."""
        self._places: list[Shown] = []
        """[numbers]: the projection; no columns if the number is free."""
        self._free: list[int] = []
        self._arrays: Projections | None = None

    def __len__(self) -> int:
        return len(self._known) - len(self._idle)

    def take(self, shown: Sequence[tuple[int, int, int, str]]) -> int:
        """The number of a projection, which has one more user."""
        key = tuple(shown)
        entry = self._known.get(key)
        if entry is None:
            entry = self._known[key] = self._enter(key)
        elif not entry.users:
            del self._idle[key]
        entry.users += 1
        return entry.number

    def give(self, number: int) -> None:
        """Ends one use of a projection. Nothing that was told with this number may be waiting to be rendered."""
        key = self._places[number]
        entry = self._known[key]
        entry.users -= 1
        if not entry.users:
            self._idle[key] = None
            if len(self._idle) > max(_IDLE_MIN, len(self)):
                oldest = next(iter(self._idle))
                del self._idle[oldest]
                gone = self._known.pop(oldest).number
                self._places[gone] = ()
                self._free.append(gone)

    @property
    def nbytes(self) -> int:
        """Approximate bytes, from the arrays: the entries that these are made of take about three times as much."""
        return 4 * sum(array.nbytes for array in self.arrays)

    @property
    def arrays(self) -> Projections:
        if self._arrays is None:
            self._arrays = self._build()
        return self._arrays

    def _enter(self, key: Shown) -> _Entry:
        self._arrays = None
        if self._free:
            number = self._free.pop()
            self._places[number] = key
        else:
            number = len(self._places)
            self._places.append(key)
        return _Entry(number)

    def _build(self) -> Projections:
        starts, entries, texts = [0], [], []
        for shown in self._places:
            for i, (side, table, column, name) in enumerate(shown):
                entries.append((side, table, column))
                texts.append((", " if i else "{") + encode_basestring(name) + ": ")
            starts.append(len(entries))
        columns = np.array(entries, np.int64).reshape(len(entries), 3)
        data = [text.encode() for text in texts]
        header = np.cumsum([0, *(len(text) for text in data)])
        sides, tables, shown_columns = (np.ascontiguousarray(field) for field in columns.T)
        text = np.frombuffer(bytearray(b"".join(data)) or bytearray(1), np.uint8)
        return Projections(np.array(starts, np.int64), sides, tables, shown_columns, header.astype(np.int64), text)


def render(handles: I64, shown: Projections, events: Events, told: Sequence[Told]) -> tuple[U8, I64]:
    """Renders all tails of `told`. Returns (their texts one after the other, each with a newline; the end of each, [tails])."""
    ends = np.empty(sum(len(part.tails) for part in told), np.int64)
    out = np.empty(1 << 16, np.uint8)
    at, first = 0, 0
    for part in told:
        own, done = ends[first : first + len(part.tails)], 0
        while True:
            done = render_tails(
                handles,
                shown.starts,
                shown.side,
                shown.column,
                shown.header,
                shown.headers,
                part.tails,
                part.changes,
                part.sources,
                events.kind,
                events.seq,
                done,
                out,
                at,
                own,
            )
            at = int(own[done - 1]) if done else at
            if done == len(part.tails):
                break
            longer = np.empty(2 * len(out), np.uint8)
            longer[:at] = out[:at]
            out = longer
        first += len(part.tails)
    return out, ends
