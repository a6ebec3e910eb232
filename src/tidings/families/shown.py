"""Numbers the projections of subscriptions, and renders the tails of notification lines, netted ones too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring

import numpy as np

from tidings.kernels.events import Projections, Told
from tidings.kernels.handles import handles_of
from tidings.kernels.lines import render_tails
from tidings.kernels.net import net_tails
from tidings.kernels.rows import I64, U8
from tidings.model.text_column import TextColumn

Shown = tuple[tuple[int, int, int, str], ...]
"""A projection: (side, number of table, number of column, name in the output) of each shown column."""
_IDLE_MIN = 64
_ROOM = 1 << 14
"""Bytes for tails to begin with."""
_NOTHING = np.empty(0, np.int64)


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
        self._handles: I64 | None = None

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

    @property
    def handles(self) -> I64:
        """Of `arrays`."""
        if self._handles is None:
            self._handles = handles_of(self.arrays)
        return self._handles

    def _enter(self, key: Shown) -> _Entry:
        self._arrays = self._handles = None
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


NO_TEXT: U8 = np.empty(0, np.uint8)
"""Of the ids of transactions, where there are none."""


class Tails:
    """Texts of tails, one after the other, each with a newline."""

    def __init__(self) -> None:
        self.text: U8 = np.empty(_ROOM, np.uint8)
        self._parts: list[I64] = []
        self._count = self._end = 0

    def __len__(self) -> int:
        return self._count

    @property
    def ends(self) -> I64:
        """[tails]: the end of each."""
        return self._parts[0] if len(self._parts) == 1 else np.concatenate([_NOTHING, *self._parts])

    def add(self, count: int, put: Callable[..., int], *given: I64 | U8) -> None:
        """Adds `count` tails. put(*given, first, text, at, ends) writes those from `first` on to text[at:]; gives how many are
        done.
        """
        ends, done, at = np.empty(count, np.int64), 0, self._end
        while (done := put(*given, done, self.text, at, ends)) < count:
            at = int(ends[done - 1]) if done else at
            longer = np.empty(2 * len(self.text), np.uint8)
            longer[:at] = self.text[:at]
            self.text = longer
        self._parts.append(ends)
        self._count += count
        self._end = int(ends[-1]) if count else self._end


def render(tails: Tails, handles: I64, shown: I64, words: I64, told: Told, tx_text: U8 = NO_TEXT) -> None:
    """Renders all tails of `told`. Arguments as those of `render_tails`."""
    tails.add(len(told.tails), render_tails, handles, shown, told.tails, told.changes, told.sources, words, tx_text)


def rendered(handles: I64, shown: I64, words: I64, told: Told) -> TextColumn:
    """All tails of `told`, where there are no others."""
    text, ends = np.empty(_ROOM, np.uint8), np.empty(len(told.tails), np.int64)
    done = render_tails(handles, shown, told.tails, told.changes, told.sources, words, NO_TEXT, 0, text, 0, ends)
    if done == len(ends):
        return TextColumn(text, ends)
    tails = Tails()
    render(tails, handles, shown, words, told)
    return TextColumn(tails.text, tails.ends)


def render_net(
    tails: Tails,
    handles: I64,
    shown: I64,
    words: I64,
    told: Told,
    tx_text: U8,
    group_starts: I64,
    group_tails: I64,
) -> None:
    """Renders the net effect of groups of tails of `told`; of a group without effect the text is empty."""
    rows = handles, shown, told.tails, told.changes, told.sources, words, tx_text
    tails.add(len(group_starts) - 1, net_tails, *rows, group_starts, group_tails)
