"""Changes of the runs of an item: records replaced, blocks and nodes split, joined and dropped.

`rewrite` replaces some records of one block by those in the scratch extent; after some such calls on one node comes
`finish_node`, and after all, if asked for, `finish_root`. In between, blocks and nodes may be empty, and nodes too large.
"""

from __future__ import annotations

from tidings.kernels.anchors_arrays import (
    BLOCK_MAX,
    CHILD,
    ITEM_FIELDS,
    ITEM_ROOT,
    ITEM_SHAPE,
    LIST_WIDTH,
    LISTS,
    NODE_MAX,
    RECORD_WIDTH,
    RECORDS,
    SCRATCH,
    SCRATCH_CLASS,
    SHAPE,
    WHOLE,
    Int,
    Pointers,
    class_for,
    copy_span,
    extent_fit,
    extent_free,
    extent_new,
)
from tidings.kernels.anchors_runs import child_of, enter, enter_node, node_of, root_of
from tidings.kernels.jit import kernel

SPARSE = BLOCK_MAX // 4
"""Blocks of so few records, and nodes of twice as few blocks, are joined with a neighbour if that is small, too."""

Change = tuple[Int, Int, Int, Int, Int]
"""What is to be replaced by the first m records of the scratch extent: (node, block, start, end, m)."""
NO_CHANGE = (0, 0, 0, 0, -1)

BLOCK_ROOM = 3 * BLOCK_MAX
"""Records that a changed block may take anew."""
JOIN_ROOM = NODE_MAX * BLOCK_MAX // 2
"""Records that joining the small blocks of a node may take anew."""


@kernel
def rewrite(s: Pointers, item: Int, ni: Int, bi: Int, start: Int, end: Int, m: Int) -> tuple[Int, bool]:
    """Replace the records start:end of a block by the first m in the scratch extent.

    Returns the place of the next block in the node, and whether this one has become small.
    """
    node, blocks, kn = node_of(s, item, ni)
    offset, size, k = child_of(s, node, kn, bi)
    total = size + m - (end - start)
    if total == 0:
        extent_free(s, RECORDS, offset, k)
        enter(s, node, kn, bi, offset, 0, k)
        return bi + 1, True
    if total <= BLOCK_MAX:
        if total > (1 << k):
            offset, k = extent_fit(s, RECORDS, offset, k, size, total)
        if start + m != end:
            copy_span(s.m, RECORD_WIDTH, offset, k, end, offset, k, start + m, size - end)
        copy_span(s.m, RECORD_WIDTH, SCRATCH, SCRATCH_CLASS, 0, offset, k, start, m)
        enter(s, node, kn, bi, offset, total, k)
        return bi + 1, total <= SPARSE
    copy_span(s.m, RECORD_WIDTH, offset, k, 0, WHOLE, SCRATCH_CLASS, 0, start)
    copy_span(s.m, RECORD_WIDTH, SCRATCH, SCRATCH_CLASS, 0, WHOLE, SCRATCH_CLASS, start, m)
    copy_span(s.m, RECORD_WIDTH, offset, k, end, WHOLE, SCRATCH_CLASS, start + m, size - end)
    half = total >> 1
    offset, k = extent_fit(s, RECORDS, offset, k, 0, half)
    copy_span(s.m, RECORD_WIDTH, WHOLE, SCRATCH_CLASS, 0, offset, k, 0, half)
    ko = class_for(total - half)
    other = extent_new(s, RECORDS, ko)
    copy_span(s.m, RECORD_WIDTH, WHOLE, SCRATCH_CLASS, half, other, ko, 0, total - half)
    node, kn = extent_fit(s, LISTS, node, kn, blocks, blocks + 1)
    copy_span(s.m, LIST_WIDTH, node, kn, bi + 1, node, kn, bi + 2, blocks - bi - 1)
    enter(s, node, kn, bi, offset, half, k)
    enter(s, node, kn, bi + 1, other, total - half, ko)
    root, _, kr = root_of(s, item)
    s.m[root + (CHILD << kr) + ni] = node
    s.m[root + (SHAPE << kr) + ni] = (blocks + 1) << 8 | kn
    return bi + 2, False


