"""Touching: which members of an item a new value touches, and their new anchor.

A walk over the runs of an item enters the nodes and blocks whose aggregates are hit. Touched records that follow each
other become one: the last one written is *open*, and grows as long as what comes next is touched, too; it is then the
last record before the place of the walk, be it in the scratch extent or already in its block. The boxes reported grow
in the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.anchors_arrays import (
    AT,
    BOXES,
    CLASS,
    COUNT,
    DN,
    DUE,
    HI,
    ITEM_AUDIENCE,
    ITEM_FIELDS,
    KIND,
    KNOWN_REACH,
    L1,
    L2,
    LABEL_MAX,
    LABEL_MIN,
    LAST_COUNT,
    LO,
    OPEN,
    PLACE,
    RECORD_WIDTH,
    SCRATCH,
    SCRATCH_CLASS,
    T0,
    UP,
    WIDE_AT,
    WIDE_BEFORE,
    WIDE_CLASS,
    WIDE_PLACE,
    C,
    Float,
    Int,
    M,
    N,
    Pointers,
    copy_span,
    is_hit,
)
from tidings.kernels.anchors_change import finish_node, finish_root, rewrite
from tidings.kernels.anchors_members import last_hit, member_at
from tidings.kernels.anchors_runs import block_of, child_of, node_of, root_of, set_record, set_wide
from tidings.kernels.jit import kernel

NOTHING, WIDE, PART = 0, 1, 2


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
        place, stride = member_at(s, audience, reach)
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
    start = next_hit(s, offset, k, 0, size, d, t, timed)
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
def touch_node(
    s: Pointers, reaches: Any, labels: Any, item: Int, ni: Int, d: Float, t: Int, timed: bool
) -> tuple[Int, bool]:
    """Touch what is hit in a node that is hit. Returns what `finish_node` does."""
    bi = 0
    any_sparse = False
    while True:
        node, blocks, k = node_of(s, item, ni)
        hit = next_hit(s, node, k, bi, blocks, d, t, timed)
        if hit > bi:
            s.head[OPEN] = NOTHING
        if hit == blocks:
            break
        bi, sparse = touch_block(s, reaches, labels, item, ni, hit, d, t, timed)
        any_sparse |= sparse
    following, sparse = finish_node(s, item, ni, any_sparse)
    node, blocks, k = node_of(s, item, following - 1)
    if s.head[OPEN] != NOTHING and blocks:
        # Blocks may have been joined; if none is left, the open record is in an earlier node, and unmoved.
        s.head[AT], count, s.head[CLASS] = child_of(s, node, k, blocks - 1)
        s.head[PLACE] = count - 1
    return following, sparse


@kernel
def touch_item(s: Pointers, reaches: Any, labels: Any, item: Int, d: Float, t: Int, timed: bool) -> None:
    """Touch what is hit in an item."""
    s.head[OPEN] = NOTHING
    s.f[KNOWN_REACH] = np.nan
    ni = 0
    any_sparse = False
    while True:
        root, nodes, k = root_of(s, item)
        hit = next_hit(s, root, k, ni, nodes, d, t, timed)
        if hit > ni:
            s.head[OPEN] = NOTHING
        if hit == nodes:
            break
        ni, sparse = touch_node(s, reaches, labels, item, hit, d, t, timed)
        any_sparse |= sparse
    if any_sparse and nodes > 1:
        finish_root(s, item)
