"""Which shard a row belongs to."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tidings.model.codes import Int64Array


def shard_of_values(rows: pa.RecordBatch, names: Iterable[str], shards: int) -> Int64Array:
    """Shard of each row by a hash of its values, the same in every process and for equal values of all types."""
    columns = [rows.column(name) for name in names]
    encoded = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in columns]
    values = zip(*(column.to_pylist() for column in encoded), strict=True)
    return np.array([zlib.crc32(repr(value).encode()) % shards for value in values], np.int64)
