"""The runs of an item: records in key order, in blocks, the blocks in nodes, the nodes in one root.

A record is WIDE (N == 0): all members with reaches LO..HI, both in use; or it is a PART (N > 0): those N members of
reach LO == HI with labels L1..L2. Parts are used for a reach whose members have more than one anchor, only then.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.anchors_arrays import (
    CHILD,
    DN,
    DUE,
    HI,
    INT64_MAX,
    ITEM_FIELDS,
    ITEM_ROOT,
    ITEM_SHAPE,
    KIND,
    L1,
    L2,
    LABEL_MAX,
    LABEL_MIN,
    LISTS,
    LO,
    PATIENCE,
    RECORDS,
    SHAPE,
    T0,
    TIME,
    UP,
    C,
    Float,
    Int,
    N,
    Pointers,
    due_after,
    extent_free,
    extent_new,
    thresholds,
)
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
    set_record(s, offset, k, i, c, t0, lo, hi, LABEL_MIN, LABEL_MAX, 0)


@kernel
def start_runs(s: Pointers, item: Int, lo: Float, hi: Float) -> None:
    """Give an item without runs one record, with its present value and time, for the reaches lo..hi."""
    block = extent_new(s, RECORDS, 0)
    node = extent_new(s, LISTS, 0)
    s.items[item * ITEM_FIELDS + ITEM_ROOT] = extent_new(s, LISTS, 0)
    s.items[item * ITEM_FIELDS + ITEM_SHAPE] = 1 << 8
    set_wide(s, block, 0, 0, s.values[item], s.items[item * ITEM_FIELDS + TIME], lo, hi)
    enter(s, node, 0, 0, block, 1, 0)
    enter_node(s, item, 0, node, 1, 0)


@kernel
def free_runs(s: Pointers, item: Int) -> None:
    """Forget all runs of an item."""
    root, size, kr = root_of(s, item)
    for ni in range(size):
        node, blocks, kn = node_of(s, item, ni)
        for bi in range(blocks):
            offset, _, k = child_of(s, node, kn, bi)
            extent_free(s, RECORDS, offset, k)
        extent_free(s, LISTS, node, kn)
    if size:
        extent_free(s, LISTS, root, kr)
    s.items[item * ITEM_FIELDS + ITEM_SHAPE] = 0
