"""Ways to turn changes into top-k messages: `dense` (regions found without a look at subscriptions) and `unicast`.

Both give the same notifications. `dense` sends a row to the tiles of the plane where it matters, whoever is there;
`unicast` finds the points in these tiles and sends to each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.base import Created, Rows, Server
from tidings.families.topk.index import Ranked
from tidings.families.topk.reformulate import messages_of
from tidings.families.topk.subscription import Space
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey, channel_columns, channel_keys, group_channels
from tidings.model.codes import BoolArray
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch


class DenseServer(Server):
    """At most k tiles for a row that rises, and some for each row that takes the place of one that falls."""

    remembers_changes = True

    def __init__(self, space: Space) -> None:
        self.space = space
        self.ranked = Ranked(space)
        self._listeners: Counter[ChannelKey] = Counter()

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        step = self.ranked.change(changes)
        if len(step.change) == 0:
            return []
        messages = messages_of(self.space, self.ranked, changes.seq, step)
        heard = self._is_heard(messages)
        return [messages.take(np.flatnonzero(heard))] if heard.any() else []

    def _is_heard(self, messages: MessageBatch) -> BoolArray:
        """Which messages are on channels where somebody listens."""
        group, keys = group_channels(messages.channel, len(messages))
        return np.array([key in self._listeners for key in keys], np.bool_)[group]

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        if not self.ranked.is_filled:
            self.ranked.fill(tables[self.space.table.name])
        self._count(points, 1)
        if not wants_snapshots:
            return Created(points)
        keys = channel_keys(points.channel, len(points))
        owner, row = self.ranked.best(keys, points.coords[:, 0], points.coords[:, 1])
        if len(owner) == 0:
            return Created(points)
        payload = self.ranked.log.take(row).select(list(self.space.payload))
        snapshots = SnapshotBatch(self.space.key, points.after[owner], points.id.take(pa.array(owner)), payload)
        return Created(points, [snapshots])

    def drop(self, points: PointBatch) -> None:
        self._count(points, -1)

    def _count(self, points: PointBatch, sign: int) -> None:
        group, keys = group_channels(points.channel, len(points))
        for key, count in zip(keys, np.bincount(group, minlength=len(keys)).tolist(), strict=True):
            self._listeners[key] += sign * count
            if self._listeners[key] <= 0:
                del self._listeners[key]

    def dump(self) -> Any:
        counts = np.array(list(self._listeners.values()), np.int64)
        channel = channel_columns(self.space.channel_types, self._listeners)
        return {"ranked": self.ranked.dump(), "channel": channel, "count": counts}

    def load(self, state: Any) -> None:
        self.ranked.load(state["ranked"])
        keys = channel_keys(state["channel"], len(state["count"]))
        self._listeners.update(dict(zip(keys, state["count"].tolist(), strict=True)))
