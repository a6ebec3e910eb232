"""State of a drift server: which subscriptions follow which row, and the last notified value of each, in a threshold index.

The subscriptions on one channel are an audience; every row they follow is an item. The audience of subscriptions that pin the
whole primary key has one item, other audiences have many.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.protocols import ColumnarRows
from research.strategies.drift.kernels.threshold_index import ABSOLUTE, CHOOSE, PERCENT, RATIO, ThresholdIndex, Touched
from research.strategies.drift.rows import (
    NO_TIME,
    Float64Array,
    changed_keys,
    in_key_order,
    row_keys,
    rows_on,
    values_of,
)
from tidings.families.drift.subscription import Space
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey, channel_columns, channel_keys, channel_type, group_channels
from tidings.model.codes import Int64Array, doubles_of_codes
from tidings.model.points import PointBatch

KINDS = {"moved": ABSOLUTE, "moved_percent": PERCENT, "moved_ratio": RATIO}
_NOBODY = -1


class Followers:
    """Audiences (by channel) and items (by primary key) of one form in one shard."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.index = ThresholdIndex(KINDS[space.kind], space.patience)
        self._audiences: dict[ChannelKey, int] = {}
        self._idle: list[int] = []
        """Numbers of audiences without members and items, to be reused."""
        self._last_birth = 0
        self._items: dict[ChannelKey, int] = {}
        self._items_on: dict[ChannelKey, set[ChannelKey]] = {}
        """Channel -> keys of its items; empty if every subscription follows one row."""
        self._labels: dict[tuple[str, int], int] = {}
        """(subscription id, audience) -> label, if the label is not 0."""

    def add(self, points: PointBatch, rows: ColumnarRows) -> PointBatch:
        """Adds new points. Returns them with their labels as second coordinate."""
        audience = self._audiences_of(points, rows)
        at = np.flatnonzero(audience != _NOBODY)
        wanted = self._wanted_labels(points.take(at))
        labels = self.index.add(audience[at], doubles_of_codes(points.coords[at, 0]), wanted)
        coords = points.coords.copy()
        coords[at, 1] = labels
        odd = np.flatnonzero(labels)
        ids = points.id.take(pa.array(at[odd])).to_pylist()
        keys = zip(ids, audience[at[odd]].tolist(), strict=True)
        self._labels.update(zip(keys, labels[odd].tolist(), strict=True))
        return replace(points, coords=coords)

    def _wanted_labels(self, points: PointBatch) -> Int64Array:
        if self.space.follows_one_row:
            return np.full(len(points), CHOOSE)
        # A subscription to many rows cannot have a label for each row: its label is the seq of its creation.
        self._last_birth = max(self._last_birth, int(points.after.max(initial=0)))
        return np.maximum(points.after, self._last_birth)

    def remove(self, points: PointBatch) -> None:
        group, keys = group_channels(points.channel, len(points))
        audience = np.array([self._audiences.get(key, _NOBODY) for key in keys], np.int64)[group]
        at = np.flatnonzero(audience != _NOBODY)
        names = zip(points.id.take(pa.array(at)).to_pylist(), audience[at].tolist(), strict=True)
        labels = np.array([self._labels.pop(name, 0) for name in names], np.int64)
        self.index.remove(audience[at], doubles_of_codes(points.coords[at, 0]), labels)
        for key in keys:
            if key in self._audiences and self.index.member_count(self._audiences[key]) == 0:
                self._forget_audience(key)

    def _forget_audience(self, channel: ChannelKey) -> None:
        """Frees the audience of a channel without subscriptions, and its items."""
        self._idle.append(self._audiences.pop(channel))
        for key in [channel] if self.space.follows_one_row else self._items_on.pop(channel, ()):
            self.index.free_item(self._items.pop(key))

    def move(self, changes: TableChanges) -> tuple[Int64Array, Float64Array, Touched]:
        """Applies changes. Returns (places of the changes of followed rows, their new values, key ranges that each touches)."""
        item = self._items_of(changes)
        at = np.flatnonzero(item != _NOBODY)
        values, times = self._observe(changes.after)
        touched = self.index.move(item[at], values[at], times[at])
        if not self.space.follows_one_row:
            gone = at[np.isnan(values[at])]
            self._forget_absent(changes, gone, item[gone])
        return at, values[at], touched

    def dump(self) -> dict[str, Any]:
        types = [channel_type(column.type) for column in self.space.key_columns]
        return {
            "anchors": self.index.dump(),
            "audiences": channel_columns(self.space.channel_types, self._audiences),
            "audience_numbers": np.array(list(self._audiences.values()), np.int64),
            "idle": self._idle,
            "last_birth": self._last_birth,
            "items": channel_columns(types, self._items),
            "item_numbers": np.array(list(self._items.values()), np.int64),
            "label_ids": pa.array([id for id, _ in self._labels], pa.string()),
            "label_audiences": np.array([audience for _, audience in self._labels], np.int64),
            "labels": np.array(list(self._labels.values()), np.int64),
        }

    def load(self, state: dict[str, Any]) -> None:
        self.index.load(state["anchors"])
        self._idle, self._last_birth = list(state["idle"]), state["last_birth"]
        for name, numbered in (("audience", self._audiences), ("item", self._items)):
            numbers = state[f"{name}_numbers"].tolist()
            numbered.update(zip(channel_keys(state[f"{name}s"], len(numbers)), numbers, strict=True))
        if not self.space.follows_one_row:
            for key in self._items:
                self._items_on.setdefault(key[: len(self.space.pinned)], set()).add(key)
        names = zip(state["label_ids"].to_pylist(), state["label_audiences"].tolist(), strict=True)
        self._labels.update(zip(names, state["labels"].tolist(), strict=True))

    def _observe(self, rows: pa.RecordBatch) -> tuple[Float64Array, Int64Array]:
        """Value and time of rows that become those of items, both [rows]."""
        return values_of(self.space, rows)

    def _audiences_of(self, points: PointBatch, rows: ColumnarRows) -> Int64Array:
        """The audience of each point, [points], made if there is none; _NOBODY if the query is contradictory."""
        group, keys = group_channels(points.channel, len(points))
        fresh = [key for key in keys if None not in key and key not in self._audiences]
        for key in fresh:
            self._audiences[key] = self._idle.pop() if self._idle else self.index.new_audience()
        if fresh:
            self._follow(fresh, rows)
        return np.array([self._audiences.get(key, _NOBODY) for key in keys], np.int64)[group]

    def _follow(self, channels: list[ChannelKey], rows: ColumnarRows) -> None:
        """Makes items for the rows of new audiences. A pinned row has an item even while the row does not exist."""
        if self.space.follows_one_row:
            followed = rows.take(rows.find(in_key_order(self.space, channels)))
            self._new_items(channels, channels, *self._observe(followed))
            return
        _, positions = rows_on(self.space, rows, channels)
        followed = rows.take(positions)
        keys = row_keys(self.space, followed)
        width = len(self.space.pinned)
        self._new_items(keys, [key[:width] for key in keys], *self._observe(followed))

    def _new_items(
        self, keys: list[ChannelKey], channels: list[ChannelKey], values: Float64Array, times: Int64Array
    ) -> None:
        audiences = np.array([self._audiences[channel] for channel in channels], np.int64)
        items = self.index.new_items(audiences, values, times)
        self._items.update(zip(keys, items.tolist(), strict=True))
        if not self.space.follows_one_row:
            for key, channel in zip(keys, channels, strict=True):
                self._items_on.setdefault(channel, set()).add(key)

    def _items_of(self, changes: TableChanges) -> Int64Array:
        """The item of each changed row, [changes]; _NOBODY if no audience follows it. Items of new rows are made."""
        group, keys = group_channels(changed_keys(self.space, changes), len(changes))
        if not self.space.follows_one_row:
            width = len(self.space.pinned)
            fresh = [key for key in keys if key not in self._items and key[:width] in self._audiences]
            nothing = np.full(len(fresh), np.nan), np.full(len(fresh), NO_TIME)
            self._new_items(fresh, [key[:width] for key in fresh], *nothing)
        return np.array([self._items.get(key, _NOBODY) for key in keys], np.int64)[group]

    def _forget_absent(self, changes: TableChanges, at: Int64Array, item: Int64Array) -> None:
        """Frees the items of deleted rows in audiences of many rows. at, item: [deletes]."""
        keys = channel_keys([column.take(pa.array(at)) for column in changed_keys(self.space, changes)], len(at))
        for key, number in zip(keys, item.tolist(), strict=True):
            if key in self._items and np.isnan(self.index.value(number)[0]):
                self.index.free_item(number)
                del self._items[key]
                self._items_on[key[: len(self.space.pinned)]].remove(key)
