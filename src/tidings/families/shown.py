"""Numbers the projections of subscriptions, and renders the tails of notification lines."""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring

import numpy as np

from tidings.kernels.events import Events, Projections, Told
from tidings.kernels.lines import render_tails
from tidings.kernels.rows import I64, U8


class ProjectionTable:
    """Projections by number. A projection is a list of (side, number of table, number of column, name in the output)."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[tuple[int, int, int, str], ...], int] = {}
        self._arrays: Projections | None = None

    def number(self, shown: Sequence[tuple[int, int, int, str]]) -> int:
        key = tuple(shown)
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._numbers)
            self._arrays = None
        return known

    @property
    def arrays(self) -> Projections:
        if self._arrays is None:
            self._arrays = self._build()
        return self._arrays

    def _build(self) -> Projections:
        starts, entries, texts = [0], [], []
        for shown in self._numbers:
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
