"""Top-k views: the first rows of each subscription in order, and how messages change them.

A message has the new values of a row, or says that it is gone. A view that holds the row overwrites or removes it; a view that
does not inserts it and drops its last row. A subscription on several channels has a list of k rows for each, and shows the
first k of all. A view is a list of numbers of rows; views whose answers change in the same way share one line.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.strategies.topk.reformulate import GONE
from research.views.protocols import FirstRows, Notifications, Pairs, RememberingViews
from research.views.topk.view_lists import NONE, Differences, ViewLists
from research.views.topk.view_rows import ViewRows
from tidings.families.topk.subscription import Space
from tidings.model.channel import ChannelKey, channel_column, group_channels
from tidings.model.codes import Int64Array
from tidings.model.notification import change_tail, delete_change, insert_change, update_change
from tidings.model.points import PointBatch


class TopkViews(RememberingViews):
    """The views of one form."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._clear()

    def _clear(self) -> None:
        self._lists = ViewLists(self._space.k)
        self._rows = ViewRows(self._space, self._lists)
        self._list = np.empty(0, np.int32)
        """[slots]: number of the list."""
        self._slot = np.empty(0, np.int32)
        """[lists]: slot."""
        self._channel = np.empty(0, np.int32)
        """[lists]: number of the channel; used only if subscriptions have several channels (IN)."""
        self._channels: dict[ChannelKey, int] = {}

    def create(self, slots: Int64Array, points: PointBatch) -> None:
        lists = self._lists.open(points.home)
        self._list = _covering(self._list, slots)
        self._slot = _covering(self._slot, lists)
        self._list[slots], self._slot[lists] = lists, slots
        if self._space.has_several_channels:
            group, keys = group_channels(points.channel, len(points))
            self._channel = _covering(self._channel, lists)
            self._channel[lists] = self._channel_numbers(keys)[group]

    def drop(self, slots: Int64Array) -> None:
        self._lists.close(self._list[slots])
        self._rows.sweep()
        if not len(self._lists):
            self._clear()

    def snapshots(self, first: FirstRows) -> list[str]:
        """Fills the views with their snapshot rows, in place of any rows they hold. Returns the tails of their lines."""
        homes = self._list[first.slot].astype(np.int64)
        numbers = np.empty(0, np.int64) if first.rows is None else self._number_first(first, first.rows)
        if self._space.has_several_channels:
            _, members = self._lists.members(homes)
            place = numbers if first.rows is None else self._places(homes, first, first.rows)
            starts = np.searchsorted(np.sort(place), np.arange(len(members) + 1))
            self._lists.fill(members, starts, numbers[np.argsort(place, kind="stable")])
        else:
            self._lists.fill(homes, first.starts, numbers)
        starts, shown = self._lists.shown(homes)
        texts = [self._rows.texts[number] for number in shown.tolist()]
        self._rows.sweep()
        return FirstRows(first.slot, first.seq, starts, None).tails(texts)

    def tell(self, messages: MessageBatch, pairs: Pairs) -> Notifications:
        """Applies deliveries in the order of messages. Notifies how each answer differs before and after all of a seq."""
        is_next = np.diff(pairs.message, prepend=NONE) != 0
        reached, send = pairs.message[is_next], np.cumsum(is_next) - 1
        is_gone = (pairs.tags & GONE) != 0
        rows = messages.payload.take(pa.array(reached))
        keys = self._rows.keys(rows)
        ties = self._rows.ties(keys)
        is_placed = np.zeros(len(reached), np.bool_)
        is_placed[send[~is_gone]] = True
        placed = np.flatnonzero(is_placed)
        number = np.full(len(reached), NONE, np.int64)
        number[placed] = self._rows.number(
            rows.take(pa.array(placed)), [keys[at] for at in placed.tolist()], ties[placed]
        )
        found = self._lists.apply(self._list[pairs.slot], send, is_gone, messages.seq[reached], number, ties)
        tails = self._tails(found)
        self._rows.sweep()
        return Notifications(found.batch[found.kind], self._slot[found.home].astype(np.int64), found.kind, tails)

    def _tails(self, found: Differences) -> list[str]:
        """The tail of a line for each distinct difference."""
        texts = self._rows.texts
        changes = [
            insert_change(texts[new])
            if old == NONE
            else delete_change(texts[old])
            if new == NONE
            else update_change(texts[old], texts[new])
            for old, new in zip(found.old.tolist(), found.new.tolist(), strict=True)
        ]
        parts = zip(found.batch.tolist(), pairwise(found.starts.tolist()), strict=True)
        return [change_tail(seq, ", ".join(changes[start:stop])) for seq, (start, stop) in parts]

    def _number_first(self, first: FirstRows, rows: pa.RecordBatch) -> Int64Array:
        """Numbers of snapshot rows, [rows]. A row of several views created after the same seq is rendered once."""
        names = self._space.table.key
        group, _ = group_channels([rows.column(name) for name in names], rows.num_rows)
        _, moment = np.unique(first.seq, return_inverse=True)
        moment = np.repeat(moment, np.diff(first.starts))
        encoded = pa.array(moment * rows.num_rows + group).dictionary_encode()
        number = np.asarray(encoded.indices)
        example = np.empty(len(encoded.dictionary), np.int64)
        example[number] = np.arange(len(number))
        chosen = rows.take(pa.array(example))
        keys = self._rows.keys(chosen)
        numbers: Int64Array = self._rows.number(chosen, keys, self._rows.ties(keys))[number]
        return numbers

    def _places(self, homes: Int64Array, first: FirstRows, rows: pa.RecordBatch) -> Int64Array:
        """The place of each snapshot row's list among all lists of the subscriptions `homes` (which have several channels)."""
        starts, members = self._lists.members(homes)
        columns = [channel_column(column.type, rows.column(column.name))[0] for column in self._space.equalities]
        group, keys = group_channels(columns, rows.num_rows)
        channel, width = self._channel_numbers(keys)[group], len(self._channels)
        own = np.repeat(np.arange(len(homes)), np.diff(starts)) * width + self._channel[members]
        order = np.argsort(own)
        owner = np.repeat(np.arange(len(homes)), np.diff(first.starts))
        place: Int64Array = order[np.searchsorted(own[order], owner * width + channel)]
        return place

    def _channel_numbers(self, keys: list[ChannelKey]) -> Int64Array:
        return np.array([self._channels.setdefault(key, len(self._channels)) for key in keys], np.int64)

    def dump(self, slots: Int64Array) -> Any:
        starts, held = self._lists.read(self._list[slots])
        is_used = np.zeros(len(self._rows.texts), np.bool_)
        is_used[held] = True
        return {
            "sizes": np.diff(starts).astype(np.int32),
            "held": (np.cumsum(is_used, dtype=np.int32) - 1)[held],
            "versions": self._rows.dump(np.flatnonzero(is_used)),
        }

    def load(self, slots: Int64Array, state: Any) -> None:
        numbers = self._rows.load(state["versions"])[state["held"]]
        self._lists.fill(self._list[slots], np.append(0, np.cumsum(state["sizes"])), numbers)


def _covering(values: Any, places: Int64Array) -> Any:
    """The array, longer if it does not have all these places."""
    top = int(places.max(initial=-1)) + 1
    return np.resize(values, max(top, len(values) * 3 // 2)) if top > len(values) else values
