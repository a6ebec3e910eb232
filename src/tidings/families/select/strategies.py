"""Ways to turn changes into select messages: `region` (the good one), `unicast` and `scan` (the obvious ones).

All three give the same notifications. `region` sends a change once, to everyone in a region, and never looks at points;
`unicast` finds the affected points with an index, `scan` by comparing with every point, and both send to each one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.base import Created, Rows, Server
from tidings.families.select.index import Listeners, find_rows, on_some_channel, pack_listeners, unpack_listeners
from tidings.families.select.reformulate import reformulate
from tidings.families.select.subscription import Space
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey, channel_columns, group_channels
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions, TagArray


class RegionServer(Server):
    """One message per change (two when the row changes channel), whoever and however many it concerns."""

    is_oblivious = True

    def __init__(self, space: Space) -> None:
        self.space = space
        self.listeners = Listeners()

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        messages = reformulate(self.space, changes, self.listeners.counts.keys())
        return [] if messages is None else [messages]

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        self.listeners.add(points)
        if not wants_snapshots:
            return Created(points)
        rows = tables[self.space.table.name]
        owner, position = find_rows(self.space, points, rows)
        if len(owner) == 0:
            return Created(points)
        payload = rows.take(position).select(list(self.space.projection))
        snapshots = SnapshotBatch(self.space.key, points.after[owner], points.id.take(pa.array(owner)), payload)
        return Created(points, [snapshots])

    def drop(self, points: PointBatch) -> None:
        self.listeners.add(points, -1)

    def dump(self) -> Any:
        return pack_listeners(self.space, self.listeners)

    def load(self, state: Any) -> None:
        self.listeners = unpack_listeners(state)


class _TargetServer(RegionServer):
    """Common part of the strategies that know every point and address each affected one."""

    is_oblivious = False

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._slots: dict[tuple[str, ChannelKey], int] = {}
        self._free: list[int] = []
        self._ids: list[str] = []
        self._coords = np.empty((0, space.dims), np.int64)
        self._channel = np.empty(0, np.int64)
        self._channels: dict[ChannelKey, int] = {}

    @abstractmethod
    def affected(self, channel: Int64Array, regions: Regions) -> tuple[Int64Array, Int64Array, TagArray]:
        """(message, slot, tags) of every point in the regions."""

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        messages = reformulate(self.space, changes, self.listeners.counts.keys())
        if messages is None:
            return []
        group, keys = group_channels(messages.channel, len(messages))
        channel = np.array([self._channels.get(key, -1) for key in keys], np.int64)[group]
        message, slot, tags = self.affected(channel, messages.regions)
        if len(message) == 0:
            return []
        chosen = messages.take(message)
        point = self._coords[slot]
        regions = Regions(point, point, tags, np.arange(len(message) + 1))
        target = pa.array([self._ids[at] for at in slot.tolist()], pa.string())
        return [MessageBatch(chosen.form, chosen.seq, chosen.channel, regions, chosen.payload, target)]

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        self._add(points.take(on_some_channel(points)))
        return super().create(points, tables, wants_snapshots=wants_snapshots)

    def _add(self, points: PointBatch) -> Int64Array:
        group, keys = group_channels(points.channel, len(points))
        slots = np.empty(len(points), np.int64)
        for i, (id, at) in enumerate(zip(points.id.to_pylist(), group.tolist(), strict=True)):
            slot = self._free.pop() if self._free else len(self._ids)
            if slot == len(self._ids):
                self._ids.append(id)
            self._ids[slot] = id
            self._slots[id, keys[at]] = slot
            slots[i] = slot
        if len(self._ids) > len(self._coords):
            grown = max(len(self._ids), 2 * len(self._coords))
            self._coords = np.resize(self._coords, (grown, self.space.dims))
            self._channel = np.resize(self._channel, grown)
        numbers = np.array([self._channels.setdefault(key, len(self._channels)) for key in keys], np.int64)
        self._coords[slots] = points.coords
        self._channel[slots] = numbers[group] if len(keys) else 0
        return slots

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        self._remove(points.take(on_some_channel(points)))

    def _remove(self, points: PointBatch) -> Int64Array:
        group, keys = group_channels(points.channel, len(points))
        ids = points.id.to_pylist()
        slots = [self._slots.pop((id, keys[at])) for id, at in zip(ids, group.tolist(), strict=True)]
        self._free.extend(slots)
        self._channel[slots] = -1
        return np.array(slots, np.int64)

    def dump(self) -> Any:
        keys = list(self._slots)
        slots = list(self._slots.values())
        return {
            "listeners": super().dump(),
            "id": pa.array([id for id, _ in keys], pa.string()),
            "channel": channel_columns(self.space.channel_types, [key for _, key in keys]),
            "coords": self._coords[slots],
        }

    def load(self, state: Any) -> None:
        super().load(state["listeners"])
        count = len(state["id"])
        self._add(
            PointBatch(
                self.space.key,
                np.zeros(count, np.int8),
                np.zeros(count, np.int64),
                np.arange(count),
                state["id"],
                tuple(state["channel"]),
                state["coords"],
                np.ones(count, np.bool_),
                pa.array([b""] * count, pa.binary()),
            )
        )


class UnicastServer(_TargetServer):
    def __init__(self, space: Space) -> None:
        # Imported here because compiled kernels take a second to import, and the default strategy needs none.
        from tidings.kernels.forest import PointForest

        super().__init__(space)
        self._forest = PointForest(space.dims)

    def _add(self, points: PointBatch) -> Int64Array:
        slots = super()._add(points)
        self._forest.add_many(self._channel[slots], slots, points.coords)
        return slots

    def _remove(self, points: PointBatch) -> Int64Array:
        slots = super()._remove(points)
        self._forest.remove_many(slots)
        return slots

    def affected(self, channel: Int64Array, regions: Regions) -> tuple[Int64Array, Int64Array, TagArray]:
        starts, slots, tags = self._forest.stab(channel, regions.lo, regions.hi, regions.tags, regions.starts)
        return np.repeat(np.arange(len(channel)), np.diff(starts)), slots.astype(np.int64), tags


class ScanServer(_TargetServer):
    def affected(self, channel: Int64Array, regions: Regions) -> tuple[Int64Array, Int64Array, TagArray]:
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
