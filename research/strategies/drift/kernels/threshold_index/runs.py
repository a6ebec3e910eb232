"""The runs of an item: members that are neighbours in the order of keys and have equal anchors, one record each.

A record is WIDE (N == 0): all members with reaches LO..HI, both in use; or a PART (N > 0): those N members of reach LO == HI
with labels L1..L2. A reach is in parts if, and only if, its members have more than one anchor.

`rewrite` replaces some records of one block by those in the scratch list; after some such calls on one node comes
`finish_node`, and after all, if asked for, `finish_root`. In between, blocks and nodes may be empty, and nodes too large.
"""

from __future__ import annotations

import numpy as np

from research.strategies.drift.kernels.threshold_index.layout import (
    BLOCK_MAX,
    CHILD,
    DN,
    DUE,
    HI,
    ITEM_FIELDS,
    ITEM_ROOT,
    ITEM_SHAPE,
    KIND,
    L1,
    L2,
    LABEL_MAX,
    LABEL_MIN,
    LIST_WIDTH,
    LO,
    NODE_MAX,
    PATIENCE,
    RECORD_WIDTH,
    SCRATCH,
    SCRATCH_CLASS,
    SHAPE,
    T0,
    TIME,
    UP,
    WHOLE,
    C,
    N,
    Pointers,
    due_after,
    list_fit,
    list_free,
    list_new,
    thresholds,
)
from tidings.kernels.arrays import INT64_MAX, ONE, ZERO, Float, Int
from tidings.kernels.extents import class_for, copy_span
from tidings.kernels.jit import kernel


