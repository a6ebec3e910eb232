"""Drift views: the last notified version of every row that a subscription follows, and its notification lines.

A message carries the row as it is now. The last notified version differs between subscriptions, and only their views have it.
Subscriptions that were notified together share one version of the row and one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.strategies.drift.reformulate import ASKED, GONE
from research.strategies.drift.rows import NO_TIME, TIME, VALUE
from research.views.drift.deliveries import number_replacements, replace_held
from research.views.drift.versions import NONE, Versions
from research.views.protocols import FirstRows, Notifications, Pairs, RememberingViews
from tidings.families.drift.movement import has_been_silent, has_moved
from tidings.families.drift.subscription import Space
from tidings.model.channel import ChannelKey, channel_column, channel_keys
from tidings.model.codes import BoolArray, Int64Array, double_of
from tidings.model.notification import change_tail, delete_change, insert_change, update_change
from tidings.model.points import PointBatch

_ONE_ROW: ChannelKey = ()
"""Key of the row in `_Holders.held`, if every view holds one row."""


class _Holders:
    """Views that follow the same rows, each at a place, and the last notified version of each row for each view."""

    def __init__(self) -> None:
        self.held: dict[ChannelKey, Int64Array] = {}
        """Key of the row -> version at each place, [places]; NONE for none."""
        self.count = 0
        self._free: list[int] = []

    def enter(self, count: int) -> Int64Array:
        """Returns places for new views."""
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        first, self.count = self.count, self.count + count - len(reused)
        return np.concatenate([np.array(reused, np.int64), np.arange(first, self.count)])

    def leave(self, places: Int64Array) -> Int64Array:
        """Frees places. Returns the versions they held."""
        lost = [np.empty(0, np.int64)]
        for held in self.held.values():
            inside = places[places < len(held)]
            lost.append(held[inside])
            held[inside] = NONE
        self._free.extend(places.tolist())
        return np.concatenate(lost)

    @property
    def is_empty(self) -> bool:
        return len(self._free) == self.count

    def row(self, key: ChannelKey) -> Int64Array:
        """Versions of a row, at least [places] long."""
        held = self.held.get(key)
        if held is None or len(held) < self.count:
            grown = np.full(max(self.count, 0 if held is None else 2 * len(held)), NONE, np.int64)
            if held is not None:
                grown[: len(held)] = held
            held = self.held[key] = grown
        return held


class DriftViews(RememberingViews):
    def __init__(self, space: Space) -> None:
        self._space = space
        self._clear()

    def _clear(self) -> None:
        self._versions = Versions()
        self._place = np.empty(0, np.int32)
        """[slots]: place in its `_Holders`."""
        self._radius = np.empty(0, np.int64)
        """[slots]: code of the radius."""
        self._holders: dict[ChannelKey, _Holders] = {}
        """Channel -> views that follow its rows. If every view follows one row, all are in the entry `_ONE_ROW`."""
        self._channel: dict[int, ChannelKey] = {}
        """Slot -> channel; empty if every view follows one row."""
        self._siblings: dict[int, dict[ChannelKey, int]] = {}
        """If subscriptions have several channels (IN): home slot -> channel -> slot."""

    def create(self, slots: Int64Array, points: PointBatch) -> None:
        top = int(slots.max(initial=-1)) + 1
        if top > len(self._place):
            self._place = np.resize(self._place, max(top, 3 * len(self._place) // 2))
            self._radius = np.resize(self._radius, len(self._place))
        self._radius[slots] = points.coords[:, 0]
        if not self._space.follows_one_row:
            self._channel.update(zip(slots.tolist(), channel_keys(points.channel, len(points)), strict=True))
        for key, own in self._by_channel(slots):
            self._place[own] = self._holders.setdefault(key, _Holders()).enter(len(own))
        if self._space.has_several_channels:
            home = NONE
            keys = channel_keys(points.channel, len(points))
            for slot, key, is_home in zip(slots.tolist(), keys, points.home.tolist(), strict=True):
                home = slot if is_home else home
                self._siblings.setdefault(home, {})[key] = slot

    def drop(self, slots: Int64Array) -> None:
        for key, own in self._by_channel(slots):
            holders = self._holders[key]
            self._versions.hold(holders.leave(self._place[own].astype(np.int64)), -1)
            if holders.is_empty:
                del self._holders[key]
        for slot in slots.tolist():
            self._siblings.pop(slot, None)
            self._channel.pop(slot, None)
        if not self._holders:
            self._clear()

    def _by_channel(self, slots: Int64Array) -> Iterator[tuple[ChannelKey, Int64Array]]:
        """(channel, its slots in the order given); all slots at once if every view follows one row."""
        if self._space.follows_one_row:
            if len(slots):
                yield _ONE_ROW, slots
            return
        parts: dict[ChannelKey, list[int]] = {}
        for slot in slots.tolist():
            parts.setdefault(self._channel[slot], []).append(slot)
        for key, part in parts.items():
            yield key, np.array(part, np.int64)

    def _row(self, key: ChannelKey) -> Int64Array:
        return self._holders[key[: len(self._space.pinned)]].row(key)

    def snapshots(self, first: FirstRows) -> list[str]:
        if first.rows is None:
            return first.tails([])
        slots = np.repeat(first.slot, np.diff(first.starts))
        versions = self._number(first.rows, np.arange(len(slots)))
        keys, width = self._keys(first.rows), len(self._space.pinned)
        if self._space.has_several_channels:
            owners = zip(slots.tolist(), keys, strict=True)
            slots = np.array([self._siblings[slot][key[:width]] for slot, key in owners], np.int64)
        if self._space.follows_one_row:
            self._row(_ONE_ROW)[self._place[slots]] = versions
        else:
            for key, place, version in zip(keys, self._place[slots].tolist(), versions.tolist(), strict=True):
                self._row(key)[place] = version
        self._versions.hold(versions, 1)
        return first.tails([self._versions.texts[version] for version in versions.tolist()])

    def tell(self, messages: MessageBatch, pairs: Pairs) -> Notifications:
        """As in the protocol. Pairs must be in the order of their messages: each view goes from version to version."""
        if len(pairs.slot) == 0:
            nothing = np.empty(0, np.int64)
            return Notifications(nothing, nothing, nothing, [])
        reached, message = _numbered(pairs.message, len(messages))
        is_gone = np.zeros(len(reached), np.bool_)
        is_gone[message] = (pairs.tags & GONE) != 0
        version = np.full(len(reached), NONE, np.int64)
        version[~is_gone] = self._number(messages.payload, reached[~is_gone])
        place, new = self._place[pairs.slot].astype(np.int64), version[message]
        old = np.empty(len(place), np.int64)
        is_asked = (pairs.tags & ASKED) != 0
        for row, at in self._by_row(messages, reached, message):
            if is_asked.any():
                self._decide(self._row(row), pairs.slot, place, is_asked, at, old, new)
            else:
                old[at] = replace_held(self._row(row), place[at], new[at])
            if not self._space.follows_one_row and new[at[-1]] == NONE:
                # All views that hold a row get the message that it was deleted.
                self._holders[row[: len(self._space.pinned)]].held.pop(row, None)
        self._versions.hold(new, 1)
        told = self._told(messages.seq[reached[message]], message, pairs.slot, old, new)
        self._versions.hold(old, -1)
        self._versions.sweep(version)
        return told

    def _told(
        self, seq: Int64Array, message: Int64Array, slot: Int64Array, old: Int64Array, new: Int64Array
    ) -> Notifications:
        """Notifications of deliveries that replaced version `old` by `new`, all [deliveries]. Equal ones share a tail."""
        kind, examples = number_replacements(message, old, new, len(self._versions.texts))
        texts = self._versions.texts
        tails: list[str] = []
        for at, before, after in zip(
            seq[examples].tolist(), old[examples].tolist(), new[examples].tolist(), strict=True
        ):
            if before == NONE:
                tails.append(change_tail(at, insert_change(texts[after])))
            elif after == NONE:
                tails.append(change_tail(at, delete_change(texts[before])))
            elif texts[before] == texts[after]:
                # The shown columns are unchanged: no notification.
                tails.append("")
            else:
                tails.append(change_tail(at, update_change(texts[before], texts[after])))
        is_told = np.array([*map(bool, tails), False], np.bool_)[kind]
        return Notifications(seq[is_told], slot[is_told], kind[is_told], tails)

    def _decide(
        self,
        held: Int64Array,
        slot: Int64Array,
        place: Int64Array,
        is_asked: BoolArray,
        at: Int64Array,
        old: Int64Array,
        new: Int64Array,
    ) -> None:
        """As `replace_held`, but views with `is_asked` keep their version unless the new one must be notified."""
        space, versions = self._space, self._versions
        for i, where in zip(at.tolist(), place[at].tolist(), strict=True):
            before, after = int(held[where]), int(new[i])
            if is_asked[i] and before != NONE:
                radius = double_of(int(self._radius[slot[i]]))
                is_told = has_moved(space.kind, versions.values[before], versions.values[after], radius)
                if not is_told and space.patience is not None:
                    times = (_known(versions.times[before]), _known(versions.times[after]))
                    is_told = has_been_silent(*times, space.patience)
                new[i] = after = after if is_told else before
            old[i], held[where] = before, after

    def _by_row(
        self, messages: MessageBatch, reached: Int64Array, message: Int64Array
    ) -> Iterator[tuple[ChannelKey, Int64Array]]:
        """(key of the row, indexes of its deliveries in order)."""
        if self._space.follows_one_row:
            yield _ONE_ROW, np.arange(len(message))
            return
        numbers: dict[ChannelKey, int] = {}
        keys = self._keys(messages.payload.take(pa.array(reached)))
        row = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, len(keys))[message]
        order = np.argsort(row, kind="stable")
        cuts = np.searchsorted(row[order], np.arange(len(numbers) + 1))
        for number, key in enumerate(numbers):
            yield key, order[cuts[number] : cuts[number + 1]]

    def _keys(self, rows: pa.RecordBatch) -> list[ChannelKey]:
        columns = [channel_column(c.type, rows.column(f"key.{c.name}"))[0] for c in self._space.key_columns]
        return channel_keys(columns, rows.num_rows)

    def _number(self, rows: pa.RecordBatch, at: Int64Array) -> Int64Array:
        """Numbers of the versions of the rows at these places of a payload."""
        chosen = rows.take(pa.array(at))
        has_values = VALUE in rows.schema.names
        values = chosen.column(VALUE).to_pylist() if has_values else [0.0] * len(at)
        times = chosen.column(TIME).to_pylist() if has_values else [0] * len(at)
        names = self._space.projection
        return self._versions.number(names, [chosen.column(f"row.{name}") for name in names], values, times)

    def dump(self, slots: Int64Array) -> Any:
        parts = [(key, self._holders[key], self._place[own]) for key, own in self._by_channel(slots)]
        tables = [holders.row(row)[places] for _, holders, places in parts for row in holders.held]
        table = np.concatenate([np.empty(0, np.int64), *tables])
        used, number = np.unique(table[table != NONE], return_inverse=True)
        table[table != NONE] = number.ravel()
        rows = [[list(row) for row in holders.held] for _, holders, _ in parts]
        return {"rows": rows, "held": table, "versions": self._versions.dump(used)}

    def load(self, slots: Int64Array, state: Any) -> None:
        numbers = np.append(self._versions.load(state["versions"]), NONE)
        table, at = numbers[state["held"]], 0
        for (key, own), rows in zip(self._by_channel(slots), state["rows"], strict=True):
            for row in rows:
                self._holders[key].row(tuple(row))[self._place[own]] = table[at : at + len(own)]
                at += len(own)
        self._versions.hold(table, 1)


def _known(time: int) -> int | None:
    return None if time == NO_TIME else time


def _numbered(messages: Int64Array, count: int) -> tuple[Int64Array, Int64Array]:
    """(distinct messages that occur, index of each entry's message among these)."""
    occurs = np.zeros(count, np.bool_)
    occurs[messages] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[messages]
