"""Removing points one by one: bounds are drawn closer all the way up, and small siblings joined."""

from __future__ import annotations

from tidings.kernels.crowds_add import balance, next_cut, walk_to
from tidings.kernels.crowds_arrays import (
    BAD_POINT,
    BLOCK_MAX,
    CELL_BITS,
    CHILD,
    CLASSES,
    COUNT,
    CUT,
    DONE,
    I64,
    NEEDS_ROOM,
    PATH,
    POINTS,
    PROGRESS,
    RECORD,
    SIZE,
    CrowdPointers,
    Int,
    block_free,
    block_of,
    block_words,
    cell_of,
    crowd_pointers,
    has_room,
    records_free,
    root_of,
)
from tidings.kernels.crowds_blocks import find, take
from tidings.kernels.crowds_build import describe_node, rebuild
from tidings.kernels.jit import kernel


@kernel
def drop_record(c: CrowdPointers, parent: Int, at: Int) -> None:
    """Let the sibling of a record take the place of the two."""
    below = ~c.nodes[parent + CHILD]
    other = below + RECORD if at == below else below
    for field in range(CUT):
        c.nodes[parent + field] = c.nodes[other + field]
    records_free(c, below, False)


@kernel
def is_small(c: CrowdPointers, at: Int) -> bool:
    """True if what is below a record should be one block, and of a smaller class than it may be."""
    one = ~c.nodes[at + CHILD]
    if one < 0:
        k = block_of(c, at)[1]
        return bool(k > CELL_BITS and c.nodes[at + SIZE] << 2 <= 1 << k)
    is_last = c.nodes[one + CHILD] >= 0 and c.nodes[one + RECORD + CHILD] >= 0
    return bool(is_last and c.nodes[at + SIZE] <= BLOCK_MAX // 4)


@kernel
def drop_point(c: CrowdPointers, of: Int, depth: Int, i: Int, j: Int) -> bool:
    """Remove the last of its kind from the block at the end of the path; False if there was too little room to balance."""
    block = c.work[PATH + depth]
    take(c, block, i, j)
    c.nodes[block + COUNT] -= 1
    if c.nodes[block + SIZE] == 0:
        offset, k = block_of(c, block)
        block_free(c, offset, k)
        if depth == 0:
            records_free(c, block, True)
            c.sets[of] = -1
            return True
        depth -= 1
        drop_record(c, c.work[PATH + depth], block)
    for d in range(depth - 1, -1, -1):
        describe_node(c, c.work[PATH + d])
    if depth and is_small(c, c.work[PATH + depth - 1]):
        depth -= 1
    if is_small(c, c.work[PATH + depth]):
        rebuild(c, c.work[PATH + depth], next_cut(c, depth))
    return bool(balance(c, depth))


@kernel
def remove_point(c: CrowdPointers, of: Int, lo: Int, hi: Int) -> Int:
    """Remove a point of a set, once; DONE, BAD_POINT if it is not there, NEEDS_ROOM as `drop_point` returns False."""
    root = root_of(c, of)
    if root < 0:
        return BAD_POINT
    depth = walk_to(c, root, lo, hi)
    block = c.work[PATH + depth]
    i, j = find(c, block, lo, hi)
    if i < 0:
        return BAD_POINT
    c.head[POINTS] -= 1
    times = cell_of(c, block, i)[2] + j
    if c.m[times] == 1:
        return DONE if drop_point(c, of, depth, i, j) else NEEDS_ROOM
    c.m[times] -= 1
    for d in range(depth + 1):
        c.nodes[c.work[PATH + d] + COUNT] -= 1
    return DONE


@kernel
def remove(head: I64, sets: I64, nodes: I64, m: I64, work: I64, of: I64, los: I64, his: I64, at: Int) -> Int:
    """Remove the points from place `at` on, each once; unless DONE, head[PROGRESS] is where it stopped."""
    c = crowd_pointers(head, sets, nodes, m, work)
    for i in range(at, of.shape[0]):
        head[PROGRESS] = i
        if not has_room(c, block_words(CLASSES - 1), 0):
            return NEEDS_ROOM
        status = remove_point(c, of[i], los[i], his[i])
        if status != DONE:
            head[PROGRESS] = i + (status == NEEDS_ROOM)
            return status
    return DONE
