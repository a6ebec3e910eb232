"""The flat arrays of `Gaps`: blocks of intervals in the order of (lo, hi), and a directory that says what is in a block.

    pool[block]: lo, lo, lo ..       directory[:, d]: the pair (FROM_LO, FROM_HI) is not after any of the d-th block, and not
                 hi, hi, hi ..       before any of the block before; BLOCK_AT, COUNT; LEAST_HI and GREATEST_HI of its
                                     intervals; REST_HI: the least hi from this block to the last

No block of the directory is empty. Free blocks of the pool are chained through their first number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel

I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

CODE_MIN = np.iinfo(np.int64).min
CODE_MAX = np.iinfo(np.int64).max

BLOCK = 256
"""Most intervals of a block."""
BLOCK_FILLED = 3 * BLOCK // 4
"""Intervals of a block when all are made at once."""

# Rows of `directory`.
FROM_LO, FROM_HI, BLOCK_AT, COUNT, LEAST_HI, GREATEST_HI, REST_HI, DIRECTORY_FIELDS = range(8)
# Fields of `head`: intervals, blocks in the directory, blocks of the pool ever used, first of the free ones (-1: none).
SIZE, BLOCKS, POOL_TOP, POOL_FREE, PROGRESS, HEAD_FIELDS = range(6)
# The two sides of a block.
LO, HI = 0, 1

# What an update kernel reports; where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, NOT_THERE = range(3)


@kernel
def count_before(los: I64, his: I64, first: Int, stop: Int, lo: Int, hi: Int) -> Int:
    """How many of the sorted pairs from `first` to `stop` stand before this one."""
    low, high = first, stop
    while low < high:
        middle = (low + high) >> 1
        if los[middle] < lo or (los[middle] == lo and his[middle] < hi):
            low = middle + 1
        else:
            high = middle
    return low - first


@kernel
def first_block(head: I64, directory: I64, lo: Int, hi: Int) -> Int:
    """The first block of the directory in which a pair, or one after it, may stand."""
    return count_before(directory[FROM_LO], directory[FROM_HI], 1, max(1, head[BLOCKS]), lo, hi)


@kernel
def measure(directory: I64, pool: I64, d: Int) -> None:
    """Find the least and the greatest hi of a block."""
    his = pool[directory[BLOCK_AT, d], HI]
    least, greatest = CODE_MAX, CODE_MIN
    for i in range(directory[COUNT, d]):
        least = min(least, his[i])
        greatest = max(greatest, his[i])
    directory[LEAST_HI, d], directory[GREATEST_HI, d] = least, greatest


@kernel
def settle(head: I64, directory: I64, d: Int) -> None:
    """Put REST_HI right, after a change at block d, from there down to the first block that it does not concern."""
    while d >= 0:
        least = directory[LEAST_HI, d]
        if d + 1 < head[BLOCKS]:
            least = min(least, directory[REST_HI, d + 1])
        if least == directory[REST_HI, d]:
            break
        directory[REST_HI, d] = least
        d -= 1


@kernel
def open_block(head: I64, directory: I64, pool: I64, d: Int) -> None:
    """Make place in the directory for a new block, an empty one; there must be room in both arrays."""
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


@kernel
def close_block(head: I64, directory: I64, pool: I64, d: Int) -> None:
    """Take an empty block out of the directory."""
    block = directory[BLOCK_AT, d]
    pool[block, 0, 0] = head[POOL_FREE]
    head[POOL_FREE] = block
    head[BLOCKS] -= 1
    for field in range(DIRECTORY_FIELDS):
        for i in range(d, head[BLOCKS]):
            directory[field, i] = directory[field, i + 1]
