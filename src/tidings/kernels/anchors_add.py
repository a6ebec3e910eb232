"""New members: in the audience first, then in each of its items, one after the other.

Room is asked for item by item, as an audience may have many: a kernel that runs out of it leaves in `head` where to go
on (PROGRESS, RESUME).
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.anchors_arrays import (
    AUDIENCE_FIELDS,
    AUDIENCE_SHAPE,
    AUDIENCE_TOP,
    BAD_AUDIENCE,
    BAD_LABEL,
    BAD_REACH,
    CHOOSE,
    COUNT,
    COUNT_BEFORE,
    DONE,
    F64,
    FIRST_ITEM,
    I64,
    ITEM_FIELDS,
    ITEMS,
    KIND,
    LABEL_HI,
    LABEL_HI_BEFORE,
    LABEL_LO,
    LABEL_LO_BEFORE,
    MEMBER_MAX,
    NEEDS_ROOM,
    NEXT,
    NO_LABEL,
    NODE_MAX,
    NOT_ALONE,
    PROGRESS,
    RATIO,
    RESUME,
    TIME,
    TOTAL,
    Float,
    Int,
    N,
    Pointers,
    has_room,
    pointers,
)
from tidings.kernels.anchors_change import BLOCK_ROOM, JOIN_ROOM, NO_CHANGE, replace
from tidings.kernels.anchors_find import AS_GIVEN, BEHIND, INTO, NOWHERE, choose
from tidings.kernels.anchors_join import add_label, add_reach, clashes, item_has_room, joins_single, new_part
from tidings.kernels.anchors_members import insert_reach, member_at
from tidings.kernels.anchors_runs import block_of, root_of
from tidings.kernels.jit import kernel


@kernel
def add_member(s: Pointers, audience: Int, reach: Float, label: Int) -> tuple[Int, Int, Int, Int, Int, Int]:
    """Enter a member into its audience, and leave in `head` the items to follow; (status, and what `choose` returns)."""
    head = s.head
    roots = 4 * (s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_SHAPE] >> 8) + 8
    item = s.audiences[audience * AUDIENCE_FIELDS + FIRST_ITEM]
    given = label != CHOOSE
    if not given and s.audiences[audience * AUDIENCE_FIELDS + ITEMS] != 1:
        return NOT_ALONE, label, 0, 0, 0, 0
    lists = 8 * NODE_MAX if given else (root_of(s, item)[1] + 2) * 4 * NODE_MAX
    if not has_room(s, BLOCK_ROOM + JOIN_ROOM, lists, 2 * MEMBER_MAX, roots):
        return NEEDS_ROOM, label, 0, 0, 0, 0
    how, ni, bi, i = AS_GIVEN, 0, 0, 0
    place, stride = member_at(s, audience, reach)
    if not given:
        label = np.int64(0)
        if place >= 0:
            label, how, ni, bi, i = choose(s, item, reach, s.m[place + LABEL_HI * stride])
            if how == NOWHERE:
                return NO_LABEL, label, 0, 0, 0, 0
    head[COUNT_BEFORE] = 0
    if place < 0:
        insert_reach(s, audience, reach, label)
    else:
        high = s.m[place + LABEL_HI * stride]
        if given and (label < high or (label == high and clashes(s, audience, reach, label))):
            return BAD_LABEL, label, 0, 0, 0, 0
        head[COUNT_BEFORE] = s.m[place + COUNT * stride]
        head[LABEL_LO_BEFORE] = s.m[place + LABEL_LO * stride]
        head[LABEL_HI_BEFORE] = high
        s.m[place + COUNT * stride] += 1
        s.m[place + LABEL_HI * stride] = max(high, label)
    s.audiences[audience * AUDIENCE_FIELDS + TOTAL] += 1
    head[RESUME] = item
    return DONE, label, how, ni, bi, i


@kernel
def add_to_items(s: Pointers, reach: Float, label: Int, how: Int, ni: Int, bi: Int, i: Int) -> bool:
    """Enter a member into all items from head[RESUME] on; False if there must be room first."""
    item = s.head[RESUME]
    n, low, high = s.head[COUNT_BEFORE], s.head[LABEL_LO_BEFORE], s.head[LABEL_HI_BEFORE]
    while item >= 0:
        change = NO_CHANGE
        d, t = s.values[item], s.items[item * ITEM_FIELDS + TIME]
        if how == INTO:
            offset, _, k = block_of(s, item, ni, bi)
            s.m[offset + (N << k) + i] += 1
        elif how == BEHIND:
            new_part(s, item, reach, label)
            change = ni, bi, i + 1, i + 1, 1
        elif not np.isnan(d) and not joins_single(s, item, reach, d, t):
            if not item_has_room(s, item):
                s.head[RESUME] = item
                return False
            if n:
                change = add_label(s, item, reach, label, n, low, high)
            else:
                change = add_reach(s, item, reach)
        replace(s, item, change)
        item = s.items[item * ITEM_FIELDS + NEXT]
    s.head[RESUME] = -1
    return True


@kernel
def first_bad(head: I64, audiences: I64, reaches: F64) -> Int:
    """What is wrong with the first wrong one of some keys, and in `head` its place; DONE if nothing."""
    low = 1.0 if head[KIND] == RATIO else 0.0
    for i in range(audiences.shape[0]):
        head[PROGRESS] = i
        if not 0 <= audiences[i] < head[AUDIENCE_TOP]:
            return BAD_AUDIENCE
        if not low < reaches[i] < np.inf:
            return BAD_REACH
    return DONE


@kernel
def add(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    to: I64,
    reaches: F64,
    labels: I64,
    at: Int,
) -> Int:
    """Add members from place `at` on, replacing CHOOSE by the labels chosen; DONE, NEEDS_ROOM or what is wrong."""
    s = pointers(head, items, values, audiences, m, f)
    if at == 0:
        status = first_bad(head, to, reaches)
        if status != DONE:
            return status
    for i in range(at, to.shape[0]):
        head[PROGRESS] = i
        how, ni, bi, place = AS_GIVEN, 0, 0, 0
        if head[RESUME] < 0:
            status, label, how, ni, bi, place = add_member(s, to[i], reaches[i], labels[i])
            if status != DONE:
                return status
            labels[i] = label
        if head[RESUME] >= 0 and not add_to_items(s, reaches[i], labels[i], how, ni, bi, place):
            return NEEDS_ROOM
    return DONE
