"""Rows by position: appended, never overwritten, and gathered by position in one go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidings.model.change import concat_batches
from tidings.model.codes import Int64Array

_CHUNK_BYTES_MAX = 2**30
"""Larger chunks are not merged: Arrow's text arrays hold at most 2 GiB."""


class RowLog:
    """Rows of one schema in chunks, whose number stays logarithmic because small ones are merged."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._chunks: list[pa.RecordBatch] = []
        self._starts: list[int] = []
        self._total = 0

    @property
    def names(self) -> list[str]:
        names: list[str] = self._schema.names
        return names

    def __len__(self) -> int:
        return self._total

    def clear(self) -> None:
        self._chunks, self._starts, self._total = [], [], 0

    def append(self, rows: pa.RecordBatch) -> None:
        """Adds rows; the first one's position is the length before."""
        if rows.num_rows == 0:
            return
        self._chunks.append(rows)
        self._starts.append(self._total)
        self._total += rows.num_rows
        while len(self._chunks) > 1 and self._chunks[-1].num_rows * 2 > self._chunks[-2].num_rows:
            if self._chunks[-1].nbytes + self._chunks[-2].nbytes > _CHUNK_BYTES_MAX:
                break
            last = self._chunks.pop()
            self._starts.pop()
            self._chunks[-1] = concat_batches([self._chunks[-1], last])

    def take(self, positions: Int64Array) -> pa.RecordBatch:
        """Rows at the positions; a negative position gives a row of nulls."""
        if not self._chunks:
            return self._nulls(len(positions))
        if len(self._chunks) == 1:
            return self._chunks[0].take(pa.array(positions, mask=positions < 0))
        chunk_of = np.searchsorted(np.array(self._starts), positions, "right") - 1
        order = np.argsort(chunk_of, kind="stable")
        parts = []
        bounds = np.searchsorted(chunk_of[order], np.arange(-1, len(self._chunks) + 1))
        if bounds[1] > bounds[0]:
            parts.append(self._nulls(int(bounds[1] - bounds[0])))
        for chunk in range(len(self._chunks)):
            chosen = order[bounds[chunk + 1] : bounds[chunk + 2]]
            if len(chosen):
                parts.append(self._chunks[chunk].take(pa.array(positions[chosen] - self._starts[chunk])))
        if not parts:
            return self._chunks[0].slice(0, 0)
        gathered = concat_batches(parts)
        inverse = np.empty(len(order), np.int64)
        inverse[order] = np.arange(len(order))
        return gathered.take(pa.array(inverse))

    def _nulls(self, count: int) -> pa.RecordBatch:
        arrays = [pa.nulls(count, field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
