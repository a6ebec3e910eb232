"""How intervals come and go: in their blocks one by one, or all at once."""

from __future__ import annotations

import numpy as np

from tidings.kernels.gaps_arrays import (
    BLOCK,
    BLOCK_AT,
    BLOCK_FILLED,
    BLOCKS,
    CODE_MAX,
    COUNT,
    DONE,
    FROM_HI,
    FROM_LO,
    GREATEST_HI,
    HI,
    I64,
    LEAST_HI,
    LO,
    NEEDS_ROOM,
    NOT_THERE,
    POOL_FREE,
    POOL_TOP,
    PROGRESS,
    REST_HI,
    SIZE,
    Int,
    close_block,
    count_before,
    first_block,
    measure,
    open_block,
    settle,
)
from tidings.kernels.jit import kernel


@kernel
def cut(head: I64, directory: I64, pool: I64, d: Int) -> None:
    """Move the second half of a full block into a new one, the next."""
    open_block(head, directory, pool, d + 1)
    source, target = pool[directory[BLOCK_AT, d]], pool[directory[BLOCK_AT, d + 1]]
    half = BLOCK // 2
    for i in range(BLOCK - half):
        target[LO, i] = source[LO, half + i]
        target[HI, i] = source[HI, half + i]
    directory[COUNT, d], directory[COUNT, d + 1] = half, BLOCK - half
    directory[FROM_LO, d + 1], directory[FROM_HI, d + 1] = target[LO, 0], target[HI, 0]
    measure(directory, pool, d)
    measure(directory, pool, d + 1)
    rest = directory[REST_HI, d + 2] if d + 2 < head[BLOCKS] else CODE_MAX
    directory[REST_HI, d + 1] = min(rest, directory[LEAST_HI, d + 1])


@kernel
def add(head: I64, directory: I64, pool: I64, los: I64, his: I64, first: Int) -> Int:
    """Add the intervals from `first` on; returns DONE or why it stopped."""
    for i in range(first, los.shape[0]):
        if head[BLOCKS] == directory.shape[1] or (head[POOL_FREE] < 0 and head[POOL_TOP] == pool.shape[0]):
            head[PROGRESS] = i
            return NEEDS_ROOM
        lo, hi = los[i], his[i]
        d = first_block(head, directory, lo, hi)
        if head[BLOCKS] == 0:
            open_block(head, directory, pool, 0)
            measure(directory, pool, 0)
            directory[REST_HI, 0] = CODE_MAX
        block = pool[directory[BLOCK_AT, d]]
        place = count_before(block[LO], block[HI], 0, directory[COUNT, d], lo, hi)
        if directory[COUNT, d] == BLOCK:
            cut(head, directory, pool, d)
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
        settle(head, directory, d)
        head[SIZE] += 1
    return DONE


@kernel
def remove(head: I64, directory: I64, pool: I64, los: I64, his: I64) -> Int:
    """Remove intervals; returns DONE, or NOT_THERE at the first one that is not."""
    for i in range(los.shape[0]):
        head[PROGRESS] = i
        lo, hi = los[i], his[i]
        if head[BLOCKS] == 0:
            return NOT_THERE
        d = first_block(head, directory, lo, hi)
        block = pool[directory[BLOCK_AT, d]]
        place = count_before(block[LO], block[HI], 0, directory[COUNT, d], lo, hi)
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
            close_block(head, directory, pool, d)
            d -= 1
        elif hi == directory[LEAST_HI, d] or hi == directory[GREATEST_HI, d]:
            measure(directory, pool, d)
        settle(head, directory, d)
    return DONE


@kernel
def dump(head: I64, directory: I64, pool: I64) -> tuple[I64, I64]:
    """All intervals in order: los and his."""
    los = np.empty(head[SIZE], np.int64)
    his = np.empty(head[SIZE], np.int64)
    end = 0
    for d in range(head[BLOCKS]):
        block, count = directory[BLOCK_AT, d], directory[COUNT, d]
        los[end : end + count] = pool[block, LO, :count]
        his[end : end + count] = pool[block, HI, :count]
        end += count
    return los, his


@kernel
def fill(head: I64, directory: I64, pool: I64, los: I64, his: I64, order: I64) -> None:
    """Fill empty arrays, with room enough, with intervals; `order` sorts them."""
    for start in range(0, order.shape[0], BLOCK_FILLED):
        d = head[BLOCKS]
        open_block(head, directory, pool, d)
        count = min(BLOCK_FILLED, order.shape[0] - start)
        block = pool[directory[BLOCK_AT, d]]
        for i in range(count):
            block[LO, i], block[HI, i] = los[order[start + i]], his[order[start + i]]
        directory[COUNT, d] = count
        directory[FROM_LO, d], directory[FROM_HI, d] = block[LO, 0], block[HI, 0]
        measure(directory, pool, d)
    rest = CODE_MAX
    for d in range(head[BLOCKS] - 1, -1, -1):
        rest = min(rest, directory[LEAST_HI, d])
        directory[REST_HI, d] = rest
    head[SIZE] = order.shape[0]
