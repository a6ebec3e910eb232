"""Assigns rows to shards, and subscriptions to replicas."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache

import numpy as np
import pyarrow as pa

from tidings.model.channel import ChannelKey, channel_column
from tidings.model.codes import Int64Array
from tidings.model.points import PointBatch
from tidings.model.types import ColumnType

_TYPES = {type.arrow: type for type in ColumnType if type.is_comparable}


def shard_of_values(rows: pa.RecordBatch, names: Iterable[str], shards: int) -> Int64Array:
    """Shard of each row, [rows], by a hash of its values in the columns `names`.

    The same in every process; equal values give equal shards even if their column types differ.
    """
    keys = zip(*(components(rows.column(name)).to_pylist() for name in names), strict=True)
    return np.array([shard_of_key(key, shards) for key in keys], np.int64)


def shard_of_key(key: ChannelKey, shards: int) -> int:
    """Shard of the rows with these values, encoded as components of channels."""
    return zlib.crc32(repr(key).encode()) % shards


def components(column: pa.Array) -> pa.Array:
    """Values of a column encoded as components of channels: two are equal exactly if the values are."""
    type = _TYPES.get(column.type)
    if type is None:
        return column
    components, valid = channel_column(type, column)
    return components if valid.all() or type is ColumnType.TEXT else pa.array(components.to_numpy(), mask=~valid)


_LEAN = 0.2
"""The first replica gets this fraction less subscriptions than the last one."""


def share(batches: Iterable[PointBatch], count: int, number: int) -> list[PointBatch]:
    """Subscription events of replica `number` of `count`: all events of one id go to one replica."""
    own = [
        points.take(np.array([replica_of(id, count) == number for id in points.id.to_pylist()], np.bool_))
        for points in batches
    ]
    return [points for points in own if len(points)]


def replica_of(id: str, count: int) -> int:
    """Number of the replica, of `count`, that has the subscription with this id, by a hash of the id.

    Later replicas get slightly more subscriptions, so that on one machine they usually finish in order: Spark gives the first
    task of the next micro-batch to the worker that was free first, and the first replica is then already in its memory.
    """
    return min(bisect_right(_ends(count), zlib.crc32(id.encode())), count - 1)


@cache
def _ends(count: int) -> list[int]:
    """End of the hashes of each replica."""
    weights = np.linspace(1.0 - _LEAN, 1.0, count)
    ends: list[int] = (np.cumsum(weights / weights.sum()) * 2**32).astype(np.int64).tolist()
    return ends
