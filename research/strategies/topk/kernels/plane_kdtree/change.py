"""Adding and removing points one by one, in time logarithmic in the size of the set.

A new point goes to the cell of its block that has it inside, or is the nearest; a block whose cell is full is made anew, as
two if need be. When a point goes, bounds shrink all the way up, and small siblings are joined. Where one side of a cut has got
far more points than the other, the part below is made anew.
"""

from __future__ import annotations

import numpy as np

from research.strategies.topk.kernels.plane_kdtree.build import (
    block_words_for,
    describe_block,
    describe_cell,
    describe_node,
    list_block,
    node_words_for,
    put_tree,
    rebuild,
)
from research.strategies.topk.kernels.plane_kdtree.layout import (
    BAD_POINT,
    BLOCK_MAX,
    CELL_BITS,
    CELL_MAX,
    CELL_SIZE,
    CHILD,
    CLASS_BITS,
    CLASSES,
    COUNT,
    CUT,
    DONE,
    FREE_NODES,
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
    Int,
    TreePointers,
    block_free,
    block_new,
    block_of,
    block_words,
    cell_of,
    cells_of,
    chunk_free,
    has_room,
    root_free,
    root_new,
    root_of,
    tree_pointers,
)
from tidings.kernels.extents import class_for
from tidings.kernels.jit import kernel


@kernel
def find(c: TreePointers, at: Int, lo: Int, hi: Int) -> tuple[Int, Int]:
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
def nearest_cell(c: TreePointers, at: Int, lo: Int, hi: Int) -> Int:
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
def fit_cell(c: TreePointers, at: Int, wanted: Int) -> None:
    """Lets a block of one cell have room for `wanted` points, but not for four times as many; the first of them stay."""
    offset, k = block_of(c, at)
    if wanted > (1 << k) or (wanted << 2) <= (1 << k):
        fitting = class_for(wanted)
        moved = block_new(c, fitting)
        for field in range(3):
            for i in range(min(c.nodes[at + SIZE], wanted)):
                c.m[moved + (field << fitting) + i] = c.m[offset + (field << k) + i]
        block_free(c, at)
        c.nodes[at + CHILD] = moved << CLASS_BITS | fitting


@kernel
def append(c: TreePointers, at: Int, lo: Int, hi: Int, n: Int) -> bool:
    """Adds a new point to a block, and nothing to its record; False if its cell is full."""
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
def take(c: TreePointers, at: Int, i: Int, j: Int) -> None:
    """Removes point j of cell i from a block and from the bounds and SIZE of its record, but not from COUNT."""
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


@kernel
def walk_to(c: TreePointers, root: Int, lo: Int, hi: Int) -> Int:
    """Finds the block where a point belongs; leaves the path of records in `work`. Returns how many are above it."""
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
def next_cut(c: TreePointers, depth: Int) -> Int:
    """The coordinate to cut by below the record at some depth of the path."""
    if depth == 0:
        return 0
    # The second of two siblings says by which coordinate they were cut.
    below = ~c.nodes[c.work[PATH + depth - 1] + CHILD]
    return 1 - c.nodes[below + RECORD + CUT]


@kernel
def balance(c: TreePointers, depth: Int) -> bool:
    """Makes anew the largest part along the path that has lost balance; False if there is too little room for that."""
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
def append_full(c: TreePointers, at: Int, lo: Int, hi: Int, n: Int, first: Int) -> None:
    """Makes a block anew with one more point, as two if need be."""
    size = c.nodes[at + SIZE]
    los, his, times = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    list_block(c, at, los, his, times, 0)
    los[size], his[size], times[size] = lo, hi, n
    block_free(c, at)
    put_tree(c, at, los, his, times, 0, size + 1, first)


@kernel
def add_point(c: TreePointers, of: Int, lo: Int, hi: Int, n: Int) -> bool:
    """Adds a point to a set n times; False if that is done, but there was too little room to balance the tree."""
    c.head[POINTS] += n
    root = c.sets[of]
    if root < 0:
        root = root_new(c, of)
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
    """Adds the points from place `at` on, each so many times; unless DONE, go on with head[PROGRESS] with more room."""
    c = tree_pointers(head, sets, nodes, m, work)
    for i in range(at, of.shape[0]):
        head[PROGRESS] = i
        if not has_room(c, 2 * block_words(CLASSES - 1), 3 * RECORD):
            return NEEDS_ROOM
        if not add_point(c, of[i], los[i], his[i], times[i]):
            head[PROGRESS] = i + 1
            return NEEDS_ROOM
    return DONE


@kernel
def drop_record(c: TreePointers, parent: Int, at: Int) -> None:
    """Puts the sibling of a record in the place of their parent."""
    below = ~c.nodes[parent + CHILD]
    other = below + RECORD if at == below else below
    for field in range(CUT):
        c.nodes[parent + field] = c.nodes[other + field]
    chunk_free(c.nodes, c.head, FREE_NODES, below)


@kernel
def is_small(c: TreePointers, at: Int) -> bool:
    """Whether what is below a record should become one block, or one of a smaller class."""
    one = ~c.nodes[at + CHILD]
    if one < 0:
        k = block_of(c, at)[1]
        return bool(k > CELL_BITS and c.nodes[at + SIZE] << 2 <= 1 << k)
    is_last = c.nodes[one + CHILD] >= 0 and c.nodes[one + RECORD + CHILD] >= 0
    return bool(is_last and c.nodes[at + SIZE] <= BLOCK_MAX // 4)


@kernel
def drop_point(c: TreePointers, of: Int, depth: Int, i: Int, j: Int) -> bool:
    """Removes the last copy of a point from the block at the end of the path; False as `balance`."""
    block = c.work[PATH + depth]
    take(c, block, i, j)
    c.nodes[block + COUNT] -= 1
    if c.nodes[block + SIZE] == 0:
        block_free(c, block)
        if depth == 0:
            root_free(c, of)
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
def remove_point(c: TreePointers, of: Int, lo: Int, hi: Int) -> Int:
    """Removes a point of a set, once; DONE, BAD_POINT if it is not there, NEEDS_ROOM as `drop_point` returns False."""
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
    """Removes the points from place `at` on, each once; unless DONE, head[PROGRESS] is where it stopped."""
    c = tree_pointers(head, sets, nodes, m, work)
    for i in range(at, of.shape[0]):
        head[PROGRESS] = i
        if not has_room(c, block_words(CLASSES - 1), 0):
            return NEEDS_ROOM
        status = remove_point(c, of[i], los[i], his[i])
        if status != DONE:
            head[PROGRESS] = i + (status == NEEDS_ROOM)
            return status
    return DONE
