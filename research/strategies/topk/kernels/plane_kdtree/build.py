"""Trees over many points at a time, balanced and well filled: for new sets, and for parts of a tree that have lost balance.

Points are cut by lo and by hi in turn, so that it does not matter how either is spread. A cut falls between different
coordinates. Points are all different, so if more than half have the same lo, they have different hi: one of the two leaves at
least a quarter on each side. Cells have bounds, but no borders.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from research.strategies.topk.kernels.plane_kdtree.layout import (
    CELL_BITS,
    CELL_MAX,
    CELL_SIZE,
    CELLS_MAX,
    CHILD,
    CLASS_BITS,
    COUNT,
    CUT,
    DEPTH_MAX,
    DONE,
    FREE_NODES,
    HI_MAX,
    HI_MIN,
    I64,
    INT64_MAX,
    INT64_MIN,
    LO_MAX,
    LO_MIN,
    NEEDS_ROOM,
    POINTS,
    RECORD,
    SIZE,
    STACK,
    Int,
    TreePointers,
    block_free,
    block_new,
    block_of,
    cell_of,
    cells_of,
    chunk_free,
    has_room,
    root_free,
    root_new,
    siblings_new,
    tree_pointers,
)
from tidings.kernels.extents import class_for
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel

CELL_FILL = 26
"""Points of a cell when it is made: some room is left for those to come."""
BLOCK_FILL = CELLS_MAX * CELL_FILL


@kernel
def swap(keys: Any, others: Any, times: Any, i: Int, j: Int) -> None:
    """Swaps two points."""
    keys[i], keys[j] = keys[j], keys[i]
    others[i], others[j] = others[j], others[i]
    times[i], times[j] = times[j], times[i]


@kernel
def select(keys: Any, others: Any, times: Any, start: Int, end: Int, target: Int) -> None:
    """Orders points so that none before `target` has a greater key, and none behind it a lower one (quickselect)."""
    lo, hi = start, end - 1
    while lo < hi:
        a, b, c = keys[lo], keys[(lo + hi) >> 1], keys[hi]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = lo, hi
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                swap(keys, others, times, i, j)
                i += 1
                j -= 1
        if target <= j:
            hi = j
        elif target >= i:
            lo = i
        else:
            break


@kernel
def divide(keys: Any, others: Any, times: Any, start: Int, end: Int, target: Int) -> tuple[Int, Int]:
    """Cuts points by their keys, at `target` or beside the points with the same key there.

    Returns where the second part starts, and the greatest key of the first; `start` if all keys are the same.
    """
    select(keys, others, times, start, end, target)
    value = keys[target]
    # Those with just this key go to the middle, and then to the one side or the other.
    below = target
    for i in range(target - 1, start - 1, -1):
        if keys[i] == value:
            below -= 1
            swap(keys, others, times, i, below)
    above = target + 1
    for i in range(target + 1, end):
        if keys[i] == value:
            swap(keys, others, times, i, above)
            above += 1
    if min(below - start, end - below) >= min(above - start, end - above):
        if below == start:
            return start, value
        value = keys[start]
        for i in range(start + 1, below):
            value = max(value, keys[i])
        return below, value
    return above, value


@kernel
def cut(los: Any, his: Any, times: Any, start: Int, end: Int, target: Int, first: Int) -> tuple[Int, Int, Int]:
    """Cuts different points, at least two, near to `target`; by the coordinate `first`, unless that cuts badly.

    Returns by which coordinate, where the second part starts, and the greatest coordinate of the first.
    """
    best, dim = -1, first
    for turn in range(3):
        # If the second way is no better either, it is the first one again.
        d = (first + turn) & 1 if turn < 2 else dim
        middle, value = divide(his if d else los, los if d else his, times, start, end, target)
        smaller = min(middle - start, end - middle)
        if 4 * smaller >= end - start or turn == 2 or (turn == 1 and smaller > best):
            return d, middle, value
        if turn == 0:
            best = smaller
    raise AssertionError


@kernel
def bounds_of(c: TreePointers, los: Int, his: Int, n: Int) -> tuple[Int, Int, Int, Int]:
    """The bounds of n points."""
    lo_min = hi_min = INT64_MAX
    lo_max = hi_max = INT64_MIN
    for i in range(n):
        lo_min, lo_max = min(lo_min, c.m[los + i]), max(lo_max, c.m[los + i])
        hi_min, hi_max = min(hi_min, c.m[his + i]), max(hi_max, c.m[his + i])
    return lo_min, lo_max, hi_min, hi_max


@kernel
def describe_cell(c: TreePointers, offset: Int, cells: Int, i: Int, los: Int, size: Int) -> None:
    """Writes bounds and size of a cell to its block, which has several."""
    lo_min, lo_max, hi_min, hi_max = bounds_of(c, los, los + CELL_MAX, size)
    c.m[offset + LO_MIN * cells + i], c.m[offset + LO_MAX * cells + i] = lo_min, lo_max
    c.m[offset + HI_MIN * cells + i], c.m[offset + HI_MAX * cells + i] = hi_min, hi_max
    c.m[offset + CELL_SIZE * cells + i] = size


@kernel
def describe_block(c: TreePointers, at: Int) -> None:
    """Writes the bounds of a block to its record, which has the size already."""
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
    """Orders points so that each cell gets as many as the others, and they are near each other."""
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
def put_block(c: TreePointers, at: Int, los: I64, his: I64, times: I64, start: Int, end: Int, first: Int) -> None:
    """Makes a block for a record from points start .. end - 1, at most BLOCK_FILL, which are reordered."""
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
def list_block(c: TreePointers, at: Int, los: I64, his: I64, times: I64, n: Int) -> Int:
    """Writes the points of a block to place n and the following; returns where they end."""
    for i in range(cells_of(block_of(c, at)[1])):
        lo_at, hi_at, times_at, size = cell_of(c, at, i)
        for j in range(size):
            los[n + j], his[n + j], times[n + j] = c.m[lo_at + j], c.m[hi_at + j], c.m[times_at + j]
        n += size
    return n


@kernel
def block_words_for(size: Int) -> Int:
    """The memory that the blocks over so many points take at most: there is room for twice as many, and for fields."""
    return 8 * size


@kernel
def node_words_for(size: Int) -> Int:
    """The memory that the records over so many points take at most, as no cut leaves less than a quarter of a block."""
    return 2 * RECORD * (size // (BLOCK_FILL // 4) + 1)


@kernel
def describe_node(c: TreePointers, at: Int) -> None:
    """Writes bounds and sizes of two siblings to the record above them."""
    one = ~c.nodes[at + CHILD]
    other = one + RECORD
    c.nodes[at + LO_MIN] = min(c.nodes[one + LO_MIN], c.nodes[other + LO_MIN])
    c.nodes[at + LO_MAX] = max(c.nodes[one + LO_MAX], c.nodes[other + LO_MAX])
    c.nodes[at + HI_MIN] = min(c.nodes[one + HI_MIN], c.nodes[other + HI_MIN])
    c.nodes[at + HI_MAX] = max(c.nodes[one + HI_MAX], c.nodes[other + HI_MAX])
    c.nodes[at + SIZE] = c.nodes[one + SIZE] + c.nodes[other + SIZE]
    c.nodes[at + COUNT] = c.nodes[one + COUNT] + c.nodes[other + COUNT]


@kernel
def put_tree(c: TreePointers, root: Int, los: I64, his: I64, times: I64, start: Int, end: Int, first: Int) -> None:
    """Makes the tree below a record from different points, which are reordered; first cut by the coordinate `first`."""
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
        below = siblings_new(c)
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
def list_points(c: TreePointers, root: Int, los: I64, his: I64, times: I64, n: Int) -> Int:
    """Writes the points below a record to place n and the following; returns where they end."""
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
def free_below(c: TreePointers, root: Int) -> None:
    """Gives back all that is below a record."""
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
            chunk_free(c.nodes, c.head, FREE_NODES, ~child)
        else:
            block_free(c, at)


@kernel
def rebuild(c: TreePointers, at: Int, first: Int) -> None:
    """Makes anew what is below a record."""
    size = c.nodes[at + SIZE]
    los, his, times = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    list_points(c, at, los, his, times, 0)
    free_below(c, at)
    put_tree(c, at, los, his, times, 0, size, first)


@kernel
def scatter(of: Int, lo: Int, hi: Int) -> Int:
    """Hash of a point of a set."""
    mixed = (lo * 0x1E3779B97F4A7C15) ^ (hi * 0x42B2AE3D27D4EB4F) ^ (of * 0x165667B19E3779F9)
    mixed = (mixed ^ (mixed >> 29)) * 0x3F58476D1CE4E5B9
    return mixed ^ (mixed >> 32)


@kernel
def group(tops: Int, of: I64, los: I64, his: I64, times: I64) -> tuple[I64, I64, I64, I64]:
    """Points by sets, which are below `tops`: where those of each set start, and the different ones with their times."""
    n = of.shape[0]
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    mask = (1 << bits) - 1
    table = np.full(1 << bits, -1, np.int32)
    times = times.copy()
    starts = np.zeros(tops + 1, np.int64)
    for i in range(n):
        at = scatter(of[i], los[i], his[i]) & mask
        while table[at] >= 0:
            j = table[at]
            if los[j] == los[i] and his[j] == his[i] and of[j] == of[i]:
                times[j] += times[i]
                times[i] = 0
                break
            at = (at + 1) & mask
        else:
            table[at] = i
            starts[of[i] + 1] += 1
    for number in range(tops):
        starts[number + 1] += starts[number]
    ends = starts[:-1].copy()
    grouped = np.empty(starts[tops], np.int64), np.empty(starts[tops], np.int64), np.empty(starts[tops], np.int64)
    for i in range(n):
        if times[i]:
            at = ends[of[i]]
            grouped[0][at], grouped[1][at], grouped[2][at] = los[i], his[i], times[i]
            ends[of[i]] = at + 1
    return starts, grouped[0], grouped[1], grouped[2]


@kernel
def fill(
    head: I64, sets: I64, nodes: I64, m: I64, work: I64, filled: I64, starts: I64, los: I64, his: I64, times: I64
) -> Int:
    """Gives each of some sets without points those from starts[i] to starts[i + 1], all different, which are reordered.

    DONE, or NEEDS_ROOM: then nothing has been done.
    """
    c = tree_pointers(head, sets, nodes, m, work)
    words = 0
    for i in range(filled.shape[0]):
        words += node_words_for(starts[i + 1] - starts[i]) + RECORD
    if not has_room(c, block_words_for(starts[-1] - starts[0]), words):
        return NEEDS_ROOM
    for i in range(filled.shape[0]):
        if starts[i] < starts[i + 1]:
            root = root_new(c, filled[i])
            put_tree(c, root, los, his, times, starts[i], starts[i + 1], 0)
            head[POINTS] += nodes[root + COUNT]
    return DONE


@kernel
def dump(head: I64, sets: I64, nodes: I64, m: I64, work: I64, listed: I64) -> tuple[I64, I64, I64, I64]:
    """The points of some sets: where those of each start, and then all, with their times."""
    c = tree_pointers(head, sets, nodes, m, work)
    starts = np.zeros(listed.shape[0] + 1, np.int64)
    for i in range(listed.shape[0]):
        root = sets[listed[i]]
        starts[i + 1] = starts[i] + (nodes[root + SIZE] if root >= 0 else 0)
    los, his, times = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
    for i in range(listed.shape[0]):
        if starts[i] < starts[i + 1]:
            list_points(c, sets[listed[i]], los, his, times, starts[i])
    return starts, los, his, times


@kernel
def clear(head: I64, sets: I64, nodes: I64, m: I64, work: I64, cleared: I64) -> None:
    """Removes all points of some sets."""
    c = tree_pointers(head, sets, nodes, m, work)
    for i in range(cleared.shape[0]):
        root = sets[cleared[i]]
        if root >= 0:
            head[POINTS] -= nodes[root + COUNT]
            free_below(c, root)
            root_free(c, cleared[i])