@kernel
def close_blocks(s: Pointers, node: Int, blocks: Int, kn: Int) -> Int:
    """Drop the empty blocks of a node and join small ones with their predecessors; returns how many are left."""
    kept = 0
    for bi in range(blocks):
        offset, size, k = child_of(s, node, kn, bi)
        if size == 0:
            continue
        if kept:
            before, held, kb = child_of(s, node, kn, kept - 1)
            if min(held, size) <= SPARSE and held + size <= BLOCK_MAX // 2:
                before, kb = extent_fit(s, RECORDS, before, kb, held, held + size)
                copy_span(s.m, RECORD_WIDTH, offset, k, 0, before, kb, held, size)
                extent_free(s, RECORDS, offset, k)
                enter(s, node, kn, kept - 1, before, held + size, kb)
                continue
        if kept < bi:
            copy_span(s.m, LIST_WIDTH, node, kn, bi, node, kn, kept, 1)
        kept += 1
    return kept


@kernel
def finish_node(s: Pointers, item: Int, ni: Int, sparse: bool) -> tuple[Int, bool]:
    """Bring a node in order after its blocks have changed.

    Returns the place of the next node in the root, and whether this one has become small.
    """
    node, blocks, k = node_of(s, item, ni)
    if (sparse and blocks > 1) or (blocks == 1 and child_of(s, node, k, 0)[1] == 0):
        blocks = close_blocks(s, node, blocks, k)
        if blocks == 0:
            extent_free(s, LISTS, node, k)
            enter_node(s, item, ni, node, 0, k)
            return ni + 1, True
    if blocks <= NODE_MAX:
        enter_node(s, item, ni, node, blocks, k)
        return ni + 1, blocks <= SPARSE >> 1
    half = blocks >> 1
    ko = class_for(blocks - half)
    other = extent_new(s, LISTS, ko)
    copy_span(s.m, LIST_WIDTH, node, k, half, other, ko, 0, blocks - half)
    node, k = extent_fit(s, LISTS, node, k, half, half)
    root, nodes, kr = root_of(s, item)
    root, kr = extent_fit(s, LISTS, root, kr, nodes, nodes + 1)
    copy_span(s.m, LIST_WIDTH, root, kr, ni + 1, root, kr, ni + 2, nodes - ni - 1)
    s.items[item * ITEM_FIELDS + ITEM_ROOT] = root
    s.items[item * ITEM_FIELDS + ITEM_SHAPE] = (nodes + 1) << 8 | kr
    enter_node(s, item, ni, node, half, k)
    enter_node(s, item, ni + 1, other, blocks - half, ko)
    return ni + 2, False


@kernel
def finish_root(s: Pointers, item: Int) -> None:
    """Drop the empty nodes of an item and join small ones with their predecessors."""
    root, nodes, kr = root_of(s, item)
    kept = 0
    for ni in range(nodes):
        node, size, k = child_of(s, root, kr, ni)
        if size == 0:
            continue
        if kept:
            before, held, kb = child_of(s, root, kr, kept - 1)
            if min(held, size) <= SPARSE >> 1 and held + size <= NODE_MAX // 2:
                before, kb = extent_fit(s, LISTS, before, kb, held, held + size)
                copy_span(s.m, LIST_WIDTH, node, k, 0, before, kb, held, size)
                extent_free(s, LISTS, node, k)
                enter_node(s, item, kept - 1, before, held + size, kb)
                continue
        if kept < ni:
            copy_span(s.m, LIST_WIDTH, root, kr, ni, root, kr, kept, 1)
        kept += 1
    if kept == 0:
        extent_free(s, LISTS, root, kr)
        s.items[item * ITEM_FIELDS + ITEM_SHAPE] = 0
    elif kept < nodes:
        root, kr = extent_fit(s, LISTS, root, kr, kept, kept)
        s.items[item * ITEM_FIELDS + ITEM_ROOT] = root
        s.items[item * ITEM_FIELDS + ITEM_SHAPE] = kept << 8 | kr


@kernel
def replace(s: Pointers, item: Int, change: Change) -> None:
    """Like `rewrite`, for a single change (node, block, start, end, m): leaves everything in order."""
    ni, bi, start, end, m = change
    if m < 0:
        return
    _, sparse = rewrite(s, item, ni, bi, start, end, m)
    _, sparse = finish_node(s, item, ni, sparse)
    if sparse:
        finish_root(s, item)
