"""The low entries of a key at a position, on either side.

Where a sweep follows, what is between them is looked at as well (`lows_around`, by rankings_stairs.find_lows). Where not,
one walk passes over all blocks and nodes that have no low entry, and this is much of the work of a batch (`edges_around`).
"""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    EDGE,
    INT64_MAX,
    INT64_MIN,
    LEFT,
    LOW_PLACE,
    LOW_TIE,
    LOW_X,
    RIGHT,
    TIE,
    Int,
    K,
    Pointers,
    X,
    Y,
    child_of,
    parts_of,
    root_of,
)
from tidings.kernels.rankings_blocks import seek
from tidings.kernels.rankings_stairs import find_lows, side_of


@kernel
def lows_around(s: Pointers, of: Int, x: Int, y: Int, tie: Int) -> tuple[Int, Int]:
    """Find the low entries of a key at a position, whether an entry is there or not; how many left and right."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    behind = seek(s, of, x, tie)
    s.work[left + LOW_PLACE * stride], s.work[right + LOW_PLACE * stride] = behind + 1, behind
    ni, bi, i = parts_of(behind) if behind >= 0 else (0, 0, -1)
    lefts = find_lows(s, of, LEFT, ni, bi, i, x, y, tie)
    return lefts, find_lows(s, of, RIGHT, ni, bi, i + 1, x, y, tie)


@kernel
def skip(s: Pointers, ys: Int, ties: Int, i: Int, end: Int, step: Int, y: Int, tie: Int) -> Int:
    """Go from number i in steps of 1 or -1, up to a key below (y, tie); returns the number of that, or `end`."""
    while i != end:
        other = s.m[ys + i]
        if other <= y and (other < y or s.m[ties + i] < tie):
            break
        i += step
    return i


@kernel
def walk_lows(s: Pointers, of: Int, side: Int, ni: Int, bi: Int, i: Int, y: Int, tie: Int) -> Int:
    """Write down where the k nearest low entries are, from a place on; returns how many."""
    at, stride = side_of(s, side)
    step = 2 * side - 1
    root, nodes, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    block, size, k = child_of(s, node, kn, bi)
    n = 0
    while True:
        while True:
            i = skip(s, block + (Y << k), block + (TIE << k), i, -1 if step < 0 else size, step, y, tie)
            if not 0 <= i < size:
                break
            n += 1
            x = s.m[block + (X << k) + i]
            s.work[at + LOW_X * stride + n], s.work[at + EDGE * stride + n] = x, x - step
            if n == s.head[K]:
                return n
            i += step
        bi = skip(s, node + (Y << kn), node + (LOW_TIE << kn), bi + step, -1 if step < 0 else blocks, step, y, tie)
        if not 0 <= bi < blocks:
            ni = skip(s, root + (Y << kr), root + (LOW_TIE << kr), ni + step, -1 if step < 0 else nodes, step, y, tie)
            if not 0 <= ni < nodes:
                return n
            node, blocks, kn = child_of(s, root, kr, ni)
            first, end = (blocks - 1, -1) if step < 0 else (0, blocks)
            bi = skip(s, node + (Y << kn), node + (LOW_TIE << kn), first, end, step, y, tie)
        block, size, k = child_of(s, node, kn, bi)
        i = size - 1 if step < 0 else 0


@kernel
def find_edges(s: Pointers, of: Int, side: Int, ni: Int, bi: Int, i: Int, x: Int, y: Int, tie: Int) -> Int:
    """Like find_lows, but nothing else than where the low entries are."""
    at, stride = side_of(s, side)
    s.work[at + LOW_X * stride] = x
    n = walk_lows(s, of, side, ni, bi, i, y, tie) if root_of(s, of)[1] else 0
    for a in range(n + 1, s.head[K] + 1):
        s.work[at + EDGE * stride + a] = INT64_MIN if side == LEFT else INT64_MAX
    return n


@kernel
def edges_around(s: Pointers, of: Int, x: Int, y: Int, tie: Int) -> Int:
    """Find where the low entries of a key at a position are, for stairs; how many on the left."""
    behind = seek(s, of, x, tie)
    ni, bi, i = parts_of(behind) if behind >= 0 else (0, 0, -1)
    find_edges(s, of, RIGHT, ni, bi, i + 1, x, y, tie)
    return find_edges(s, of, LEFT, ni, bi, i, x, y, tie)
