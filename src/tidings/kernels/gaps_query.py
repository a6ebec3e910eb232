"""Whether an interval lies in a gap and contains a number."""

from __future__ import annotations

import numpy as np

from tidings.kernels.gaps_arrays import (
    BLOCK_AT,
    BLOCKS,
    CODE_MIN,
    COUNT,
    FROM_LO,
    GREATEST_HI,
    HI,
    I64,
    LEAST_HI,
    LO,
    REST_HI,
    Flags,
    Int,
    first_block,
)
from tidings.kernels.jit import kernel


@kernel
def any_in_block(pool: I64, block: Int, count: Int, lo_from: Int, at: Int, hi_to: Int) -> bool:
    """Whether an interval of a block has lo_from <= lo <= at <= hi <= hi_to."""
    # All are tested, without a branch, so that the loop becomes vector instructions.
    los, his = pool[block, LO], pool[block, HI]
    found = 0
    for i in range(count):
        found |= (los[i] >= lo_from) & (los[i] <= at) & (his[i] >= at) & (his[i] <= hi_to)
    return found != 0


@kernel
def meets(head: I64, directory: I64, pool: I64, lo_from: I64, at: I64, hi_to: I64) -> Flags:
    """For each query, whether there is an interval with lo_from <= lo <= at <= hi <= hi_to."""
    found = np.zeros(at.shape[0], np.bool_)
    for query in range(at.shape[0]):
        middle, end = at[query], hi_to[query]
        d = first_block(head, directory, lo_from[query], CODE_MIN)
        first = d
        # Most often the first look ends it: nothing that begins in the gap, or after it, ends in time.
        while d < head[BLOCKS] and directory[REST_HI, d] <= end:
            if d > first and directory[FROM_LO, d] > middle:
                break
            if (
                directory[LEAST_HI, d] <= end
                and directory[GREATEST_HI, d] >= middle
                and any_in_block(pool, directory[BLOCK_AT, d], directory[COUNT, d], lo_from[query], middle, end)
            ):
                found[query] = True
                break
            d += 1
    return found
