"""Contained intervals: a changing multiset of intervals that is asked whether any lies within a gap and contains a number.

Sorted by (lo, hi) in blocks, with a directory that knows for each block the least and the greatest upper end of its
intervals, and the least upper end of all intervals from there on: suffix minima, as in a priority search tree (McCreight,
1985) cut off at height two. Mostly no interval fits, and one look at the suffix minimum tells; only blocks that have an
interval short enough are searched.

    pool[block]: lo, lo, lo ..       directory[:, d]: the pair (FROM_LO, FROM_HI) is not above any of the d-th block, and not
                 hi, hi, hi ..       below any of the block before; BLOCK_AT, COUNT; LEAST_HI and GREATEST_HI of its intervals;
                                     REST_HI: the least hi from this block to the last

No block of the directory is empty. Free blocks of the pool are chained through their first number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from research.strategies.join.kernels.piercing_set import as_intervals
from tidings.kernels.arguments import as_ints
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, Int
from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray

BLOCK = 256
"""Most intervals of a block."""
BLOCK_FILLED = 3 * BLOCK // 4
"""Intervals of a block when all are made at once."""
BULK_MIN = 64
"""Fewer new intervals than this are added one by one."""
COUNT_LOW = BLOCK // 8
"""With fewer intervals per block, all blocks are made anew."""

# Rows of `directory`.
FROM_LO, FROM_HI, BLOCK_AT, COUNT, LEAST_HI, GREATEST_HI, REST_HI, DIRECTORY_FIELDS = range(8)
# Fields of `head`: intervals, blocks in the directory, blocks of the pool ever used, first of the free ones (-1: none).
SIZE, BLOCKS, POOL_TOP, POOL_FREE, PROGRESS, HEAD_FIELDS = range(6)
# The two sides of a block.
LO, HI = 0, 1
# What `change` reports; where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, NOT_THERE = range(3)


class ContainedIntervals:
    """A multiset of closed intervals of int64.

    Not safe for use by several threads at a time.
    """

    _head: I64
    _directory: I64
    _pool: I64

    def __init__(self) -> None:
        self._fill(np.empty(0, np.int64), np.empty(0, np.int64))

    def __len__(self) -> int:
        """Number of intervals, counted as often as they were added."""
        return int(self._head[SIZE])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return self._head.nbytes + self._directory.nbytes + self._pool.nbytes

    def add(self, los: ArrayLike, his: ArrayLike) -> None:
        """Adds intervals, each with lo <= hi."""
        lo, hi = as_intervals(los, his)
        if len(lo) >= BULK_MIN and 2 * len(lo) >= len(self):
            old_lo, old_hi = self._intervals()
            self._fill(np.concatenate((old_lo, lo)), np.concatenate((old_hi, hi)))
        else:
            self._change(lo, hi, is_added=True)

    def remove(self, los: ArrayLike, his: ArrayLike) -> None:
        """Removes intervals that are present; KeyError if one is not, after those before it have been removed."""
        lo, hi = as_intervals(los, his)
        self._change(lo, hi, is_added=False)
        few = len(self) < COUNT_LOW * (int(self._head[BLOCKS]) - 1)
        if few or 8 * (len(self) + BLOCK) < self._pool.shape[0] * BLOCK:
            self._fill(*self._intervals())

    def any_within(self, lo_from: ArrayLike, at: ArrayLike, hi_to: ArrayLike) -> BoolArray:
        """Whether some interval has lo_from <= lo <= at <= hi <= hi_to, for each query."""
        begins, middles, ends = as_ints(lo_from), as_ints(at), as_ints(hi_to)
        if not len(begins) == len(middles) == len(ends):
            raise ValueError("there must be as many lo_from as at and hi_to")
        found: BoolArray = any_within(self._head, self._directory, self._pool, begins, middles, ends)
        return found

    def _change(self, lo: I64, hi: I64, *, is_added: bool) -> None:
        at = 0
        while True:
            status = change(self._head, self._directory, self._pool, lo, hi, is_added, at)
            at = int(self._head[PROGRESS])
            if status == DONE:
                return
            if status == NOT_THERE:
                raise KeyError(f"there is no interval from {lo[at]} to {hi[at]}")
            held = self._pool.shape[0]
            size = held + held // 4 + 4
            directory = np.zeros((DIRECTORY_FIELDS, size), np.int64)
            directory[:, :held] = self._directory
            pool = np.empty((size, 2, BLOCK), np.int64)
            pool[:held] = self._pool
            self._directory, self._pool = directory, pool

    def _intervals(self) -> tuple[I64, I64]:
        """All intervals in order: los and his."""
        blocks = int(self._head[BLOCKS])
        is_used = np.arange(BLOCK) < self._directory[COUNT, :blocks, None]
        used = self._pool[self._directory[BLOCK_AT, :blocks]]
        return used[:, LO][is_used], used[:, HI][is_used]

    def _fill(self, los: I64, his: I64) -> None:
        """Lets these be the intervals, in new blocks."""
        blocks, order = -(-len(los) // BLOCK_FILLED), np.lexsort((his, los))
        room = len(los) // BLOCK_FILLED + 2 if len(los) else 0
        self._head = np.zeros(HEAD_FIELDS, np.int64)
        self._head[SIZE], self._head[BLOCKS], self._head[POOL_TOP], self._head[POOL_FREE] = len(los), blocks, blocks, -1
        self._directory = np.zeros((DIRECTORY_FIELDS, room), np.int64)
        self._pool = np.empty((room, 2, BLOCK), np.int64)
        padding = np.full(blocks * BLOCK_FILLED - len(los), len(los))
        places = np.concatenate((order, padding)).reshape(blocks, BLOCK_FILLED)
        is_used = places < len(los)
        for side, values in ((LO, los), (HI, his)):
            self._pool[:blocks, side, :BLOCK_FILLED] = np.append(values, 0)[places]
        directory, ends = self._directory[:, :blocks], self._pool[:blocks, HI, :BLOCK_FILLED]
        directory[FROM_LO], directory[FROM_HI] = self._pool[:blocks, LO, 0], self._pool[:blocks, HI, 0]
        directory[BLOCK_AT], directory[COUNT] = np.arange(blocks), is_used.sum(axis=1)
        directory[LEAST_HI] = np.where(is_used, ends, CODE_MAX).min(axis=1, initial=CODE_MAX)
        directory[GREATEST_HI] = np.where(is_used, ends, CODE_MIN).max(axis=1, initial=CODE_MIN)
        directory[REST_HI] = np.minimum.accumulate(directory[LEAST_HI, ::-1])[::-1]


@kernel
def count_below(los: I64, his: I64, first: Int, stop: Int, lo: Int, hi: Int) -> Int:
    """How many of the sorted pairs from `first` to `stop` are below this one."""
    low, high = first, stop
    while low < high:
        middle = (low + high) >> 1
        if los[middle] < lo or (los[middle] == lo and his[middle] < hi):
            low = middle + 1
        else:
            high = middle
    return low - first


@kernel
def measure(directory: I64, pool: I64, d: Int) -> None:
    """Finds the least and the greatest hi of a block."""
    his = pool[directory[BLOCK_AT, d], HI]
    least, greatest = CODE_MAX, CODE_MIN
    for i in range(directory[COUNT, d]):
        least = min(least, his[i])
        greatest = max(greatest, his[i])
    directory[LEAST_HI, d], directory[GREATEST_HI, d] = least, greatest


@kernel
def open_block(head: I64, directory: I64, pool: I64, d: Int) -> None:
    """Adds a block to the directory, the d-th; both arrays have room. It gets half of the block before it, which is full."""
    for field in range(DIRECTORY_FIELDS):
        for i in range(head[BLOCKS], d, -1):
            directory[field, i] = directory[field, i - 1]
    head[BLOCKS] += 1
    block = head[POOL_FREE]
    if block >= 0:
        head[POOL_FREE] = pool[block, 0, 0]
    else:
        block = head[POOL_TOP]
        head[POOL_TOP] += 1
    directory[BLOCK_AT, d], directory[COUNT, d] = block, 0
    if d > 0:
        source, target, half = pool[directory[BLOCK_AT, d - 1]], pool[block], BLOCK // 2
        for i in range(BLOCK - half):
            target[LO, i] = source[LO, half + i]
            target[HI, i] = source[HI, half + i]
        directory[COUNT, d - 1], directory[COUNT, d] = half, BLOCK - half
        directory[FROM_LO, d], directory[FROM_HI, d] = target[LO, 0], target[HI, 0]
        measure(directory, pool, d - 1)
    measure(directory, pool, d)
    rest = directory[REST_HI, d + 1] if d + 1 < head[BLOCKS] else CODE_MAX
    directory[REST_HI, d] = min(rest, directory[LEAST_HI, d])


@kernel
def change(head: I64, directory: I64, pool: I64, los: I64, his: I64, is_added: bool, first: Int) -> Int:
    """Adds the intervals from `first` on, or removes them; returns DONE or why it stopped."""
    for i in range(first, los.shape[0]):
        head[PROGRESS] = i
        lo, hi = los[i], his[i]
        has_room = head[BLOCKS] < directory.shape[1] and (head[POOL_FREE] >= 0 or head[POOL_TOP] < pool.shape[0])
        if is_added and not has_room:
            return NEEDS_ROOM
        if head[BLOCKS] == 0:
            if not is_added:
                return NOT_THERE
            open_block(head, directory, pool, 0)
        d = count_below(directory[FROM_LO], directory[FROM_HI], 1, head[BLOCKS], lo, hi)
        block = pool[directory[BLOCK_AT, d]]
        place = count_below(block[LO], block[HI], 0, directory[COUNT, d], lo, hi)
        if is_added:
            if directory[COUNT, d] == BLOCK:
                open_block(head, directory, pool, d + 1)
                if place > BLOCK // 2:
                    d += 1
                    place -= BLOCK // 2
                    block = pool[directory[BLOCK_AT, d]]
            for k in range(directory[COUNT, d], place, -1):
                block[LO, k] = block[LO, k - 1]
            for k in range(directory[COUNT, d], place, -1):
                block[HI, k] = block[HI, k - 1]
            block[LO, place], block[HI, place] = lo, hi
            directory[COUNT, d] += 1
            directory[LEAST_HI, d] = min(directory[LEAST_HI, d], hi)
            directory[GREATEST_HI, d] = max(directory[GREATEST_HI, d], hi)
            head[SIZE] += 1
        else:
            if place == directory[COUNT, d]:
                d, place = d + 1, 0
                if d == head[BLOCKS]:
                    return NOT_THERE
                block = pool[directory[BLOCK_AT, d]]
            if block[LO, place] != lo or block[HI, place] != hi:
                return NOT_THERE
            directory[COUNT, d] -= 1
            for k in range(place, directory[COUNT, d]):
                block[LO, k] = block[LO, k + 1]
            for k in range(place, directory[COUNT, d]):
                block[HI, k] = block[HI, k + 1]
            head[SIZE] -= 1
            if directory[COUNT, d] == 0:
                block[0, 0] = head[POOL_FREE]
                head[POOL_FREE] = directory[BLOCK_AT, d]
                head[BLOCKS] -= 1
                for field in range(DIRECTORY_FIELDS):
                    for k in range(d, head[BLOCKS]):
                        directory[field, k] = directory[field, k + 1]
                d -= 1
            elif hi == directory[LEAST_HI, d] or hi == directory[GREATEST_HI, d]:
                measure(directory, pool, d)
        # Suffix minima are put right from there down to the first block that the change does not concern.
        while d >= 0:
            least = directory[LEAST_HI, d]
            if d + 1 < head[BLOCKS]:
                least = min(least, directory[REST_HI, d + 1])
            if least == directory[REST_HI, d]:
                break
            directory[REST_HI, d] = least
            d -= 1
    return DONE


@kernel
def any_within(head: I64, directory: I64, pool: I64, lo_from: I64, at: I64, hi_to: I64) -> BoolArray:
    """For each query, whether there is an interval with lo_from <= lo <= at <= hi <= hi_to."""
    found = np.zeros(at.shape[0], np.bool_)
    for query in range(at.shape[0]):
        begin, middle, end = lo_from[query], at[query], hi_to[query]
        d = count_below(directory[FROM_LO], directory[FROM_HI], 1, max(1, head[BLOCKS]), begin, CODE_MIN)
        first = d
        # Most often the first look ends it: nothing that begins in the gap, or after it, ends in time.
        while d < head[BLOCKS] and directory[REST_HI, d] <= end:
            if d > first and directory[FROM_LO, d] > middle:
                break
            if directory[LEAST_HI, d] <= end and directory[GREATEST_HI, d] >= middle:
                # All are tested, without a branch, so that the loop becomes vector instructions.
                los, his = pool[directory[BLOCK_AT, d], LO], pool[directory[BLOCK_AT, d], HI]
                is_found = 0
                for i in range(directory[COUNT, d]):
                    is_found |= (los[i] >= begin) & (los[i] <= middle) & (his[i] >= middle) & (his[i] <= end)
                if is_found:
                    found[query] = True
                    break
            d += 1
    return found
