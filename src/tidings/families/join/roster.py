"""Who has subscribed: the points of all forms of a server by name, each in a slot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.targets import one_each
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.model.region import TagArray


class Roster:
    """Names and places; a name may be in several forms at once for a moment, when a subscription becomes another."""

    def __init__(self) -> None:
        self._slots: dict[str, dict[str, int]] = {}
        self._ids: list[str] = []
        self._free: list[int] = []
        self._coords = np.empty((0, 0), np.int64)
        """As wide as the widest form."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, form: str, ids: list[str], coords: Int64Array) -> Int64Array:
        """Slots of new points of a form."""
        reused = [self._free.pop() for _ in range(min(len(ids), len(self._free)))]
        slots = np.array([*reused, *range(len(self._ids), len(self._ids) + len(ids) - len(reused))], np.int64)
        self._ids.extend([""] * (len(ids) - len(reused)))
        for slot, id in zip(slots.tolist(), ids, strict=True):
            self._ids[slot] = id
        self._slots.setdefault(form, {}).update(zip(ids, slots.tolist(), strict=True))
        self._count += len(ids)
        known, width = self._coords.shape
        if len(self._ids) > known or coords.shape[1] > width:
            rows = max(len(self._ids), 2 * known) if len(self._ids) > known else known
            grown = np.zeros((rows, max(width, coords.shape[1])), np.int64)
            grown[:known, :width] = self._coords
            self._coords = grown
        self._coords[slots, : coords.shape[1]] = coords
        return slots

    def remove(self, points: PointBatch) -> Int64Array:
        """Slots of points that go."""
        of = self._slots[points.form]
        slots = np.array([of.pop(id) for id in points.id.to_pylist()], np.int64)
        self._free.extend(slots.tolist())
        self._count -= len(slots)
        return slots

    def count(self, form: str) -> int:
        return len(self._slots.get(form, ()))

    def slots(self, form: str) -> Int64Array:
        """Of all points of a form."""
        of = self._slots.get(form, {})
        return np.fromiter(of.values(), np.int64, len(of))

    def coords(self, slots: Int64Array, dims: int) -> Int64Array:
        # Where there is nobody, nobody may have been as wide.
        return self._coords[slots, :dims] if len(slots) else np.empty((0, dims), np.int64)

    def some(self, form: str, dims: int, count: int) -> Int64Array:
        """The points of a few of a form, spread over all."""
        slots = self.slots(form)
        return self.coords(slots[:: max(1, len(slots) // count)], dims)

    def address(self, messages: MessageBatch, affected: tuple[Int64Array, Int64Array, TagArray]) -> MessageBatch | None:
        """Messages of a form, one for every point they affect; None where there is nobody."""
        message, slot, tags = affected
        points = self.coords(slot, messages.regions.dims)
        return one_each(messages, message, points, [self._ids[at] for at in slot.tolist()], tags)

    def dump(self, form: str, dims: int) -> Any:
        ids = pa.array(list(self._slots.get(form, ())), pa.string())
        return {"id": ids, "coords": self.coords(self.slots(form), dims)}
