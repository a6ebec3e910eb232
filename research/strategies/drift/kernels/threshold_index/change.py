"""How items and members come and go.

A new member is entered into its audience first, then into each item that the audience follows; a leaving one is taken out in
the same order. Room is asked for item by item, as an audience may follow many: a kernel that runs out of it leaves in `head`
where to go on (PROGRESS, RESUME).
"""

from __future__ import annotations

import numpy as np

from research.strategies.drift.kernels.threshold_index.labels import AS_GIVEN, BEHIND, INTO, NOWHERE, choose
from research.strategies.drift.kernels.threshold_index.layout import (
    AUDIENCE_FIELDS,
    AUDIENCE_SHAPE,
    AUDIENCE_TOP,
    BAD_AUDIENCE,
    BAD_KEY,
    BAD_LABEL,
    BAD_REACH,
    CHOOSE,
    COUNT,
    COUNT_BEFORE,
    DONE,
    FIRST_ITEM,
    HI,
    ITEM_AUDIENCE,
    ITEM_FIELDS,
    ITEM_FREE,
    ITEM_SHAPE,
    ITEM_TOP,
    ITEMS,
    KIND,
    L2,
    LABEL_HI,
    LABEL_HI_BEFORE,
    LABEL_LO,
    LABEL_LO_BEFORE,
    LABEL_MAX,
    LO,
    NEEDS_ROOM,
    NEXT,
    NO_LABEL,
    NODE_MAX,
    NOT_ALONE,
    PREVIOUS,
    PROGRESS,
    RATIO,
    REACHES_MAX,
    RESUME,
    SCRATCH,
    SCRATCH_CLASS,
    T0,
    TIME,
    TOTAL,
    C,
    N,
    Pointers,
    delete_reach,
    extremes,
    has_room,
    insert_reach,
    neighbours,
    pointers,
    reach_at,
)
from research.strategies.drift.kernels.threshold_index.runs import (
    BLOCK_ROOM,
    JOIN_ROOM,
    NO_CHANGE,
    Change,
    block_of,
    child_of,
    find,
    free_runs,
    is_at,
    node_of,
    refresh,
    replace,
    root_of,
    set_record,
    set_wide,
    start_runs,
    step,
)
from tidings.kernels.arrays import F64, I64, ONE, ZERO, Float, Int
from tidings.kernels.jit import kernel

# --- Items ---


@kernel
def link(s: Pointers, item: Int, audience: Int) -> None:
    """Make an item follow an audience."""
    following = s.audiences[audience * AUDIENCE_FIELDS + FIRST_ITEM]
    s.items[item * ITEM_FIELDS + ITEM_AUDIENCE] = audience
    s.items[item * ITEM_FIELDS + NEXT] = following
    s.items[item * ITEM_FIELDS + PREVIOUS] = -1
    s.items[item * ITEM_FIELDS + ITEM_SHAPE] = 0
    if following >= 0:
        s.items[following * ITEM_FIELDS + PREVIOUS] = item
    s.audiences[audience * AUDIENCE_FIELDS + FIRST_ITEM] = item
    s.audiences[audience * AUDIENCE_FIELDS + ITEMS] += 1


@kernel
def new_items(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    followed: I64,
    new_values: F64,
    new_times: I64,
) -> I64:
    """Make items, for which there is room; returns their numbers."""
    s = pointers(head, items, values, audiences, m, f)
    made = np.empty(followed.shape[0], np.int64)
    for i in range(followed.shape[0]):
        item = head[ITEM_FREE]
        if item >= 0:
            head[ITEM_FREE] = items[item, NEXT]
        else:
            item = head[ITEM_TOP]
            head[ITEM_TOP] += 1
        made[i] = item
        link(s, item, followed[i])
        values[item] = new_values[i]
        items[item, TIME] = new_times[i]
        if audiences[followed[i], TOTAL] and not np.isnan(new_values[i]):
            lo, hi = extremes(s, followed[i])
            start_runs(s, item, lo, hi)
    return made


@kernel
def free_item(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    item: Int,
) -> None:
    """Forget an item."""
    s = pointers(head, items, values, audiences, m, f)
    free_runs(s, item)
    audience, before, following = items[item, ITEM_AUDIENCE], items[item, PREVIOUS], items[item, NEXT]
    if following >= 0:
        items[following, PREVIOUS] = before
    if before >= 0:
        items[before, NEXT] = following
    else:
        audiences[audience, FIRST_ITEM] = following
    audiences[audience, ITEMS] -= 1
    values[item] = np.nan
    items[item, ITEM_AUDIENCE] = -1
    items[item, NEXT] = head[ITEM_FREE]
    head[ITEM_FREE] = item


# --- What a new member changes in the runs of one item ---


