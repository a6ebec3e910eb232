"""Where points lie, without their names: enough to tell whether anybody may be in a box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidings.families.listeners import on_some_channel
from tidings.model.channel import ChannelKey, channel_columns, channel_keys, group_channels
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch

if TYPE_CHECKING:
    from tidings.kernels.point_index import PointIndex

GONE_MIN = 1_024
"""Fewer who have gone are not worth looking for."""


class Places:
    """The places of all points of a form; an index of them is made when somebody first asks.

    Those who go are taken off once they are half as many as those who came. Until then somebody may seem to be where
    nobody is left, which costs a message that nobody hears.
    """

    def __init__(self, dims: int) -> None:
        self._dims = dims
        self._channels: dict[ChannelKey, int] = {}
        self._came = _Rows(1 + dims)
        self._gone = _Rows(1 + dims)
        self._forest: PointIndex | None = None

    def add(self, points: PointBatch) -> None:
        self._came.add(self._rows(points))

    def remove(self, points: PointBatch) -> None:
        self._gone.add(self._rows(points))
        if len(self._gone) >= max(GONE_MIN, len(self._came) // 2):
            self._came = _Rows(1 + self._dims, _difference(self._came.all(), self._gone.all()))
            self._gone = _Rows(1 + self._dims)
            self._forest = None

    def hear(self, messages: MessageBatch) -> BoolArray:
        """Which of the messages somebody may hear."""
        group, keys = group_channels(messages.channel, len(messages))
        channel = np.array([self._channels.get(key, -1) for key in keys], np.int64)[group]
        regions = messages.regions
        found = self._index().any(np.repeat(channel, np.diff(regions.starts)), regions.lo, regions.hi)
        before = np.concatenate([[0], np.cumsum(found)])
        heard: BoolArray = before[regions.starts[1:]] > before[regions.starts[:-1]]
        return heard

    def dump(self, types: Sequence[pa.DataType]) -> Any:
        channels = channel_columns(types, self._channels)
        return {"channels": channels, "count": len(self._channels), "came": self._came.all(), "gone": self._gone.all()}

    def load(self, state: Any) -> None:
        self._channels = {key: i for i, key in enumerate(channel_keys(state["channels"], state["count"]))}
        self._came, self._gone = (_Rows(1 + self._dims, state[name]) for name in ("came", "gone"))
        self._forest = None

    def _rows(self, points: PointBatch) -> Int64Array:
        """Points as rows of numbers, the channel's first."""
        points = points.take(on_some_channel(points))
        group, keys = group_channels(points.channel, len(points))
        numbers = np.array([self._channels.setdefault(key, len(self._channels)) for key in keys], np.int64)
        return np.column_stack([numbers[group], points.coords])

    def _index(self) -> PointIndex:
        if self._forest is None:
            # Imported here because compiled kernels take a second to import, and where no value is long, none are needed.
            from tidings.kernels.point_index import PointIndex

            self._forest = PointIndex(self._dims)
        known = len(self._forest)
        new = self._came.all()[known:]
        self._forest.add_many(new[:, 0], np.arange(known, known + len(new)), new[:, 1:])
        return self._forest


class _Rows:
    """Rows of numbers in an array that grows."""

    def __init__(self, width: int, rows: Int64Array | None = None) -> None:
        self._rows = np.empty((0, width), np.int64) if rows is None else rows
        self._count = len(self._rows)

    def __len__(self) -> int:
        return self._count

    def all(self) -> Int64Array:
        return self._rows[: self._count]

    def add(self, rows: Int64Array) -> None:
        count = self._count + len(rows)
        if count > len(self._rows):
            grown = np.empty((max(count, self._count * 3 // 2), self._rows.shape[1]), np.int64)
            grown[: self._count] = self.all()
            self._rows = grown
        self._rows[self._count : count] = rows
        self._count = count


def _difference(rows: Int64Array, gone: Int64Array) -> Int64Array:
    """The rows without those that have gone, each as often as it is left."""
    joined = np.concatenate([rows, gone])
    sign = np.repeat([1, -1], [len(rows), len(gone)])
    order = np.lexsort(joined.T[::-1])
    joined = joined[order]
    first = np.flatnonzero(np.concatenate([[True], (joined[1:] != joined[:-1]).any(axis=1)]))
    return np.repeat(joined[first], np.add.reduceat(sign[order], first), axis=0)
