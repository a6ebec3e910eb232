"""Which shard a row belongs to."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.model.codes import Int64Array


def shard_of_values(rows: pa.RecordBatch, names: Iterable[str], shards: int) -> Int64Array:
    """Shard of each row by a hash of its values, the same in every process and for equal values of all types."""
    values = zip(*(_hashable(rows.column(name)).to_pylist() for name in names), strict=True)
    return np.array([zlib.crc32(repr(value).encode()) % shards for value in values], np.int64)


def _hashable(column: pa.Array) -> pa.Array:
    """Values whose texts are equal exactly where the values are."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    # Zero has two signs.
    return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column
