"""All points of a form, for strategies that send a unicast message to each affected subscription."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from tidings.model.channel import ChannelKey, channel_columns, channel_keys, group_channels
from tidings.model.codes import Int64Array
from tidings.model.points import PointBatch, on_some_channel
from tidings.model.region import Regions, TagArray

NO_CHANNEL = -1


def one_each(
    messages: MessageBatch, message: Int64Array, points: Int64Array, ids: Sequence[str], tags: TagArray
) -> MessageBatch | None:
    """Unicast messages: message[i] for subscription ids[i] at points[i] ([n, dims]) with tags[i]. None if n is 0."""
    if len(message) == 0:
        return None
    chosen = pa.array(message)
    regions = Regions(points, points, tags, np.arange(len(message) + 1))
    channels = tuple(column.take(chosen) for column in messages.channel)
    target, payload = pa.array(ids, pa.string()), messages.payload.take(chosen)
    return MessageBatch(
        messages.form, messages.seq[message], channels, regions, payload, target, messages.to, messages.axes
    )


class Targets:
    """Ids, channels and coordinates of points by slot. Finds the points in a region by scanning all of them."""

    def __init__(self, dims: int) -> None:
        self._slots: dict[tuple[str, ChannelKey], int] = {}
        self._free: list[int] = []
        self._ids: list[str] = []
        self._coords = np.empty((0, dims), np.int64)
        self._channel = np.empty(0, np.int64)
        self._channels: dict[ChannelKey, int] = {}

    def add(self, points: PointBatch) -> None:
        points = points.take(on_some_channel(points))
        self._add(points.id.to_pylist(), channel_keys(points.channel, len(points)), points.coords)

    def remove(self, points: PointBatch) -> None:
        points = points.take(on_some_channel(points))
        keys = channel_keys(points.channel, len(points))
        self._remove([self._slots.pop(name) for name in zip(points.id.to_pylist(), keys, strict=True)])

    def address(self, messages: MessageBatch) -> MessageBatch | None:
        """The messages as unicast messages, one for every point in their regions; None if there is no such point."""
        group, keys = group_channels(messages.channel, len(messages))
        channel = np.array([self._channels.get(key, NO_CHANNEL) for key in keys], np.int64)[group]
        message, slot, tags = self.affected(channel, messages.regions)
        return one_each(messages, message, self._coords[slot], [self._ids[at] for at in slot.tolist()], tags)

    def affected(self, channel: Int64Array, regions: Regions) -> tuple[Int64Array, Int64Array, TagArray]:
        """(message, slot, tags), all [pairs], of every point in the regions. channel: channel number of each message."""
        found: list[tuple[int, Int64Array, TagArray]] = []
        count = len(self._ids)
        coords, on_channel = self._coords[:count], self._channel[:count]
        for i, number in enumerate(channel.tolist()):
            tags = np.zeros(count, np.uint8)
            for box in range(int(regions.starts[i]), int(regions.starts[i + 1])):
                inside = ((coords >= regions.lo[box]) & (coords <= regions.hi[box])).all(axis=1)
                tags[inside & (on_channel == number)] |= regions.tags[box]
            slots = np.flatnonzero(tags)
            found.append((i, slots, tags[slots]))
        return (
            np.concatenate([np.full(len(slots), i, np.int64) for i, slots, _ in found]),
            np.concatenate([slots for _, slots, _ in found]),
            np.concatenate([tags for _, _, tags in found]),
        )

    def _add(self, ids: Sequence[str], keys: Sequence[ChannelKey], coords: Int64Array) -> Int64Array:
        slots = np.empty(len(ids), np.int64)
        for i, name in enumerate(zip(ids, keys, strict=True)):
            slot = self._free.pop() if self._free else len(self._ids)
            if slot == len(self._ids):
                self._ids.append(name[0])
            self._ids[slot] = name[0]
            self._slots[name] = slots[i] = slot
        if len(self._ids) > len(self._coords):
            grown = max(len(self._ids), 2 * len(self._coords))
            self._coords = np.resize(self._coords, (grown, self._coords.shape[1]))
            self._channel = np.resize(self._channel, grown)
        self._coords[slots] = coords
        self._channel[slots] = [self._channels.setdefault(key, len(self._channels)) for key in keys]
        return slots

    def _remove(self, slots: list[int]) -> None:
        self._free.extend(slots)
        self._channel[slots] = NO_CHANNEL

    def dump(self, types: Sequence[pa.DataType]) -> Any:
        return {
            "id": pa.array([id for id, _ in self._slots], pa.string()),
            "channel": channel_columns(types, [key for _, key in self._slots]),
            "coords": self._coords[list(self._slots.values())],
        }

    def load(self, state: Any) -> None:
        ids = state["id"].to_pylist()
        self._add(ids, channel_keys(state["channel"], len(ids)), state["coords"])


class IndexedTargets(Targets):
    """As `Targets`, but finds points with an index."""

    def __init__(self, dims: int) -> None:
        # Imported here because compiled kernels take a second to import, and the default strategies need none.
        from tidings.kernels.point_index import PointIndex

        super().__init__(dims)
        self._forest = PointIndex(dims)

    def affected(self, channel: Int64Array, regions: Regions) -> tuple[Int64Array, Int64Array, TagArray]:
        starts, slots, tags = self._forest.stab(channel, regions.lo, regions.hi, regions.tags, regions.starts)
        return np.repeat(np.arange(len(channel)), np.diff(starts)), slots.astype(np.int64), tags

    def _add(self, ids: Sequence[str], keys: Sequence[ChannelKey], coords: Int64Array) -> Int64Array:
        slots = super()._add(ids, keys, coords)
        self._forest.add_many(self._channel[slots], slots, coords)
        return slots

    def _remove(self, slots: list[int]) -> None:
        super()._remove(slots)
        self._forest.remove_many(np.array(slots, np.int64))
