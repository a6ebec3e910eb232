"""Leaving members: out of the audience first, then out of each of its items, as in anchors_add."""

from __future__ import annotations

import numpy as np

from tidings.kernels.anchors_add import first_bad
from tidings.kernels.anchors_arrays import (
    AUDIENCE_FIELDS,
    AUDIENCE_SHAPE,
    BAD_AUDIENCE,
    BAD_KEY,
    COUNT,
    DONE,
    F64,
    FIRST_ITEM,
    HI,
    I64,
    ITEM_AUDIENCE,
    ITEM_FIELDS,
    L2,
    LABEL_HI,
    LABEL_LO,
    LABEL_MAX,
    LO,
    MEMBER_MAX,
    NEEDS_ROOM,
    NEXT,
    PROGRESS,
    RESUME,
    SCRATCH,
    SCRATCH_CLASS,
    T0,
    TOTAL,
    C,
    Float,
    Int,
    N,
    Pointers,
    has_room,
    pointers,
)
from tidings.kernels.anchors_change import NO_CHANGE, Change, replace
from tidings.kernels.anchors_find import find, is_at
from tidings.kernels.anchors_join import item_has_room
from tidings.kernels.anchors_members import delete_reach, member_at, neighbours
from tidings.kernels.anchors_runs import block_of, refresh, set_wide
from tidings.kernels.jit import kernel


@kernel
def is_held(s: Pointers, item: Int, reach: Float, label: Int) -> bool:
    """True unless the reach is in parts, and none of them has the label."""
    ni, bi, i = find(s, item, reach, label)
    if i < 0:
        return False
    offset, _, k = block_of(s, item, ni, bi)
    return bool(s.f[offset + (HI << k) + i] >= reach and s.m[offset + (L2 << k) + i] >= label)


@kernel
def remove_member(s: Pointers, audience: Int, reach: Float, label: Int) -> Int:
    """Take a member out of its audience, and leave in `head` the items to follow; DONE, NEEDS_ROOM or BAD_KEY."""
    roots = s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_SHAPE] >> 8
    if not has_room(s, 0, 0, MEMBER_MAX, 2 * roots):
        return NEEDS_ROOM
    place, stride = member_at(s, audience, reach)
    if place < 0 or not (s.m[place + LABEL_LO * stride] <= label <= s.m[place + LABEL_HI * stride]):
        return BAD_KEY
    item = s.audiences[audience * AUDIENCE_FIELDS + FIRST_ITEM]
    s.head[RESUME] = item
    while item >= 0:
        if not np.isnan(s.values[item]) and not is_held(s, item, reach, label):
            s.head[RESUME] = -1
            return BAD_KEY
        item = s.items[item * ITEM_FIELDS + NEXT]
    s.audiences[audience * AUDIENCE_FIELDS + TOTAL] -= 1
    s.m[place + COUNT * stride] -= 1
    if s.m[place + COUNT * stride] == 0:
        delete_reach(s, audience, reach)
    return DONE


@kernel
def leave_wide(s: Pointers, item: Int, ni: Int, bi: Int, i: Int, reach: Float) -> Change:
    """Take a reach that has no members any more out of the wide record with it."""
    offset, _, k = block_of(s, item, ni, bi)
    at = offset + i
    lo, hi = s.f[at + (LO << k)], s.f[at + (HI << k)]
    if lo == hi:
        return ni, bi, i, i + 1, 0
    if lo != reach and hi != reach:
        return NO_CHANGE
    below, above = neighbours(s, s.items[item * ITEM_FIELDS + ITEM_AUDIENCE], reach)
    if hi == reach:
        s.f[at + (HI << k)] = below
    else:
        t0 = s.m[offset + (T0 << k) + i]
        set_wide(s, offset, k, i, s.f[at + (C << k)], t0, above, hi)
        refresh(s, item, ni, bi)
    return NO_CHANGE


@kernel
def widen(s: Pointers, item: Int, reach: Float, count: Int) -> Change:
    """If a reach has only one part left, make that a wide record, one with its equals beside it in the block."""
    ni, bi, i = find(s, item, reach, LABEL_MAX)
    offset, size, k = block_of(s, item, ni, bi)
    n, at = offset + (N << k), offset
    if s.m[n + i] != count:
        return NO_CHANGE
    c, t0 = s.f[at + (C << k) + i], s.m[offset + (T0 << k) + i]
    start, end = i, i + 1
    if i > 0 and s.m[n + i - 1] == 0 and is_at(s, offset, k, i - 1, c, t0):
        start -= 1
    if end < size and s.m[n + end] == 0 and is_at(s, offset, k, end, c, t0):
        end += 1
    lo, hi = s.f[at + (LO << k) + start], s.f[at + (HI << k) + end - 1]
    set_wide(s, SCRATCH, SCRATCH_CLASS, 0, c, t0, lo, hi)
    return ni, bi, start, end, 1


@kernel
def leave(s: Pointers, item: Int, reach: Float, label: Int, count: Int) -> tuple[Change, bool]:
    """Take a member out of an item, `count` others being left of its reach; and True if a part goes with it."""
    ni, bi, i = find(s, item, reach, label)
    offset, _, k = block_of(s, item, ni, bi)
    n = offset + (N << k) + i
    if s.m[n] == 0:
        return leave_wide(s, item, ni, bi, i, reach) if count == 0 else NO_CHANGE, False
    if s.m[n] > 1:
        s.m[n] -= 1
        return NO_CHANGE, False
    return (ni, bi, i, i + 1, 0), True


@kernel
def remove_from_items(s: Pointers, audience: Int, reach: Float, label: Int) -> bool:
    """Take a member out of all items from head[RESUME] on; False if there must be room first."""
    item = s.head[RESUME]
    place, stride = member_at(s, audience, reach)
    count = s.m[place + COUNT * stride] if place >= 0 else 0
    parted = False
    while item >= 0:
        if np.isnan(s.values[item]):
            item = s.items[item * ITEM_FIELDS + NEXT]
            continue
        if parted:
            change, parted = widen(s, item, reach, count), False
        elif item_has_room(s, item):
            change, parted = leave(s, item, reach, label, count)
        else:
            s.head[RESUME] = item
            return False
        replace(s, item, change)
        if not parted:
            item = s.items[item * ITEM_FIELDS + NEXT]
    s.head[RESUME] = -1
    return True


@kernel
def remove(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    of: I64,
    reaches: F64,
    labels: I64,
    at: Int,
) -> Int:
    """Remove members from place `at` on; DONE, NEEDS_ROOM or BAD_KEY."""
    s = pointers(head, items, values, audiences, m, f)
    if at == 0:
        status = first_bad(head, of, reaches)
        if status != DONE:
            return BAD_AUDIENCE if status == BAD_AUDIENCE else BAD_KEY
    for i in range(at, of.shape[0]):
        head[PROGRESS] = i
        if head[RESUME] < 0:
            status = remove_member(s, of[i], reaches[i], labels[i])
            if status != DONE:
                return status
        if head[RESUME] >= 0 and not remove_from_items(s, of[i], reaches[i], labels[i]):
            return NEEDS_ROOM
    return DONE
