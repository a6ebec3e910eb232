"""Texts of a column, one after the other: what kernels write, as bytes, and what Arrow reads, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.model.codes import Int64Array


@dataclass(slots=True)
class TextColumn:
    """Text i ends at ends[i] in `data`, and begins where the one before it ends. There may be more in `data` than texts."""

    data: npt.NDArray[np.uint8]
    ends: Int64Array

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> Int64Array:
        return np.diff(self.ends, prepend=0)

    def arrow(self) -> pa.Array:
        """The texts as an array of large_binary."""
        offsets = np.concatenate([[0], self.ends])
        return pa.Array.from_buffers(
            pa.large_binary(), len(self), [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        )

    def take(self, at: Int64Array) -> TextColumn:
        return TextColumn.of(self.arrow().take(pa.array(at)))

    @staticmethod
    def of(texts: pa.Array) -> TextColumn:
        """The texts of an array of large_binary or large_string, none of them null."""
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
        whole = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return TextColumn(whole[bounds[0] : bounds[-1]], bounds[1:] - bounds[0])

    @staticmethod
    def joined(parts: Sequence[TextColumn]) -> TextColumn:
        """The texts of several columns, those of the first one first."""
        sizes = [int(part.ends[-1]) if len(part) else 0 for part in parts]
        firsts = np.cumsum([0, *sizes]).tolist()
        data = [part.data[:size] for part, size in zip(parts, sizes, strict=True)]
        return TextColumn(
            np.concatenate(data),
            np.concatenate([part.ends + first for part, first in zip(parts, firsts, strict=False)]),
        )
