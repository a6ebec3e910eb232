"""Assigns rows to shards."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tidings.model.channel import ChannelKey, channel_column
from tidings.model.codes import Int64Array
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
