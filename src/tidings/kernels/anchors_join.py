"""What a new member changes in the runs of one item."""

from __future__ import annotations

import numpy as np

from tidings.kernels.anchors_arrays import (
    AUDIENCE_FIELDS,
    FIRST_ITEM,
    HI,
    ITEM_AUDIENCE,
    ITEM_FIELDS,
    ITEM_SHAPE,
    L2,
    LABEL_MAX,
    LO,
    NEXT,
    NODE_MAX,
    SCRATCH,
    SCRATCH_CLASS,
    T0,
    TIME,
    C,
    Float,
    Int,
    N,
    Pointers,
    has_room,
)
from tidings.kernels.anchors_change import BLOCK_ROOM, JOIN_ROOM, NO_CHANGE, Change
from tidings.kernels.anchors_find import find, is_at, step
from tidings.kernels.anchors_members import neighbours
from tidings.kernels.anchors_runs import block_of, child_of, node_of, refresh, root_of, set_record, set_wide, start_runs
from tidings.kernels.jit import kernel


@kernel
def item_has_room(s: Pointers, item: Int) -> bool:
    """True if there is room for two changes in an item."""
    nodes = root_of(s, item)[1]
    return bool(has_room(s, 2 * (BLOCK_ROOM + JOIN_ROOM), (nodes + 2) * 4 * NODE_MAX, 0, 0))


@kernel
def new_part(s: Pointers, item: Int, reach: Float, label: Int) -> None:
    """Put a part for one member, with the item's value and time, into the scratch extent."""
    d, t = s.values[item], s.items[item * ITEM_FIELDS + TIME]
    set_record(s, SCRATCH, SCRATCH_CLASS, 0, d, t, reach, reach, label, label, 1)


@kernel
def cut_wide(
    s: Pointers, item: Int, ni: Int, bi: Int, i: Int, reach: Float, label: Int, n: Int, low: Int, high: Int
) -> Change:
    """Take a reach out of a wide record with another anchor than its new member's; it has n others, labels low..high."""
    offset, _, k = block_of(s, item, ni, bi)
    at = offset + i
    c, lo, hi = s.f[at + (C << k)], s.f[at + (LO << k)], s.f[at + (HI << k)]
    t0 = s.m[offset + (T0 << k) + i]
    d, t = s.values[item], s.items[item * ITEM_FIELDS + TIME]
    below, above = neighbours(s, s.items[item * ITEM_FIELDS + ITEM_AUDIENCE], reach)
    m = 0
    if lo < reach:
        set_wide(s, SCRATCH, SCRATCH_CLASS, m, c, t0, lo, below)
        m += 1
    if n == 0:
        set_wide(s, SCRATCH, SCRATCH_CLASS, m, d, t, reach, reach)
        m += 1
    else:
        set_record(s, SCRATCH, SCRATCH_CLASS, m, c, t0, reach, reach, low, high, n)
        set_record(s, SCRATCH, SCRATCH_CLASS, m + 1, d, t, reach, reach, label, label, 1)
        m += 2
    if reach < hi:
        set_wide(s, SCRATCH, SCRATCH_CLASS, m, c, t0, above, hi)
        m += 1
    return ni, bi, i, i + 1, m


@kernel
def add_reach(s: Pointers, item: Int, reach: Float) -> Change:
    """A reach that was not there gets the item's value and time as its anchor."""
    d, t = s.values[item], s.items[item * ITEM_FIELDS + TIME]
    if s.items[item * ITEM_FIELDS + ITEM_SHAPE] == 0:
        start_runs(s, item, reach, reach)
        return NO_CHANGE
    ni, bi, i = find(s, item, reach, LABEL_MAX)
    n2, b2, i2 = ni, bi, i + 1
    if i >= 0:
        offset, _, k = block_of(s, item, ni, bi)
        at = offset + (HI << k) + i
        same = is_at(s, offset, k, i, d, t)
        if s.f[at] > reach:
            return NO_CHANGE if same else cut_wide(s, item, ni, bi, i, reach, 0, 0, 0, 0)
        if same and s.m[offset + (N << k) + i] == 0:
            s.f[at] = reach
            return NO_CHANGE
        n2, b2, i2 = step(s, item, ni, bi, i)
    if n2 >= 0:
        offset, _, k = block_of(s, item, n2, b2)
        if s.m[offset + (N << k) + i2] == 0 and is_at(s, offset, k, i2, d, t):
            set_wide(s, offset, k, i2, d, t, reach, s.f[offset + (HI << k) + i2])
            refresh(s, item, n2, b2)
            return NO_CHANGE
    set_wide(s, SCRATCH, SCRATCH_CLASS, 0, d, t, reach, reach)
    return ni, bi, i + 1, i + 1, 1


@kernel
def add_label(s: Pointers, item: Int, reach: Float, label: Int, n: Int, low: Int, high: Int) -> Change:
    """A reach with n members, labels low..high, gets one more at its end, with the item's value and time."""
    d, t = s.values[item], s.items[item * ITEM_FIELDS + TIME]
    ni, bi, i = find(s, item, reach, LABEL_MAX)
    offset, _, k = block_of(s, item, ni, bi)
    at = offset + i
    same = is_at(s, offset, k, i, d, t)
    if s.m[at + (N << k)] == 0:
        return NO_CHANGE if same else cut_wide(s, item, ni, bi, i, reach, label, n, low, high)
    if same:
        s.m[at + (N << k)] += 1
        s.m[at + (L2 << k)] = max(label, s.m[at + (L2 << k)])
        return NO_CHANGE
    new_part(s, item, reach, label)
    return ni, bi, i + 1, i + 1, 1


@kernel
def clashes(s: Pointers, audience: Int, reach: Float, label: Int) -> bool:
    """True if, in some item, members with this label, the highest of the reach, have another anchor than a new one."""
    item = s.audiences[audience * AUDIENCE_FIELDS + FIRST_ITEM]
    while item >= 0:
        if not np.isnan(s.values[item]):
            ni, bi, i = find(s, item, reach, LABEL_MAX)
            offset, _, k = block_of(s, item, ni, bi)
            same = is_at(s, offset, k, i, s.values[item], s.items[item * ITEM_FIELDS + TIME])
            if not same and s.m[offset + (L2 << k) + i] >= label:
                return True
        item = s.items[item * ITEM_FIELDS + NEXT]
    return False


@kernel
def joins_single(s: Pointers, item: Int, reach: Float, d: Float, t: Int) -> bool:
    """If an item has one record, wide and with anchor (d, t), take the reach into it; else False."""
    if root_of(s, item)[1] != 1:
        return False
    node, blocks, kn = node_of(s, item, 0)
    if blocks != 1:
        return False
    offset, size, k = child_of(s, node, kn, 0)
    if size != 1 or s.m[offset + (N << k)] or not is_at(s, offset, k, 0, d, t):
        return False
    hi = s.f[offset + (HI << k)]
    if reach > hi:
        s.f[offset + (HI << k)] = reach
    elif reach < s.f[offset + (LO << k)]:
        set_wide(s, offset, k, 0, d, t, reach, hi)
        refresh(s, item, 0, 0)
    return True