@kernel
def root_of(s: Pointers, item: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of an item's root."""
    shape = s.items[item * ITEM_FIELDS + ITEM_SHAPE]
    return s.items[item * ITEM_FIELDS + ITEM_ROOT], shape >> 8, shape & 255


@kernel
def child_of(s: Pointers, offset: Int, k: Int, i: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of what the i-th entry of a list refers to."""
    at = offset + i
    shape = s.m[at + (SHAPE << k)]
    return s.m[at + (CHILD << k)], shape >> 8, shape & 255


@kernel
def node_of(s: Pointers, item: Int, ni: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of an item's node."""
    root, _, kr = root_of(s, item)
    offset, size, k = child_of(s, root, kr, ni)
    return offset, size, k


@kernel
def block_of(s: Pointers, item: Int, ni: Int, bi: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of a block in an item's node."""
    offset, size, k = node_of(s, item, ni)
    offset, size, k = child_of(s, offset, k, bi)
    return offset, size, k


@kernel
def enter(s: Pointers, to: Int, kt: Int, at: Int, offset: Int, size: Int, k: Int) -> None:
    """Describe a block in its node, or a node in its root. NaN among the thresholds is never hit, and ignored."""
    ups, dns, dues = offset + (UP << k), offset + (DN << k), offset + (DUE << k)
    # Two of each, as every comparison waits for the one before it.
    up, up2, dn, dn2, due = np.inf, np.inf, -np.inf, -np.inf, INT64_MAX
    for i in range(0, size - 1, 2):
        up = s.f[ups + i] if s.f[ups + i] < up else up
        dn = s.f[dns + i] if s.f[dns + i] > dn else dn
        up2 = s.f[ups + i + 1] if s.f[ups + i + 1] < up2 else up2
        dn2 = s.f[dns + i + 1] if s.f[dns + i + 1] > dn2 else dn2
    if size & 1:
        up = s.f[ups + size - 1] if s.f[ups + size - 1] < up else up
        dn = s.f[dns + size - 1] if s.f[dns + size - 1] > dn else dn
    if s.head[PATIENCE]:
        for i in range(dues, dues + size):
            due = min(due, s.m[i])
    at += to
    s.f[at + (UP << kt)] = min(up, up2)
    s.f[at + (DN << kt)] = max(dn, dn2)
    s.m[at + (DUE << kt)] = due
    s.f[at + (LO << kt)] = s.f[offset + (LO << k)]
    s.m[at + (L1 << kt)] = s.m[offset + (L1 << k)]
    s.m[at + (CHILD << kt)] = offset
    s.m[at + (SHAPE << kt)] = size << 8 | k


@kernel
def enter_node(s: Pointers, item: Int, ni: Int, offset: Int, size: Int, k: Int) -> None:
    """Describe a node in its root."""
    root, _, kr = root_of(s, item)
    enter(s, root, kr, ni, offset, size, k)


@kernel
def refresh(s: Pointers, item: Int, ni: Int, bi: Int) -> None:
    """Describe anew a block with a changed record, and its node."""
    node, nodes, kn = node_of(s, item, ni)
    offset, size, k = child_of(s, node, kn, bi)
    enter(s, node, kn, bi, offset, size, k)
    enter_node(s, item, ni, node, nodes, kn)


@kernel
def set_record(
    s: Pointers, offset: Int, k: Int, i: Int, c: Float, t0: Int, lo: Float, hi: Float, l1: Int, l2: Int, n: Int
) -> None:
    """Write the i-th record of an extent."""
    at = offset + i
    up, dn = thresholds(s.head[KIND], c, lo)
    s.f[at + (UP << k)] = up
    s.f[at + (DN << k)] = dn
    s.f[at + (C << k)] = c
    s.f[at + (LO << k)] = lo
    s.f[at + (HI << k)] = hi
    s.m[at + (DUE << k)] = due_after(s.head[PATIENCE], t0)
    s.m[at + (T0 << k)] = t0
    s.m[at + (L1 << k)] = l1
    s.m[at + (L2 << k)] = l2
    s.m[at + (N << k)] = n


@kernel
def set_wide(s: Pointers, offset: Int, k: Int, i: Int, c: Float, t0: Int, lo: Float, hi: Float) -> None:
    """Write a record for all members with reaches lo..hi."""
    set_record(s, offset, k, i, c, t0, lo, hi, LABEL_MIN, LABEL_MAX, ZERO)


@kernel
def start_runs(s: Pointers, item: Int, lo: Float, hi: Float) -> None:
    """Give an item without runs one record, with its present value and time, for the reaches lo..hi."""
    block = list_new(s, RECORD_WIDTH, ZERO)
    node = list_new(s, LIST_WIDTH, ZERO)
    s.items[item * ITEM_FIELDS + ITEM_ROOT] = list_new(s, LIST_WIDTH, ZERO)
    s.items[item * ITEM_FIELDS + ITEM_SHAPE] = 1 << 8
    set_wide(s, block, ZERO, ZERO, s.values[item], s.items[item * ITEM_FIELDS + TIME], lo, hi)
    enter(s, node, ZERO, ZERO, block, ONE, ZERO)
    enter_node(s, item, ZERO, node, ONE, ZERO)


@kernel
def free_runs(s: Pointers, item: Int) -> None:
    """Forget all runs of an item."""
    root, size, kr = root_of(s, item)
    for ni in range(size):
        node, blocks, kn = node_of(s, item, ni)
        for bi in range(blocks):
            offset, _, k = child_of(s, node, kn, bi)
            list_free(s, RECORD_WIDTH, offset, k)
        list_free(s, LIST_WIDTH, node, kn)
    if size:
        list_free(s, LIST_WIDTH, root, kr)
    s.items[item * ITEM_FIELDS + ITEM_SHAPE] = 0


# --- Finding records by key ---


@kernel
def last_upto(s: Pointers, offset: Int, k: Int, size: Int, reach: Float, label: Int) -> Int:
    """Place of the last entry of a list or block whose key is not above (reach, label); -1 if there is none."""
    reaches, labels = offset + (LO << k), offset + (L1 << k)
    lo, hi = -1, size - 1
    while lo < hi:
        middle = (lo + hi + 1) >> 1
        key = s.f[reaches + middle]
        if key < reach or (key == reach and s.m[labels + middle] <= label):
            lo = middle
        else:
            hi = middle - 1
    return lo


@kernel
def find(s: Pointers, item: Int, reach: Float, label: Int) -> tuple[Int, Int, Int]:
    """Node, block and place of the last record that starts at or before a key; place -1 if there is none."""
    root, nodes, k = root_of(s, item)
    ni = last_upto(s, root, k, nodes, reach, label)
    if ni < 0:
        return 0, 0, -1
    node, size, k = node_of(s, item, ni)
    bi = last_upto(s, node, k, size, reach, label)
    offset, size, k = child_of(s, node, k, bi)
    return ni, bi, last_upto(s, offset, k, size, reach, label)


@kernel
def step(s: Pointers, item: Int, ni: Int, bi: Int, i: Int) -> tuple[Int, Int, Int]:
    """The place of the record behind a given one; node -1 if that is the last."""
    if i + 1 < block_of(s, item, ni, bi)[1]:
        return ni, bi, i + 1
    if bi + 1 < node_of(s, item, ni)[1]:
        return ni, bi + 1, 0
    if ni + 1 < root_of(s, item)[1]:
        return ni + 1, 0, 0
    return -1, 0, 0


@kernel
def is_at(s: Pointers, offset: Int, k: Int, i: Int, c: Float, t0: Int) -> bool:
    """True if a record has this anchor."""
    return bool(s.f[offset + (C << k) + i] == c and s.m[offset + (T0 << k) + i] == t0)


# --- Replacing records ---

SPARSE = BLOCK_MAX // 4
"""Blocks of so few records, and nodes of twice as few blocks, are joined with a neighbour if that is small, too."""

Change = tuple[Int, Int, Int, Int, Int]
"""What is to be replaced by the first m records of the scratch list: (node, block, start, end, m)."""
NO_CHANGE = (ZERO, ZERO, ZERO, ZERO, np.int64(-1))

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
        list_free(s, RECORD_WIDTH, offset, k)
        enter(s, node, kn, bi, offset, ZERO, k)
        return bi + 1, True
    if total <= BLOCK_MAX:
        if total > (1 << k):
            offset, k = list_fit(s, RECORD_WIDTH, offset, k, size, total)
        if start + m != end:
            copy_span(s.m, RECORD_WIDTH, offset, k, end, offset, k, start + m, size - end)
        copy_span(s.m, RECORD_WIDTH, SCRATCH, SCRATCH_CLASS, ZERO, offset, k, start, m)
        enter(s, node, kn, bi, offset, total, k)
        return bi + 1, total <= SPARSE
    copy_span(s.m, RECORD_WIDTH, offset, k, ZERO, WHOLE, SCRATCH_CLASS, ZERO, start)
    copy_span(s.m, RECORD_WIDTH, SCRATCH, SCRATCH_CLASS, ZERO, WHOLE, SCRATCH_CLASS, start, m)
    copy_span(s.m, RECORD_WIDTH, offset, k, end, WHOLE, SCRATCH_CLASS, start + m, size - end)
    half = total >> 1
    offset, k = list_fit(s, RECORD_WIDTH, offset, k, ZERO, half)
    copy_span(s.m, RECORD_WIDTH, WHOLE, SCRATCH_CLASS, ZERO, offset, k, ZERO, half)
    ko = class_for(total - half)
    other = list_new(s, RECORD_WIDTH, ko)
    copy_span(s.m, RECORD_WIDTH, WHOLE, SCRATCH_CLASS, half, other, ko, ZERO, total - half)
    node, kn = list_fit(s, LIST_WIDTH, node, kn, blocks, blocks + 1)
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
                before, kb = list_fit(s, RECORD_WIDTH, before, kb, held, held + size)
                copy_span(s.m, RECORD_WIDTH, offset, k, ZERO, before, kb, held, size)
                list_free(s, RECORD_WIDTH, offset, k)
                enter(s, node, kn, kept - 1, before, held + size, kb)
                continue
        if kept < bi:
            copy_span(s.m, LIST_WIDTH, node, kn, bi, node, kn, kept, ONE)
        kept += 1
    return kept


@kernel
def finish_node(s: Pointers, item: Int, ni: Int, sparse: bool) -> tuple[Int, bool]:
    """Bring a node in order after its blocks have changed.

    Returns the place of the next node in the root, and whether this one has become small.
    """
    node, blocks, k = node_of(s, item, ni)
    if (sparse and blocks > 1) or (blocks == 1 and child_of(s, node, k, ZERO)[1] == 0):
        blocks = close_blocks(s, node, blocks, k)
        if blocks == 0:
            list_free(s, LIST_WIDTH, node, k)
            enter_node(s, item, ni, node, ZERO, k)
            return ni + 1, True
    if blocks <= NODE_MAX:
        enter_node(s, item, ni, node, blocks, k)
        return ni + 1, blocks <= SPARSE >> 1
    half = blocks >> 1
    ko = class_for(blocks - half)
    other = list_new(s, LIST_WIDTH, ko)
    copy_span(s.m, LIST_WIDTH, node, k, half, other, ko, ZERO, blocks - half)
    node, k = list_fit(s, LIST_WIDTH, node, k, half, half)
    root, nodes, kr = root_of(s, item)
    root, kr = list_fit(s, LIST_WIDTH, root, kr, nodes, nodes + 1)
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
                before, kb = list_fit(s, LIST_WIDTH, before, kb, held, held + size)
                copy_span(s.m, LIST_WIDTH, node, k, ZERO, before, kb, held, size)
                list_free(s, LIST_WIDTH, node, k)
                enter_node(s, item, kept - 1, before, held + size, kb)
                continue
        if kept < ni:
            copy_span(s.m, LIST_WIDTH, root, kr, ni, root, kr, kept, ONE)
        kept += 1
    if kept == 0:
        list_free(s, LIST_WIDTH, root, kr)
        s.items[item * ITEM_FIELDS + ITEM_SHAPE] = 0
    elif kept < nodes:
        root, kr = list_fit(s, LIST_WIDTH, root, kr, kept, kept)
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
