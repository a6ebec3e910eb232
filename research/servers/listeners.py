"""Counts of points by channel, for servers that need to know of subscriptions only whether a channel has any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.model.channel import ChannelKey, channel_columns, channel_keys, group_channels
from tidings.model.codes import BoolArray
from tidings.model.points import PointBatch, on_some_channel


class Listeners:
    """Number of points on each channel."""

    def __init__(self) -> None:
        self.counts: Counter[ChannelKey] = Counter()

    def add(self, points: PointBatch, sign: int = 1) -> None:
        on_channel = on_some_channel(points)
        group, keys = group_channels(
            [column.filter(pa.array(on_channel)) for column in points.channel], int(on_channel.sum())
        )
        for key, count in zip(keys, np.bincount(group, minlength=len(keys)).tolist(), strict=True):
            self.counts[key] += sign * count
            if self.counts[key] <= 0:
                del self.counts[key]

    def hear(self, channel: Sequence[pa.Array], length: int) -> BoolArray:
        """Whether each of these channels has a point, [length]. channel: one array per component."""
        group, keys = group_channels(channel, length)
        return np.array([key in self.counts for key in keys], np.bool_)[group]

    def dump(self, types: Sequence[pa.DataType]) -> Any:
        counts = np.array(list(self.counts.values()), np.int64)
        return {"channel": channel_columns(types, self.counts), "count": counts}

    def load(self, state: Any) -> None:
        keys = channel_keys(state["channel"], len(state["count"]))
        self.counts = Counter(dict(zip(keys, state["count"].tolist(), strict=True)))
