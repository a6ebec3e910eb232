"""Trees over many points at a time, balanced and well filled: of new sets, and of parts of a tree that have lost balance."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import pointer
from tidings.kernels.crowds_arrays import (
    CHILD,
    COUNT,
    CUT,
    DEPTH_MAX,
    HI_MAX,
    HI_MIN,
    I64,
    LO_MAX,
    LO_MIN,
    RECORD,
    SIZE,
    STACK,
    CrowdPointers,
    Int,
    block_free,
    block_of,
    records_free,
    records_new,
)
from tidings.kernels.crowds_blocks import BLOCK_FILL, list_block, put_block
from tidings.kernels.crowds_cut import cut
from tidings.kernels.jit import kernel


@kernel
def block_words_for(size: Int) -> Int:
    """The memory that the blocks over so many points take at most: there is room for twice as many, and for fields."""
    return 8 * size


@kernel
def node_words_for(size: Int) -> Int:
    """The memory that the records over so many points take at most, as no cut leaves less than a quarter of a block."""
    return 2 * RECORD * (size // (BLOCK_FILL // 4) + 1)


@kernel
def describe_node(c: CrowdPointers, at: Int) -> None:
    """Tell a record about the two below it."""
    one = ~c.nodes[at + CHILD]
    other = one + RECORD
    c.nodes[at + LO_MIN] = min(c.nodes[one + LO_MIN], c.nodes[other + LO_MIN])
    c.nodes[at + LO_MAX] = max(c.nodes[one + LO_MAX], c.nodes[other + LO_MAX])
    c.nodes[at + HI_MIN] = min(c.nodes[one + HI_MIN], c.nodes[other + HI_MIN])
    c.nodes[at + HI_MAX] = max(c.nodes[one + HI_MAX], c.nodes[other + HI_MAX])
    c.nodes[at + SIZE] = c.nodes[one + SIZE] + c.nodes[other + SIZE]
    c.nodes[at + COUNT] = c.nodes[one + COUNT] + c.nodes[other + COUNT]


@kernel
def put_tree(c: CrowdPointers, root: Int, los: I64, his: I64, times: I64, start: Int, end: Int, first: Int) -> None:
    """Let a record be of a tree over different points, which are reordered; first cut by the coordinate `first`."""
    if end - start <= BLOCK_FILL:
        put_block(c, root, los, his, times, start, end, first)
        return
    stack = np.empty((DEPTH_MAX, 4), np.int64)
    parents = np.empty(node_words_for(end - start) // RECORD, np.int64)
    n = 0
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = root, start, end, first
    depth = 1
    while depth:
        depth -= 1
        at, start, end, first = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        size = end - start
        if size <= BLOCK_FILL:
            put_block(c, at, los, his, times, start, end, first)
            continue
        blocks = -(-size // BLOCK_FILL)
        d, middle, value = cut(
            pointer(los), pointer(his), pointer(times), start, end, start + size * (blocks >> 1) // blocks, first
        )
        below = records_new(c, False)
        c.nodes[at + CHILD] = ~below
        c.nodes[below + CUT], c.nodes[below + RECORD + CUT] = value, d
        parents[n] = at
        n += 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = below + RECORD, middle, end, 1 - d
        stack[depth + 1, 0], stack[depth + 1, 1] = below, start
        stack[depth + 1, 2], stack[depth + 1, 3] = middle, 1 - d
        depth += 2
    # Children come after their parents.
    for i in range(n - 1, -1, -1):
        describe_node(c, parents[i])


@kernel
def list_points(c: CrowdPointers, root: Int, los: I64, his: I64, times: I64, n: Int) -> Int:
    """Write the points below a record to place n and the following; returns where they end."""
    c.work[STACK] = root
    depth = 1
    while depth:
        depth -= 1
        at = c.work[STACK + depth]
        if c.nodes[at + CHILD] < 0:
            c.work[STACK + depth] = ~c.nodes[at + CHILD] + RECORD
            c.work[STACK + depth + 1] = ~c.nodes[at + CHILD]
            depth += 2
        else:
            n = list_block(c, at, los, his, times, n)
    return n


@kernel
def free_below(c: CrowdPointers, root: Int) -> None:
    """Give back all that is below a record."""
    c.work[STACK] = root
    depth = 1
    while depth:
        depth -= 1
        at = c.work[STACK + depth]
        child = c.nodes[at + CHILD]
        if child < 0:
            c.work[STACK + depth] = ~child + RECORD
            c.work[STACK + depth + 1] = ~child
            depth += 2
            # What is below the two is still written there.
            records_free(c, ~child, False)
        else:
            offset, k = block_of(c, at)
            block_free(c, offset, k)


@kernel
def rebuild(c: CrowdPointers, at: Int, first: Int) -> None:
    """Make anew what is below a record."""
    size = c.nodes[at + SIZE]
    los, his, times = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    list_points(c, at, los, his, times, 0)
    free_below(c, at)
    put_tree(c, at, los, his, times, 0, size, first)
