"""Select views: turn messages into notification lines.

Messages carry the row before and after, and views hold no rows; of strategy `entering` they hold the long columns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.strategies.select.table_form import TableSpace
from research.views.protocols import FirstRows, Matching, Notifications, Pairs, Views
from research.views.select.held_columns import HeldColumns
from research.views.select.matcher import Found, Matcher, kept
from tidings.model.codes import Int64Array
from tidings.model.points import PointBatch
from tidings.model.render import render_rows


class SelectViews(Views, Matching):
    def __init__(self, space: TableSpace) -> None:
        self._space = space
        self._matcher = Matcher(space)
        self._held = HeldColumns(space.table)
        self._count = 0

    @property
    def nbytes(self) -> int:
        return self._matcher.nbytes

    def create(self, slots: Int64Array, points: PointBatch) -> None:
        self._matcher.add(slots, points)
        self._count += len(slots)

    def drop(self, slots: Int64Array) -> None:
        self._matcher.remove(slots)
        self._count -= len(slots)
        if not self._count:
            self._held.clear()

    def coords(self, slots: Int64Array) -> Int64Array:
        return self._matcher.coords(slots)

    def snapshots(self, first: FirstRows) -> list[str]:
        rows = first.rows
        if rows is None:
            return first.tails([])
        owner = np.repeat(np.arange(len(first.slot)), np.diff(first.starts))
        self._held.take_rows(rows, first.seq[owner])
        number, columns = self._matcher.shown(first.slot)
        number = number[owner]
        texts = [""] * rows.num_rows
        for each in np.unique(number).tolist():
            at = np.flatnonzero(number == each)
            names = [self._space.columns[i].name for i in columns[each]]
            own = rows.select(names).take(pa.array(at))
            for place, text in zip(at.tolist(), render_rows(names, own.columns, len(at)), strict=True):
                texts[place] = text
        return first.tails(texts)

    def find(self, messages: MessageBatch, moved: Int64Array, born: Int64Array, died: Int64Array) -> Pairs:
        regions = messages.regions
        tags = np.bitwise_or.reduceat(regions.tags, regions.starts[:-1]) if len(messages) else regions.tags
        at, tags, payload = self._held.whole(messages, tags.astype(np.int64))
        found = self._matcher.match(messages.seq[at], payload, tags)
        found = replace(found, message=at[found.message])
        if len(moved):
            seq = messages.seq[found.message]
            found = kept(found, (born[found.slot] < seq) & (seq <= died[found.slot]))
        return found

    def tell(self, messages: MessageBatch, pairs: Pairs) -> Notifications:
        if not isinstance(pairs, Found):
            pairs = self._found(messages, pairs)
        tail, tails = self._matcher.tails(pairs)
        return Notifications(messages.seq[pairs.message], pairs.slot, tail, tails)

    def _found(self, messages: MessageBatch, pairs: Pairs) -> Found:
        """The pairs of unicast messages that get a notification. Messages about the same change are matched once."""
        _, first, group = np.unique(messages.seq, return_index=True, return_inverse=True)
        tags = np.zeros(len(first), np.int64)
        np.bitwise_or.at(tags, group, messages.regions.tags.astype(np.int64))
        some = messages.take(first.astype(np.int64))
        found = self._matcher.match(some.seq, some.payload, tags)
        slots = int(max(pairs.slot.max(initial=0), found.slot.max(initial=0))) + 1
        named = group[pairs.message] * slots + pairs.slot
        told = kept(found, np.isin(found.message * slots + found.slot, named))
        return replace(told, message=first[told.message])
