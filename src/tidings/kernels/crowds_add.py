"""Adding points one by one, in time logarithmic in the size of the set.

A full block is made anew, as two if need be. Where one side of a cut has got far more points than the other, the part
below is made anew.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.crowds_arrays import (
    BLOCK_MAX,
    CHILD,
    CLASS_BITS,
    CLASSES,
    COUNT,
    CUT,
    DONE,
    HI_MAX,
    HI_MIN,
    I64,
    LO_MAX,
    LO_MIN,
    NEEDS_ROOM,
    PATH,
    POINTS,
    PROGRESS,
    RECORD,
    SIZE,
    CrowdPointers,
    Int,
    block_free,
    block_new,
    block_of,
    block_words,
    cell_of,
    crowd_pointers,
    has_room,
    records_new,
)
from tidings.kernels.crowds_blocks import append, describe_block, find, list_block
from tidings.kernels.crowds_build import block_words_for, node_words_for, put_tree, rebuild
from tidings.kernels.jit import kernel


@kernel
def walk_to(c: CrowdPointers, root: Int, lo: Int, hi: Int) -> Int:
    """Find the block where a point belongs; the path of records is in `work` then. Returns how many are above it."""
    at = root
    depth = 0
    c.work[PATH] = at
    while c.nodes[at + CHILD] < 0:
        at = ~c.nodes[at + CHILD]
        if (hi if c.nodes[at + RECORD + CUT] else lo) > c.nodes[at + CUT]:
            at += RECORD
        depth += 1
        c.work[PATH + depth] = at
    return depth


@kernel
def next_cut(c: CrowdPointers, depth: Int) -> Int:
    """By which coordinate to cut below the record at some depth of the path."""
    if depth == 0:
        return 0
    # The second of two siblings says by which coordinate they were cut.
    below = ~c.nodes[c.work[PATH + depth - 1] + CHILD]
    return 1 - c.nodes[below + RECORD + CUT]


@kernel
def balance(c: CrowdPointers, depth: Int) -> bool:
    """Make anew the largest part along the path that has lost balance; False if there is too little room to do so yet."""
    for d in range(depth):
        at = c.work[PATH + d]
        size = c.nodes[at + SIZE]
        if size <= 2 * BLOCK_MAX:
            break
        below = ~c.nodes[at + CHILD]
        if 5 * max(c.nodes[below + SIZE], c.nodes[below + RECORD + SIZE]) > 4 * size:
            if not has_room(c, block_words_for(size), node_words_for(size)):
                return False
            rebuild(c, at, next_cut(c, d))
            break
    return True


@kernel
def append_full(c: CrowdPointers, at: Int, lo: Int, hi: Int, n: Int, first: Int) -> None:
    """Make a block anew with one more point, as two if need be."""
    size = c.nodes[at + SIZE]
    los, his, times = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    list_block(c, at, los, his, times, 0)
    los[size], his[size], times[size] = lo, hi, n
    offset, k = block_of(c, at)
    block_free(c, offset, k)
    put_tree(c, at, los, his, times, 0, size + 1, first)


@kernel
def add_point(c: CrowdPointers, of: Int, lo: Int, hi: Int, n: Int) -> bool:
    """Add a point to a set n times; False if it is done, but there was too little room to balance the tree."""
    c.head[POINTS] += n
    root = c.sets[of]
    if root < 0:
        root = c.sets[of] = records_new(c, True)
        offset = block_new(c, 0)
        c.m[offset], c.m[offset + 1], c.m[offset + 2] = lo, hi, n
        c.nodes[root + CHILD] = offset << CLASS_BITS
        c.nodes[root + SIZE], c.nodes[root + COUNT] = 1, n
        describe_block(c, root)
        return True
    depth = walk_to(c, root, lo, hi)
    block = c.work[PATH + depth]
    told = depth + 1
    i, j = find(c, block, lo, hi)
    if i >= 0:
        c.m[cell_of(c, block, i)[2] + j] += n
    elif not append(c, block, lo, hi, n):
        append_full(c, block, lo, hi, n, next_cut(c, depth))
        told -= 1
    for d in range(told):
        at = c.work[PATH + d]
        c.nodes[at + LO_MIN], c.nodes[at + LO_MAX] = min(c.nodes[at + LO_MIN], lo), max(c.nodes[at + LO_MAX], lo)
        c.nodes[at + HI_MIN], c.nodes[at + HI_MAX] = min(c.nodes[at + HI_MIN], hi), max(c.nodes[at + HI_MAX], hi)
        c.nodes[at + SIZE] += i < 0
        c.nodes[at + COUNT] += n
    return bool(i >= 0 or balance(c, depth))


@kernel
def add(head: I64, sets: I64, nodes: I64, m: I64, work: I64, of: I64, los: I64, his: I64, times: I64, at: Int) -> Int:
    """Add the points from place `at` on, each so many times; unless DONE, go on with head[PROGRESS] with more room."""
    c = crowd_pointers(head, sets, nodes, m, work)
    for i in range(at, of.shape[0]):
        head[PROGRESS] = i
        if not has_room(c, 2 * block_words(CLASSES - 1), 3 * RECORD):
            return NEEDS_ROOM
        if not add_point(c, of[i], los[i], his[i], times[i]):
            head[PROGRESS] = i + 1
            return NEEDS_ROOM
    return DONE
