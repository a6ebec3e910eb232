"""The way from regions to places: an index of the points of all subscriptions, with the place of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from research.servers.forms import spec_of
from research.servers.message import MessageBatch
from tidings.kernels.arrays import grow
from tidings.kernels.point_index import PointIndex
from tidings.model.catalog import Catalog
from tidings.model.channel import ChannelKey, group_channels
from tidings.model.codes import Int64Array
from tidings.model.points import Event, PointBatch

_NO_CHANNEL = -1


class _FormPoints:
    """The points of one form."""

    def __init__(self, key: str, catalog: Catalog) -> None:
        self.space = spec_of(key, catalog).space
        self.index = PointIndex(self.space.dims)
        self.place = np.zeros(0, np.int64)
        """[slots]."""
        self._channels: dict[ChannelKey, int] = {}
        self._slots: dict[str, list[int]] = {}
        """Id -> slots of its points that are in the index."""
        self._free: list[int] = []
        self._top = 0

    def add(self, points: PointBatch, place_of: Callable[[str], int]) -> None:
        channel = self.numbers(points.channel, len(points), is_new=True)
        at = np.flatnonzero(channel != _NO_CHANNEL)
        if not len(at):
            return
        slots = [self._free.pop() if self._free else self._new_slot() for _ in at]
        grow(self.place, self._top)
        ids = points.id.take(pa.array(at)).to_pylist()
        for slot, id in zip(slots, ids, strict=True):
            self._slots.setdefault(id, []).append(slot)
        self.place[slots] = [place_of(id) for id in ids]
        self.index.add_many(channel[at], slots, points.coords[at])

    def remove(self, ids: Iterable[str]) -> None:
        slots = [slot for id in ids for slot in self._slots.pop(id, ())]
        self.index.remove_many(slots)
        self._free += slots

    def _new_slot(self) -> int:
        self._top += 1
        return self._top - 1

    def numbers(self, columns: Iterable[pa.Array], length: int, *, is_new: bool = False) -> Int64Array:
        """Number of each channel, [length]; _NO_CHANNEL for one with a null, and for an unknown one unless `is_new`."""
        group, keys = group_channels(list(columns), length)
        if is_new:
            numbers = [
                _NO_CHANNEL if None in key else self._channels.setdefault(key, len(self._channels)) for key in keys
            ]
        else:
            numbers = [self._channels.get(key, _NO_CHANNEL) for key in keys]
        return np.array(numbers, np.int64)[group] if keys else np.empty(0, np.int64)


class Router:
    """Points by form. A subscription has all its points at one place."""

    def __init__(self, catalog: Catalog, place_of: Callable[[str], int], words: int) -> None:
        """words: of a set of places."""
        self._catalog, self._place_of, self._words = catalog, place_of, words
        self._forms: dict[str, _FormPoints] = {}

    def move(self, points: PointBatch) -> None:
        """Takes creations and drops of one form, in order."""
        form = self._forms.get(points.form)
        if form is None:
            form = self._forms[points.form] = _FormPoints(points.form, self._catalog)
        for event, run in points.runs():
            if event is Event.CREATE:
                form.add(run, self._place_of)
            else:
                form.remove(run.id.to_pylist())

    def places(self, messages: MessageBatch, tags: int) -> Int64Array:
        """The places that each message's region meets in a box with one of these tags, as bits, [messages, words]."""
        found = np.zeros((len(messages), self._words), np.int64)
        if messages.target is not None:
            place = np.array([self._place_of(id) for id in messages.target.to_pylist()], np.int64)
            found[np.arange(len(messages)), place >> 6] = np.int64(1) << (place & 63)
            return found
        for key in messages.to or (messages.form,):
            form = self._forms.get(key)
            if form is None:
                continue
            regions = form.space.read(messages.regions, messages.axes) if messages.to else messages.regions
            channel = form.numbers(messages.channel, len(messages))
            starts, slots, met = form.index.stab(channel, regions.lo, regions.hi, regions.tags, regions.starts)
            message = np.repeat(np.arange(len(messages)), np.diff(starts))
            kept = (met & tags) != 0
            place = form.place[slots[kept]]
            np.bitwise_or.at(found, (message[kept], place >> 6), np.int64(1) << (place & 63))
        return found
