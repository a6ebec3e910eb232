"""Views of forms with bulky columns: before anybody is told, slim messages get back the long values they lack.

What comes back is on the shelf because whoever holds a row heard of it in full when the row became theirs, at this same
gateway. Everyone who holds a row before or after a change hears of the change, so the shelf keeps a row exactly as long as
somebody does. Changes of one row have one seq each: first what the old row lacked is found, then the new one is kept.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.families.optional import RememberingViews
from tidings.families.protocols import FirstRows, Pairs, Told
from tidings.families.select.reformulate import BOTH, NEW, OLD
from tidings.families.select.shelf import Coming, Shelf, Values
from tidings.families.select.slim import SLIM, is_long
from tidings.families.select.subscription import Space
from tidings.families.select.view import SelectViews
from tidings.model.channel import ChannelKey, channel_keys, group_channels
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.region import TagArray


class BulkyViews(SelectViews, RememberingViews):
    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._shelf = Shelf()
        self._numbers: dict[ChannelKey, int] = {}
        self._channels: list[ChannelKey] = []
        self._channel_of_slot = np.empty(0, np.int32)
        self._listeners: list[int] = []

    def create(self, slots: Int64Array, points: PointBatch) -> None:
        super().create(slots, points)
        group, keys = group_channels(points.channel, len(points))
        numbers = np.empty(len(keys), np.int32)
        for i, (key, count) in enumerate(zip(keys, np.bincount(group, minlength=len(keys)).tolist(), strict=True)):
            numbers[i] = number = self._numbers.setdefault(key, len(self._channels))
            if number == len(self._channels):
                self._channels.append(key)
                self._listeners.append(0)
            self._listeners[number] += count
        last = int(slots.max(initial=-1))
        if last >= len(self._channel_of_slot):
            self._channel_of_slot = np.resize(self._channel_of_slot, max(last + 1, last * 3 // 2))
        self._channel_of_slot[slots] = numbers[group]

    def drop(self, slots: Int64Array) -> None:
        super().drop(slots)
        for number in self._channel_of_slot[slots].tolist():
            self._listeners[number] -= 1
            if not self._listeners[number]:
                # Of changes on a channel without listeners nobody hears, so what is kept would not be forgotten.
                self._shelf.clear(self._channels[number])

    def snapshots(self, first: FirstRows) -> list[str]:
        if first.rows is not None:
            self._expect(first, first.rows)
        return super().snapshots(first)

    def tell(self, messages: MessageBatch, pairs: Pairs) -> Told:
        concerned = self._concerned(messages)
        if concerned.any():
            messages = self._filled(messages, pairs, np.flatnonzero(concerned))
        return super().tell(messages, Pairs(pairs.message, pairs.slot, pairs.tags & np.uint8(BOTH)))

    def is_memorable(self, batch: MessageBatch | SnapshotBatch) -> bool:
        if isinstance(batch, MessageBatch):
            return bool(self._concerned(batch).any())
        return any(bool(is_long(batch.payload.column(name)).any()) for name in self._space.bulky)

    def dump(self, slots: Int64Array) -> Any:
        column = self._space.table.column
        key_types, types = (
            [column(name).type.arrow for name in names] for names in (self._space.table.key, self._space.bulky)
        )
        return self._shelf.dump(self._space.channel_types, key_types, types)

    def load(self, slots: Int64Array, state: Any) -> None:
        if state is not None:
            self._shelf.load(state)

    def _concerned(self, messages: MessageBatch) -> BoolArray:
        """Messages about rows that are on the shelf, or that belong there if somebody holds them."""
        found = _is_slim(messages)
        for name in self._space.bulky:
            for side in ("old", "new"):
                found |= is_long(messages.payload.column(f"{side}.{name}"))
        return found

    def _expect(self, first: FirstRows, rows: pa.RecordBatch) -> None:
        columns = [rows.column(name) for name in self._space.bulky]
        at = np.flatnonzero(np.logical_or.reduce([is_long(column) for column in columns]))
        if not len(at):
            return
        owner = np.searchsorted(first.starts, at, "right") - 1
        keys = zip(*(rows.column(name).take(pa.array(at)).to_pylist() for name in self._space.table.key), strict=True)
        numbers = self._channel_of_slot[first.slot[owner]].tolist()
        # Many may start with the same row: one will do.
        place_of = dict(zip(zip(first.seq[owner].tolist(), numbers, keys, strict=True), at.tolist(), strict=True))
        chosen = pa.array(place_of.values())
        values = zip(*(_long_values(column.take(chosen)) for column in columns), strict=True)
        self._shelf.expect(
            Coming(seq, self._channels[number], key, kept)
            for (seq, number, key), kept in zip(place_of, values, strict=True)
        )

    def _filled(self, messages: MessageBatch, pairs: Pairs, at: Int64Array) -> MessageBatch:
        """The messages with what they lack, and the shelf as it is after them; only those at some places matter."""
        heard = np.zeros(len(messages), np.uint8)
        for tag in (OLD, NEW):
            heard[pairs.message[(pairs.tags & tag) != 0]] |= tag
        batch = _Concerned(self._space, messages.take(at), heard[at])
        for seq, of_one_row in groupby(range(len(at)), key=batch.seq.__getitem__):
            self._shelf.settle(before=seq)
            places = list(of_one_row)
            for i in places:
                batch.fill(i, self._shelf.find(batch.channels[i], batch.keys[i]))
            holding = {batch.channels[i]: i for i in places if batch.heard[i] & NEW}
            for channel in {batch.channels[i] for i in places}:
                kept = batch.kept(holding[channel]) if channel in holding else None
                self._shelf.put(channel, batch.keys[places[0]], kept)
        return batch.put_back(messages, at)


class _Concerned:
    """The messages that matter as plain values, and what they lack."""

    def __init__(self, space: Space, messages: MessageBatch, heard: TagArray) -> None:
        payload = messages.payload
        self.seq: list[int] = messages.seq.tolist()
        self.heard: list[int] = heard.tolist()
        self.channels = channel_keys(messages.channel, len(messages))
        both = [pc.coalesce(payload.column(f"new.{name}"), payload.column(f"old.{name}")) for name in space.table.key]
        self.keys = list(zip(*(column.to_pylist() for column in both), strict=True))
        self._names = space.bulky
        self._slim: list[bool] = _is_slim(messages).tolist()
        self._columns = {
            f"{side}.{name}": payload.column(f"{side}.{name}") for side in ("old", "new") for name in space.bulky
        }
        self._lacks = {name: column.is_null().to_pylist() for name, column in self._columns.items()}
        self._long = [_long_values(self._columns[f"new.{name}"]) for name in space.bulky]
        self._found: dict[str, dict[int, Any]] = {name: {} for name in self._columns}

    def fill(self, i: int, values: Values | None) -> None:
        """Gives message i what it lacks of the values on the shelf."""
        if not self._slim[i]:
            return
        if values is None:
            if self.heard[i] & OLD:
                raise LookupError(f"the long values of row {self.keys[i]}, left out at seq {self.seq[i]}, never came")
            return
        for column, (name, value) in enumerate(zip(self._names, values, strict=True)):
            if value is not None and self._lacks[f"old.{name}"][i]:
                self._found[f"old.{name}"][i] = value
                if self._lacks[f"new.{name}"][i]:
                    self._found[f"new.{name}"][i] = self._long[column][i] = value

    def kept(self, i: int) -> Values:
        """The long values of message i's new row."""
        return tuple(values[i] for values in self._long)

    def put_back(self, messages: MessageBatch, at: Int64Array) -> MessageBatch:
        """The messages these were taken from, with what was found."""
        columns = []
        for name, column in zip(messages.payload.schema.names, messages.payload.columns, strict=True):
            found = self._found.get(name)
            if found:
                mask = np.zeros(len(messages), np.bool_)
                mask[at[list(found)]] = True
                column = pc.replace_with_mask(column, pa.array(mask), pa.array(found.values(), column.type))
            columns.append(column)
        payload = pa.RecordBatch.from_arrays(columns, messages.payload.schema.names)
        return MessageBatch(messages.form, messages.seq, messages.channel, messages.regions, payload, messages.target)


def _is_slim(messages: MessageBatch) -> BoolArray:
    regions = messages.regions
    found: BoolArray = (regions.tags[regions.starts[:-1]] & SLIM) != 0
    return found


def _long_values(column: pa.Array) -> list[Any]:
    """The long values of a column; None where a value is not long."""
    values: list[Any] = pc.if_else(pa.array(is_long(column)), column, pa.scalar(None, column.type)).to_pylist()
    return values