@kernel
def item_has_room(s: Pointers, item: Int) -> bool:
    """True if there is room for two changes in an item."""
    nodes = root_of(s, item)[1]
    return bool(has_room(s, 2 * (BLOCK_ROOM + JOIN_ROOM), (nodes + 2) * 4 * NODE_MAX, 0, 0))


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
        set_record(s, SCRATCH, SCRATCH_CLASS, m + 1, d, t, reach, reach, label, label, ONE)
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
            return NO_CHANGE if same else cut_wide(s, item, ni, bi, i, reach, ZERO, ZERO, ZERO, ZERO)
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
    set_wide(s, SCRATCH, SCRATCH_CLASS, ZERO, d, t, reach, reach)
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
    set_record(s, SCRATCH, SCRATCH_CLASS, ZERO, d, t, reach, reach, label, label, ONE)
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
    node, blocks, kn = node_of(s, item, ZERO)
    if blocks != 1:
        return False
    offset, size, k = child_of(s, node, kn, ZERO)
    if size != 1 or s.m[offset + (N << k)] or not is_at(s, offset, k, ZERO, d, t):
        return False
    hi = s.f[offset + (HI << k)]
    if reach > hi:
        s.f[offset + (HI << k)] = reach
    elif reach < s.f[offset + (LO << k)]:
        set_wide(s, offset, k, ZERO, d, t, reach, hi)
        refresh(s, item, ZERO, ZERO)
    return True


# --- New members ---


@kernel
def enter_member(s: Pointers, audience: Int, reach: Float, label: Int) -> tuple[Int, Int, Int, Int, Int, Int]:
    """Enter a member into its audience, and leave in `head` the items to follow; (status, and what `choose` returns)."""
    head = s.head
    roots = 4 * (s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_SHAPE] >> 8) + 8
    item = s.audiences[audience * AUDIENCE_FIELDS + FIRST_ITEM]
    given = label != CHOOSE
    if not given and s.audiences[audience * AUDIENCE_FIELDS + ITEMS] != 1:
        return NOT_ALONE, label, 0, 0, 0, 0
    lists = 8 * NODE_MAX if given else (root_of(s, item)[1] + 2) * 4 * NODE_MAX
    if not has_room(s, BLOCK_ROOM + JOIN_ROOM, lists, 2 * REACHES_MAX, roots):
        return NEEDS_ROOM, label, 0, 0, 0, 0
    how, ni, bi, i = AS_GIVEN, 0, 0, 0
    place, stride = reach_at(s, audience, reach)
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
        how, ni, bi, place = AS_GIVEN, ZERO, ZERO, ZERO
        if head[RESUME] < 0:
            status, label, how, ni, bi, place = enter_member(s, to[i], reaches[i], labels[i])
            if status != DONE:
                return status
            labels[i] = label
        item = head[RESUME]
        n, low, high = head[COUNT_BEFORE], head[LABEL_LO_BEFORE], head[LABEL_HI_BEFORE]
        reach, label = reaches[i], labels[i]
        while item >= 0:
            change = NO_CHANGE
            d, t = values[item], items[item, TIME]
            if how == INTO:
                offset, _, k = block_of(s, item, ni, bi)
                m[offset + (N << k) + place] += 1
            elif how == BEHIND:
                set_record(s, SCRATCH, SCRATCH_CLASS, ZERO, d, t, reach, reach, label, label, ONE)
                change = ni, bi, place + 1, place + 1, ONE
            elif not np.isnan(d) and not joins_single(s, item, reach, d, t):
                if not item_has_room(s, item):
                    head[RESUME] = item
                    return NEEDS_ROOM
                change = add_label(s, item, reach, label, n, low, high) if n else add_reach(s, item, reach)
            replace(s, item, change)
            item = items[item, NEXT]
        head[RESUME] = -1
    return DONE


# --- Leaving members ---


@kernel
def withdraw_member(s: Pointers, audience: Int, reach: Float, label: Int) -> Int:
    """Take a member out of its audience, and leave in `head` the items to follow; DONE, NEEDS_ROOM or BAD_KEY."""
    roots = s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_SHAPE] >> 8
    if not has_room(s, ZERO, ZERO, REACHES_MAX, 2 * roots):
        return NEEDS_ROOM
    place, stride = reach_at(s, audience, reach)
    if place < 0 or not (s.m[place + LABEL_LO * stride] <= label <= s.m[place + LABEL_HI * stride]):
        return BAD_KEY
    item = s.audiences[audience * AUDIENCE_FIELDS + FIRST_ITEM]
    s.head[RESUME] = item
    while item >= 0:
        if not np.isnan(s.values[item]):
            # If the reach is in parts, one of them has the label.
            ni, bi, i = find(s, item, reach, label)
            is_held = i >= 0
            if is_held:
                offset, _, k = block_of(s, item, ni, bi)
                is_held = s.f[offset + (HI << k) + i] >= reach and s.m[offset + (L2 << k) + i] >= label
            if not is_held:
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
    set_wide(s, SCRATCH, SCRATCH_CLASS, ZERO, c, t0, lo, hi)
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
            status = withdraw_member(s, of[i], reaches[i], labels[i])
            if status != DONE:
                return status
        item = head[RESUME]
        place, stride = reach_at(s, of[i], reaches[i])
        count = m[place + COUNT * stride] if place >= 0 else 0
        parted = False
        while item >= 0:
            change = NO_CHANGE
            if parted:
                change, parted = widen(s, item, reaches[i], count), False
            elif not np.isnan(values[item]):
                if not item_has_room(s, item):
                    head[RESUME] = item
                    return NEEDS_ROOM
                change, parted = leave(s, item, reaches[i], labels[i], count)
            replace(s, item, change)
            if not parted:
                item = items[item, NEXT]
        head[RESUME] = -1
    return DONE
