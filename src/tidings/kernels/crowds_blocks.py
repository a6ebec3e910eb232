"""Blocks of points: making one of given points, adding to it and taking from it, and telling its record.

Cells have bounds, but no borders: a new point goes to the cell that has it inside, or is the nearest. A block whose cell
is full is made anew.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import pointer
from tidings.kernels.crowds_arrays import (
    CELL_BITS,
    CELL_MAX,
    CELL_SIZE,
    CELLS_MAX,
    CHILD,
    CLASS_BITS,
    COUNT,
    HI_MAX,
    HI_MIN,
    I64,
    INT64_MAX,
    INT64_MIN,
    LO_MAX,
    LO_MIN,
    SIZE,
    CrowdPointers,
    Int,
    block_free,
    block_new,
    block_of,
    cell_of,
    cells_of,
)
from tidings.kernels.crowds_cut import select
from tidings.kernels.extents import class_for
from tidings.kernels.jit import kernel

CELL_FILL = 26
"""Points of a cell when it is made: some room is left for those to come."""
BLOCK_FILL = CELLS_MAX * CELL_FILL


@kernel
def bounds_of(c: CrowdPointers, los: Int, his: Int, n: Int) -> tuple[Int, Int, Int, Int]:
    """The bounds of n points."""
    lo_min = hi_min = INT64_MAX
    lo_max = hi_max = INT64_MIN
    for i in range(n):
        lo_min, lo_max = min(lo_min, c.m[los + i]), max(lo_max, c.m[los + i])
        hi_min, hi_max = min(hi_min, c.m[his + i]), max(hi_max, c.m[his + i])
    return lo_min, lo_max, hi_min, hi_max


@kernel
def describe_cell(c: CrowdPointers, offset: Int, cells: Int, i: Int, los: Int, size: Int) -> None:
    """Tell a block of several cells about one of them."""
    lo_min, lo_max, hi_min, hi_max = bounds_of(c, los, los + CELL_MAX, size)
    c.m[offset + LO_MIN * cells + i], c.m[offset + LO_MAX * cells + i] = lo_min, lo_max
    c.m[offset + HI_MIN * cells + i], c.m[offset + HI_MAX * cells + i] = hi_min, hi_max
    c.m[offset + CELL_SIZE * cells + i] = size


@kernel
def describe_block(c: CrowdPointers, at: Int) -> None:
    """Tell a record the bounds of its block, whose size it knows."""
    offset, k = block_of(c, at)
    if k <= CELL_BITS:
        lo_min, lo_max, hi_min, hi_max = bounds_of(c, offset, offset + (1 << k), c.nodes[at + SIZE])
    else:
        cells = cells_of(k)
        lo_min, _, hi_min, _ = bounds_of(c, offset + LO_MIN * cells, offset + HI_MIN * cells, cells)
        _, lo_max, _, hi_max = bounds_of(c, offset + LO_MAX * cells, offset + HI_MAX * cells, cells)
    c.nodes[at + LO_MIN], c.nodes[at + LO_MAX] = lo_min, lo_max
    c.nodes[at + HI_MIN], c.nodes[at + HI_MAX] = hi_min, hi_max


@kernel
def divide_cells(los: I64, his: I64, times: I64, start: Int, end: Int, cells: Int, first: Int) -> None:
    """Order points so that those of each cell, as many as of the others, are near each other."""
    stack = np.empty((CELLS_MAX, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, cells, first
    depth = 1
    while depth:
        depth -= 1
        one, other, d = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if other - one < 2:
            continue
        middle = (one + other) >> 1
        size = end - start
        select(
            pointer(his if d else los),
            pointer(los if d else his),
            pointer(times),
            start + size * one // cells,
            start + size * other // cells,
            start + size * middle // cells,
        )
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = one, middle, 1 - d
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = middle, other, 1 - d
        depth += 2


@kernel
def put_block(c: CrowdPointers, at: Int, los: I64, his: I64, times: I64, start: Int, end: Int, first: Int) -> None:
    """Let a record be of a new block with the given points, at most BLOCK_FILL, which are reordered."""
    size = end - start
    cells = 1 if size <= CELL_MAX else -(-size // CELL_FILL)
    k = class_for(size) if cells == 1 else CELL_BITS + class_for(cells)
    offset = block_new(c, k)
    c.nodes[at + CHILD] = offset << CLASS_BITS | k
    c.nodes[at + SIZE] = size
    divide_cells(los, his, times, start, end, cells, first)
    count = 0
    for i in range(cells):
        first, last = start + size * i // cells, start + size * (i + 1) // cells
        lo_at, hi_at, times_at, _ = cell_of(c, at, i)
        for j in range(last - first):
            c.m[lo_at + j], c.m[hi_at + j], c.m[times_at + j] = los[first + j], his[first + j], times[first + j]
            count += times[first + j]
        if cells > 1:
            describe_cell(c, offset, cells_of(k), i, lo_at, last - first)
    for i in range(cells, cells_of(k)):
        describe_cell(c, offset, cells_of(k), i, offset, 0)
    c.nodes[at + COUNT] = count
    describe_block(c, at)


@kernel
def list_block(c: CrowdPointers, at: Int, los: I64, his: I64, times: I64, n: Int) -> Int:
    """Write the points of a block to place n and the following; returns where they end."""
    for i in range(cells_of(block_of(c, at)[1])):
        lo_at, hi_at, times_at, size = cell_of(c, at, i)
        for j in range(size):
            los[n + j], his[n + j], times[n + j] = c.m[lo_at + j], c.m[hi_at + j], c.m[times_at + j]
        n += size
    return n


@kernel
def find(c: CrowdPointers, at: Int, lo: Int, hi: Int) -> tuple[Int, Int]:
    """Number of the cell of a block that has a point, and its number there; -1 and -1 if it is not there."""
    offset, k = block_of(c, at)
    cells = cells_of(k)
    for i in range(cells):
        if cells > 1 and (
            c.m[offset + LO_MIN * cells + i] > lo
            or c.m[offset + LO_MAX * cells + i] < lo
            or c.m[offset + HI_MIN * cells + i] > hi
            or c.m[offset + HI_MAX * cells + i] < hi
        ):
            continue
        lo_at, hi_at, _, size = cell_of(c, at, i)
        for j in range(size):
            if c.m[lo_at + j] == lo and c.m[hi_at + j] == hi:
                return i, j
    return -1, -1


@kernel
def nearest_cell(c: CrowdPointers, at: Int, lo: Int, hi: Int) -> Int:
    """Number of the cell of a block whose bounds are the nearest to a point."""
    offset, k = block_of(c, at)
    cells = cells_of(k)
    if cells == 1:
        return 0
    found, least = 0, np.inf
    for i in range(cells):
        # As floats, as differences may be too large for integers.
        far = max(float(c.m[offset + LO_MIN * cells + i]) - float(lo), 0.0)
        far += max(float(lo) - float(c.m[offset + LO_MAX * cells + i]), 0.0)
        far += max(float(c.m[offset + HI_MIN * cells + i]) - float(hi), 0.0)
        far += max(float(hi) - float(c.m[offset + HI_MAX * cells + i]), 0.0)
        if far < least and c.m[offset + CELL_SIZE * cells + i]:
            found, least = i, far
    return found


@kernel
def fit_cell(c: CrowdPointers, at: Int, wanted: Int) -> None:
    """Let a block of one cell have room for `wanted` points, but not for four times as many; the first of them stay."""
    offset, k = block_of(c, at)
    if wanted > (1 << k) or (wanted << 2) <= (1 << k):
        fitting = class_for(wanted)
        moved = block_new(c, fitting)
        for field in range(3):
            for i in range(min(c.nodes[at + SIZE], wanted)):
                c.m[moved + (field << fitting) + i] = c.m[offset + (field << k) + i]
        block_free(c, offset, k)
        c.nodes[at + CHILD] = moved << CLASS_BITS | fitting


@kernel
def append(c: CrowdPointers, at: Int, lo: Int, hi: Int, n: Int) -> bool:
    """Add a new point to a block, whose record is not told; False if its cell is full."""
    offset, k = block_of(c, at)
    i = nearest_cell(c, at, lo, hi)
    size = cell_of(c, at, i)[3]
    if size == CELL_MAX:
        return False
    if k <= CELL_BITS:
        fit_cell(c, at, size + 1)
    lo_at, hi_at, times_at, _ = cell_of(c, at, i)
    c.m[lo_at + size], c.m[hi_at + size], c.m[times_at + size] = lo, hi, n
    if k > CELL_BITS:
        describe_cell(c, offset, cells_of(k), i, lo_at, size + 1)
    return True


@kernel
def take(c: CrowdPointers, at: Int, i: Int, j: Int) -> None:
    """Remove point j of cell i from a block; its record is told, but for the count."""
    offset, k = block_of(c, at)
    lo_at, hi_at, times_at, size = cell_of(c, at, i)
    last = size - 1
    c.m[lo_at + j], c.m[hi_at + j] = c.m[lo_at + last], c.m[hi_at + last]
    c.m[times_at + j] = c.m[times_at + last]
    c.nodes[at + SIZE] -= 1
    if k > CELL_BITS:
        describe_cell(c, offset, cells_of(k), i, lo_at, last)
    elif last:
        fit_cell(c, at, last)
    describe_block(c, at)
