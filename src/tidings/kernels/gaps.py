"""Gaps: a changing multiset of intervals that is asked which gaps some interval fits into; mostly none does."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tidings.kernels import gaps_change, gaps_query
from tidings.kernels.arguments import as_ints
from tidings.kernels.gaps_arrays import (
    BLOCK,
    BLOCK_FILLED,
    BLOCKS,
    DIRECTORY_FIELDS,
    DONE,
    HEAD_FIELDS,
    I64,
    NEEDS_ROOM,
    POOL_FREE,
    PROGRESS,
    SIZE,
    Flags,
)
from tidings.kernels.stabs_intervals import as_intervals

__all__ = ["Gaps"]

BULK_MIN = 64
"""Fewer new intervals than this are added one by one."""
COUNT_LOW = BLOCK // 8
"""With fewer intervals a block, all blocks are made anew."""


class Gaps:
    """A multiset of closed intervals of int64, sorted by their lower ends, in blocks.

    The directory knows for each block the least upper end of all intervals from there on. So a gap into which nothing fits
    is mostly known for one by a single look there; only blocks that have an interval short enough are searched.

    Not safe for use by several threads at a time.
    """

    def __init__(self) -> None:
        self._clear(0)

    def __len__(self) -> int:
        """Number of intervals, counted as often as they were added."""
        return int(self._head[SIZE])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return self._head.nbytes + self._directory.nbytes + self._pool.nbytes

    def add(self, los: ArrayLike, his: ArrayLike) -> None:
        """Add intervals, each with lo <= hi."""
        lo, hi = as_intervals(los, his)
        if len(lo) >= BULK_MIN and 2 * len(lo) >= len(self):
            old_lo, old_hi = gaps_change.dump(self._head, self._directory, self._pool)
            self._fill(np.concatenate((old_lo, lo)), np.concatenate((old_hi, hi)))
            return
        at = 0
        while gaps_change.add(self._head, self._directory, self._pool, lo, hi, at) == NEEDS_ROOM:
            at = int(self._head[PROGRESS])
            self._make_room()

    def remove(self, los: ArrayLike, his: ArrayLike) -> None:
        """Remove intervals that are present; KeyError if one is not, after those before it have been removed."""
        lo, hi = as_intervals(los, his)
        if gaps_change.remove(self._head, self._directory, self._pool, lo, hi) != DONE:
            at = int(self._head[PROGRESS])
            raise KeyError(f"there is no interval from {lo[at]} to {hi[at]}")
        if (
            len(self) < COUNT_LOW * (int(self._head[BLOCKS]) - 1)
            or 8 * (len(self) + BLOCK) < self._pool.shape[0] * BLOCK
        ):
            self._fill(*gaps_change.dump(self._head, self._directory, self._pool))

    def meets(self, lo_from: ArrayLike, at: ArrayLike, hi_to: ArrayLike) -> Flags:
        """Whether some interval has lo_from <= lo <= at <= hi <= hi_to, for each query."""
        begins, middles, ends = as_ints(lo_from), as_ints(at), as_ints(hi_to)
        if not len(begins) == len(middles) == len(ends):
            raise ValueError("there must be as many lo_from as at and hi_to")
        found: Flags = gaps_query.meets(self._head, self._directory, self._pool, begins, middles, ends)
        return found

    def _clear(self, blocks: int) -> None:
        """Have no intervals, and room for so many blocks."""
        self._head = np.zeros(HEAD_FIELDS, np.int64)
        self._head[POOL_FREE] = -1
        self._directory = np.zeros((DIRECTORY_FIELDS, blocks), np.int64)
        self._pool = np.empty((blocks, 2, BLOCK), np.int64)

    def _fill(self, los: I64, his: I64) -> None:
        self._clear(len(los) // BLOCK_FILLED + 2)
        gaps_change.fill(self._head, self._directory, self._pool, los, his, np.lexsort((his, los)))

    def _make_room(self) -> None:
        held = self._pool.shape[0]
        size = held + held // 4 + 4
        directory = np.zeros((DIRECTORY_FIELDS, size), np.int64)
        directory[:, :held] = self._directory
        pool = np.empty((size, 2, BLOCK), np.int64)
        pool[:held] = self._pool
        self._directory, self._pool = directory, pool
