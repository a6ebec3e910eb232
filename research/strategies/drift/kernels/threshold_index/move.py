"""Moves: which members of an item a new value reaches, and their new anchor.

A walk over the runs of an item enters the nodes and blocks whose aggregates are hit. Hit records that follow each other
become one: the last one written is *open*, and grows as long as what comes next is hit, too; it is then the last record
before the place of the walk, be it in the scratch list or already in its block. The boxes reported grow in the same way.

Room is made sure of before each move, so that none stops halfway.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from research.strategies.drift.kernels.threshold_index.layout import (
    AT,
    BAD_ITEM,
    BLOCK_MAX,
    BOXES,
    BOXES_WANTED,
    CLASS,
    COUNT,
    DN,
    DONE,
    DUE,
    HI,
    ITEM_AUDIENCE,
    ITEM_FIELDS,
    ITEM_TOP,
    KIND,
    KNOWN_REACH,
    L1,
    L2,
    LABEL_MAX,
    LABEL_MIN,
    LAST_COUNT,
    LO,
    NEEDS_ROOM,
    NODE_MAX,
    OPEN,
    PATIENCE,
    PLACE,
    PROGRESS,
    RECORD_WIDTH,
    SCRATCH,
    SCRATCH_CLASS,
    T0,
    TIME,
    TOTAL,
    UP,
    WIDE_AT,
    WIDE_BEFORE,
    WIDE_CLASS,
    WIDE_PLACE,
    C,
    M,
    N,
    Pointers,
    extremes,
    has_room,
    is_hit,
    last_hit,
    pointers,
    reach_at,
)
from research.strategies.drift.kernels.threshold_index.runs import (
    BLOCK_ROOM,
    JOIN_ROOM,
    block_of,
    child_of,
    finish_node,
    finish_root,
    free_runs,
    node_of,
    rewrite,
    root_of,
    set_record,
    set_wide,
    start_runs,
)
from tidings.kernels.arrays import F64, I64, ZERO, Float, Int
from tidings.kernels.extents import copy_span
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel

NOTHING, WIDE, PART = 0, 1, 2
FEW_NODES = 8
"""An item with more nodes is looked at before it is moved, to see how much room that takes."""


@kernel
def next_hit(s: Pointers, offset: Int, k: Int, i: Int, size: Int, d: Float, t: Int, timed: bool) -> Int:
    """Place of the first entry from place i on that is hit; `size` if there is none."""
    ups, dns, dues = offset + (UP << k), offset + (DN << k), offset + (DUE << k)
    if timed:
        while i < size and not (d >= s.f[ups + i] or d <= s.f[dns + i] or t > s.m[dues + i]):
            i += 1
        return i
    while i < size and not (d >= s.f[ups + i] or d <= s.f[dns + i]):
        i += 1
    return i


@kernel
def put_box(s: Pointers, reaches: Any, labels: Any, lo: Float, hi: Float, l1: Int, l2: Int) -> None:
    """Report a box."""
    at = s.head[BOXES]
    reaches[2 * at + 0] = lo
    reaches[2 * at + 1] = hi
    labels[2 * at + 0] = l1
    labels[2 * at + 1] = l2
    s.head[BOXES] = at + 1


@kernel
def touch_wide(s: Pointers, reaches: Any, labels: Any, lo: Float, hi: Float, d: Float, t: Int) -> None:
    """The reaches lo..hi are touched."""
    if s.head[OPEN] == WIDE:
        s.f[s.head[AT] + (HI << s.head[CLASS]) + s.head[PLACE]] = hi
        reaches[2 * (s.head[BOXES] - 1) + 1] = hi
        return
    put_box(s, reaches, labels, lo, hi, LABEL_MIN, LABEL_MAX)
    s.head[OPEN], s.head[AT], s.head[CLASS], s.head[PLACE] = WIDE, SCRATCH, SCRATCH_CLASS, s.head[M]
    set_wide(s, SCRATCH, SCRATCH_CLASS, s.head[M], d, t, lo, hi)
    s.head[M] += 1


@kernel
def widen_part(s: Pointers, reaches: Any, labels: Any, reach: Float, d: Float, t: Int) -> None:
    """The open part has become all there is of its reach."""
    if s.head[WIDE_BEFORE]:
        s.head[BOXES] -= 1
        reaches[2 * (s.head[BOXES] - 1) + 1] = reach
    else:
        labels[2 * (s.head[BOXES] - 1) + 0] = LABEL_MIN
        labels[2 * (s.head[BOXES] - 1) + 1] = LABEL_MAX
    s.head[OPEN] = WIDE
    if s.head[WIDE_BEFORE] and s.head[AT] == SCRATCH:
        s.head[M] -= 1
        s.head[AT], s.head[CLASS], s.head[PLACE] = s.head[WIDE_AT], s.head[WIDE_CLASS], s.head[WIDE_PLACE]
        s.f[s.head[AT] + (HI << s.head[CLASS]) + s.head[PLACE]] = reach
    else:
        # A part that began in an earlier block is left beside the wide record before it: they join when next touched.
        set_wide(s, s.head[AT], s.head[CLASS], s.head[PLACE], d, t, reach, reach)


@kernel
def touch_part(
    s: Pointers,
    reaches: Any,
    labels: Any,
    audience: Int,
    reach: Float,
    l1: Int,
    l2: Int,
    n: Int,
    d: Float,
    t: Int,
) -> None:
    """The n members of a reach with labels l1..l2 are touched."""
    at = s.head[AT] + s.head[PLACE]
    if s.head[OPEN] == PART and s.f[s.head[AT] + (LO << s.head[CLASS]) + s.head[PLACE]] == reach:
        n += s.m[at + (N << s.head[CLASS])]
        s.m[at + (N << s.head[CLASS])] = n
        s.m[at + (L2 << s.head[CLASS])] = l2
        labels[2 * (s.head[BOXES] - 1) + 1] = l2
    else:
        put_box(s, reaches, labels, reach, reach, l1, l2)
        s.head[WIDE_BEFORE] = s.head[OPEN] == WIDE
        s.head[WIDE_AT], s.head[WIDE_CLASS], s.head[WIDE_PLACE] = s.head[AT], s.head[CLASS], s.head[PLACE]
        s.head[OPEN], s.head[AT], s.head[CLASS], s.head[PLACE] = PART, SCRATCH, SCRATCH_CLASS, s.head[M]
        set_record(s, SCRATCH, SCRATCH_CLASS, s.head[M], d, t, reach, reach, l1, l2, n)
        s.head[M] += 1
    if s.f[KNOWN_REACH] != reach:
        place, stride = reach_at(s, audience, reach)
        s.f[KNOWN_REACH] = reach
        s.head[LAST_COUNT] = s.m[place + COUNT * stride]
    if n == s.head[LAST_COUNT]:
        widen_part(s, reaches, labels, reach, d, t)


@kernel
def touch_block(
    s: Pointers,
    reaches: Any,
    labels: Any,
    item: Int,
    ni: Int,
    bi: Int,
    d: Float,
    t: Int,
    timed: bool,
) -> tuple[Int, bool]:
    """Touch what is hit in a block that is hit. Returns what `rewrite` does."""
    kind = s.head[KIND]
    offset, size, k = block_of(s, item, ni, bi)
    start = next_hit(s, offset, k, ZERO, size, d, t, timed)
    if start > 0:
        s.head[OPEN] = NOTHING
    s.head[M] = 0
    done = i = start
    while i < size:
        if done < i:
            copy_span(s.m, RECORD_WIDTH, offset, k, done, SCRATCH, SCRATCH_CLASS, s.head[M], i - done)
            s.head[M] += i - done
            s.head[OPEN] = NOTHING
        at = offset + i
        lo, hi, n = s.f[at + (LO << k)], s.f[at + (HI << k)], s.m[at + (N << k)]
        if n:
            l1, l2 = s.m[at + (L1 << k)], s.m[at + (L2 << k)]
            touch_part(s, reaches, labels, s.items[item * ITEM_FIELDS + ITEM_AUDIENCE], lo, l1, l2, n, d, t)
        else:
            c = s.f[at + (C << k)]
            if (timed and t > s.m[at + (DUE << k)]) or is_hit(kind, c, hi, d):
                touch_wide(s, reaches, labels, lo, hi, d, t)
            else:
                last, following = last_hit(s, s.items[item * ITEM_FIELDS + ITEM_AUDIENCE], kind, c, d)
                touch_wide(s, reaches, labels, lo, last, d, t)
                set_wide(s, SCRATCH, SCRATCH_CLASS, s.head[M], c, s.m[at + (T0 << k)], following, hi)
                s.head[M] += 1
                s.head[OPEN] = NOTHING
        done = i + 1
        i = next_hit(s, offset, k, done, size, d, t, timed)
    if done < size:
        s.head[OPEN] = NOTHING
    following_block, sparse = rewrite(s, item, ni, bi, start, done, s.head[M])
    if s.head[OPEN] != NOTHING and s.head[AT] == SCRATCH:
        s.head[AT], count, s.head[CLASS] = block_of(s, item, ni, following_block - 1)
        s.head[PLACE] = count - 1
    return following_block, sparse


@kernel
def touch_item(s: Pointers, reaches: Any, labels: Any, item: Int, d: Float, t: Int, timed: bool) -> None:
    """Touches what is hit in an item."""
    s.head[OPEN] = NOTHING
    s.f[KNOWN_REACH] = np.nan
    ni = ZERO
    is_root_sparse = False
    while True:
        root, nodes, kr = root_of(s, item)
        hit = next_hit(s, root, kr, ni, nodes, d, t, timed)
        if hit > ni:
            s.head[OPEN] = NOTHING
        if hit == nodes:
            break
        ni, bi = hit, ZERO
        is_node_sparse = False
        while True:
            node, blocks, kn = node_of(s, item, ni)
            hit = next_hit(s, node, kn, bi, blocks, d, t, timed)
            if hit > bi:
                s.head[OPEN] = NOTHING
            if hit == blocks:
                break
            bi, sparse = touch_block(s, reaches, labels, item, ni, hit, d, t, timed)
            is_node_sparse |= sparse
        ni, sparse = finish_node(s, item, ni, is_node_sparse)
        is_root_sparse |= sparse
        node, blocks, kn = node_of(s, item, ni - 1)
        if s.head[OPEN] != NOTHING and blocks:
            # Blocks may have been joined; if none is left, the open record is in an earlier node, and unmoved.
            s.head[AT], count, s.head[CLASS] = child_of(s, node, kn, blocks - 1)
            s.head[PLACE] = count - 1
    if is_root_sparse and nodes > 1:
        finish_root(s, item)


@kernel
def room_for(s: Pointers, item: Int, d: Float, t: Int, timed: bool) -> tuple[Int, Int, Int]:
    """How many records, list entries and boxes a move may take; a rough limit is enough for an item with few blocks."""
    root, nodes, kr = root_of(s, item)
    lists = (nodes + 2) * 4 * NODE_MAX
    records = boxes = 1
    if nodes <= FEW_NODES:
        for ni in range(nodes):
            blocks = child_of(s, root, kr, ni)[1]
            records += blocks * BLOCK_ROOM
            boxes += blocks * BLOCK_MAX
        return records, lists, boxes
    ni = next_hit(s, root, kr, ZERO, nodes, d, t, timed)
    while ni < nodes:
        node, blocks, k = child_of(s, root, kr, ni)
        records += JOIN_ROOM
        bi = next_hit(s, node, k, ZERO, blocks, d, t, timed)
        while bi < blocks:
            offset, size, kb = child_of(s, node, k, bi)
            wide = 0
            for i in range(size):
                wide += s.m[offset + (N << kb) + i] == 0
            # Parts are never cut, so a block of parts needs no more room than it has.
            records += BLOCK_ROOM if wide else 0
            boxes += size
            bi = next_hit(s, node, k, bi + 1, blocks, d, t, timed)
        ni = next_hit(s, root, kr, ni + 1, nodes, d, t, timed)
    return records, lists, boxes


@kernel
def move(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    moved: I64,
    to_values: F64,
    to_times: I64,
    starts: I64,
    boxes_f: F64,
    boxes_i: I64,
    at: Int,
) -> Int:
    """Make the moves from place `at` on; DONE, NEEDS_ROOM or BAD_ITEM.

    The boxes of move i are put to the places starts[i]:starts[i + 1] of boxes_f (reaches) and boxes_i (labels).
    """
    s = pointers(head, items, values, audiences, m, f)
    reaches, labels = pointer(boxes_f), pointer(boxes_i)
    timed = head[PATIENCE] > 0
    if at == 0:
        head[BOXES] = 0
        for i in range(moved.shape[0]):
            if not 0 <= moved[i] < head[ITEM_TOP] or items[moved[i], ITEM_AUDIENCE] < 0:
                head[PROGRESS] = i
                return BAD_ITEM
    for i in range(at, moved.shape[0]):
        item, d, t = moved[i], to_values[i], to_times[i]
        records, lists, boxes = room_for(s, item, d, t, timed)
        head[BOXES_WANTED] = boxes
        if not has_room(s, records + 1, lists + 2, ZERO, ZERO) or head[BOXES] + boxes > boxes_f.shape[0]:
            head[PROGRESS] = i
            return NEEDS_ROOM
        was_void, is_void = np.isnan(values[item]), np.isnan(d)
        values[item] = d
        items[item, TIME] = t
        if audiences[items[item, ITEM_AUDIENCE], TOTAL]:
            if was_void or is_void:
                if not (was_void and is_void):
                    put_box(s, reaches, labels, -np.inf, np.inf, LABEL_MIN, LABEL_MAX)
                if was_void and not is_void:
                    lo, hi = extremes(s, items[item, ITEM_AUDIENCE])
                    start_runs(s, item, lo, hi)
                elif is_void:
                    free_runs(s, item)
            else:
                touch_item(s, reaches, labels, item, d, t, timed)
        starts[i + 1] = head[BOXES]
    return DONE
