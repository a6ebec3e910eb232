"""Top-k views: the rows a subscription holds, in order, and what changes in them.

A message says that a row is now so, or gone. A view that holds it overwrites or removes it; one that does not takes it in
and lets its last row go. A subscription on several channels holds k rows of each, and shows the first k of all.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.base import FirstRows, Pairs, Told, Views
from tidings.families.topk.subscription import Space
from tidings.model.channel import ChannelKey, channel_column, channel_keys
from tidings.model.codes import Int64Array, codes_of
from tidings.model.message import MessageBatch
from tidings.model.notification import change_tail, delete_change, insert_change, update_change
from tidings.model.points import PointBatch
from tidings.model.render import comparable_rows, render_rows

PLACED, GONE = 1, 2
Held = list[tuple[int, ChannelKey, str, str]]
"""Rows in order: rank, key, text, text to compare by. Of one key there is one row."""


class TopkViews(Views):
    wants_order = True
    remembers = True

    def __init__(self, space: Space) -> None:
        self._space = space
        self._held: dict[int, Held] = {}
        self._home: dict[int, int] = {}
        """With IN: slot -> first slot of its subscription."""
        self._siblings: dict[int, dict[ChannelKey, int]] = {}
        """With IN: first slot -> channel -> slot."""

    def create(self, slots: Int64Array, points: PointBatch) -> None:
        self._held.update((slot, []) for slot in slots.tolist())
        if self._space.has_several_channels:
            home = -1
            keys = channel_keys(points.channel, len(points))
            for slot, key, is_home in zip(slots.tolist(), keys, points.home.tolist(), strict=True):
                home = slot if is_home else home
                self._home[slot] = home
                self._siblings.setdefault(home, {})[key] = slot

    def drop(self, slots: Int64Array) -> None:
        for slot in slots.tolist():
            del self._held[slot]
            self._home.pop(slot, None)
            self._siblings.pop(slot, None)

    def snapshots(self, first: FirstRows) -> list[str]:
        if first.rows is None:
            return first.tails([])
        rows = self._read(first.rows)
        channels = self._channels(first.rows)
        cuts = first.starts.tolist()
        for slot, start, stop in zip(first.slot.tolist(), cuts[:-1], cuts[1:], strict=True):
            for i in range(start, stop):
                own = self._siblings[slot][channels[i]] if self._space.has_several_channels else slot
                insort(self._held[own], rows[i])
        texts = [[row[2] for row in self._shown(slot)] for slot in first.slot.tolist()]
        shown = np.cumsum([0, *map(len, texts)])
        return FirstRows(first.slot, first.seq, shown, None).tails([text for part in texts for text in part])

    def tell(self, messages: MessageBatch, pairs: Pairs) -> Told:
        """Deliveries come in the order of their messages; what counts is the answer before and after each seq."""
        rows, seqs = self._read(messages.payload), messages.seq.tolist()
        told = _Lines()
        before: dict[int, Held] = {}
        seq = -1
        for message, slot, tag in zip(pairs.message.tolist(), pairs.slot.tolist(), pairs.tags.tolist(), strict=True):
            if seqs[message] != seq:
                self._close(seq, before, told)
                seq = seqs[message]
            home = self._home.get(slot, slot)
            if home not in before:
                before[home] = self._shown(home)
            _apply(self._held[slot], rows[message], self._space.k, is_gone=bool(tag & GONE))
        self._close(seq, before, told)
        return told.told()

    def _close(self, seq: int, before: dict[int, Held], told: _Lines) -> None:
        """All that one seq brings has come: tells those whose answers it has changed."""
        for home, old in before.items():
            changes = _difference(old, self._shown(home))
            if changes:
                told.add(seq, home, changes)
        before.clear()

    def _shown(self, home: int) -> Held:
        if not self._space.has_several_channels:
            return list(self._held[home])
        every = [self._held[slot] for slot in self._siblings[home].values()]
        return sorted(row for held in every for row in held)[: self._space.k]

    def _read(self, rows: pa.RecordBatch) -> Held:
        """Rows of a payload as views hold them; a row that has gone has no rank."""
        table, names = self._space.table, self._space.projection
        codes, _ = codes_of(self._space.rank.type, rows.column(self._space.rank.name))
        ranks = (~codes if self._space.descending else codes).tolist()
        keys = channel_keys([channel_column(table.column(n).type, rows.column(n))[0] for n in table.key], rows.num_rows)
        columns = [rows.column(name) for name in names]
        texts = render_rows(names, columns, rows.num_rows)
        return list(zip(ranks, keys, texts, comparable_rows(names, columns, texts), strict=True))

    def _channels(self, rows: pa.RecordBatch) -> list[ChannelKey]:
        if not self._space.has_several_channels:
            return []
        columns = [channel_column(c.type, rows.column(c.name))[0] for c in self._space.equalities]
        return channel_keys(columns, rows.num_rows)

    def dump(self, slots: Int64Array) -> Any:
        return [[[rank, list(key), text, same] for rank, key, text, same in self._held[at]] for at in slots.tolist()]

    def load(self, slots: Int64Array, state: Any) -> None:
        for slot, rows in zip(slots.tolist(), state, strict=True):
            self._held[slot] = [(rank, tuple(key), text, same) for rank, key, text, same in rows]


class _Lines:
    """Notifications gathered one by one; equal ones at one seq share their text."""

    def __init__(self) -> None:
        self._seq: list[int] = []
        self._slot: list[int] = []
        self._tail: list[int] = []
        self._numbers: dict[str, int] = {}

    def add(self, seq: int, slot: int, changes: str) -> None:
        self._seq.append(seq)
        self._slot.append(slot)
        self._tail.append(self._numbers.setdefault(change_tail(seq, changes), len(self._numbers)))

    def told(self) -> Told:
        seq, slot, tail = (np.array(part, np.int64) for part in (self._seq, self._slot, self._tail))
        return Told(seq, slot, tail, list(self._numbers))


def _apply(held: Held, row: tuple[int, ChannelKey, str, str], k: int, *, is_gone: bool) -> None:
    """The client's rule."""
    for i, other in enumerate(held):
        if other[1] == row[1]:
            del held[i]
            break
    if not is_gone:
        insort(held, row)
        if len(held) > k:
            held.pop()


def _difference(old: Held, new: Held) -> str:
    """Changes from one answer to the other as multisets of what is shown; empty if there are none."""
    if old == new:
        return ""
    gone, come = Counter(row[3] for row in old), Counter(row[3] for row in new)
    gone, come = gone - come, come - gone
    changes = []
    known = {row[1]: row for row in old}
    for row in new:
        before = known.get(row[1])
        if before is not None and gone[before[3]] > 0 and come[row[3]] > 0:
            gone[before[3]] -= 1
            come[row[3]] -= 1
            changes.append(update_change(before[2], row[2]))
    for rows, left, change in ((old, gone, delete_change), (new, come, insert_change)):
        for row in rows:
            if left[row[3]] > 0:
                left[row[3]] -= 1
                changes.append(change(row[2]))
    return ", ".join(changes)
