"""Everything out of the arrays, as columns, and back."""

from __future__ import annotations

import numpy as np

from research.strategies.drift.kernels.threshold_index.change import link
from research.strategies.drift.kernels.threshold_index.layout import (
    AUDIENCE_FIELDS,
    AUDIENCE_SHAPE,
    BLOCK_MAX,
    COUNT,
    FIRST_ITEM,
    HI,
    ITEM_AUDIENCE,
    ITEM_FIELDS,
    ITEM_ROOT,
    ITEM_SHAPE,
    L1,
    L2,
    LABEL_HI,
    LABEL_LO,
    LIST_WIDTH,
    LO,
    NODE_MAX,
    REACH_WIDTH,
    REACHES_MAX,
    RECORD_WIDTH,
    T0,
    TOTAL,
    C,
    N,
    Pointers,
    list_new,
    pointers,
    reach_block_of,
    resize_root,
    set_block,
)
from research.strategies.drift.kernels.threshold_index.runs import child_of, enter, enter_node, node_of, set_record
from tidings.kernels.arrays import F64, I64, Int
from tidings.kernels.extents import class_for
from tidings.kernels.jit import kernel


@kernel
def dump_members(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    count: Int,
) -> tuple[I64, F64, I64]:
    """Of the first `count` audiences: starts, reaches and (count, lowest label, highest label) of their members."""
    s = pointers(head, items, values, audiences, m, f)
    starts = np.zeros(count + 1, np.int64)
    for audience in range(count):
        size = 0
        for b in range(audiences[audience, AUDIENCE_SHAPE] >> 8):
            size += reach_block_of(s, audience, b)[1]
        starts[audience + 1] = starts[audience] + size
    reaches = np.empty(starts[count])
    fields = np.empty((starts[count], 3), np.int64)
    at = 0
    for audience in range(count):
        for b in range(audiences[audience, AUDIENCE_SHAPE] >> 8):
            offset, size, k = reach_block_of(s, audience, b)
            for i in range(size):
                reaches[at] = f[offset + i]
                for field in (COUNT, LABEL_LO, LABEL_HI):
                    fields[at, field - COUNT] = m[offset + (field << k) + i]
                at += 1
    return starts, reaches, fields


@kernel
def dump_runs(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    first: Int,
    end: Int,
) -> tuple[I64, F64, I64]:
    """Of the items first:end: starts, (c, lo, hi) and (t0, l1, l2, n) of their runs."""
    s = pointers(head, items, values, audiences, m, f)
    starts = np.zeros(end - first + 1, np.int64)
    for item in range(first, end):
        size = 0
        for ni in range(items[item, ITEM_SHAPE] >> 8):
            node, blocks, k = node_of(s, item, ni)
            for bi in range(blocks):
                size += child_of(s, node, k, bi)[1]
        starts[item - first + 1] = starts[item - first] + size
    floats = np.empty((starts[end - first], 3))
    ints = np.empty((starts[end - first], 4), np.int64)
    at = 0
    for item in range(first, end):
        for ni in range(items[item, ITEM_SHAPE] >> 8):
            node, blocks, kn = node_of(s, item, ni)
            for bi in range(blocks):
                offset, size, k = child_of(s, node, kn, bi)
                for i in range(size):
                    for x, field in enumerate((C, LO, HI)):
                        floats[at, x] = f[offset + (field << k) + i]
                    for x, field in enumerate((T0, L1, L2, N)):
                        ints[at, x] = m[offset + (field << k) + i]
                    at += 1
    return starts, floats, ints


@kernel
def load_members(s: Pointers, audience: Int, reaches: F64, fields: I64, start: Int, end: Int) -> None:
    """Give an audience, which has none, the members start:end."""
    filled = REACHES_MAX * 3 // 4
    resize_root(s, audience, (end - start + filled - 1) // filled)
    total = 0
    for b in range(s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_SHAPE] >> 8):
        size = min(filled, end - start)
        k = class_for(size)
        offset = list_new(s, REACH_WIDTH, k)
        for i in range(size):
            s.f[offset + i] = reaches[start + i]
            for field in (COUNT, LABEL_LO, LABEL_HI):
                s.m[offset + (field << k) + i] = fields[start + i, field - COUNT]
            total += fields[start + i, 0]
        set_block(s, audience, b, offset, size, k)
        start += size
    s.audiences[audience * AUDIENCE_FIELDS + TOTAL] = total


@kernel
def load_runs(s: Pointers, item: Int, floats: F64, ints: I64, start: Int, end: Int) -> None:
    """Give an item, which has none, the runs start:end."""
    filled, width = BLOCK_MAX * 3 // 4, NODE_MAX * 3 // 4
    blocks_left = (end - start + filled - 1) // filled
    nodes = (blocks_left + width - 1) // width
    kr = class_for(nodes)
    s.items[item * ITEM_FIELDS + ITEM_ROOT] = list_new(s, LIST_WIDTH, kr)
    s.items[item * ITEM_FIELDS + ITEM_SHAPE] = nodes << 8 | kr
    for ni in range(nodes):
        blocks = min(width, blocks_left)
        kn = class_for(blocks)
        node = list_new(s, LIST_WIDTH, kn)
        for bi in range(blocks):
            size = min(filled, end - start)
            k = class_for(size)
            offset = list_new(s, RECORD_WIDTH, k)
            for i in range(size):
                c, lo, hi = floats[start + i]
                t0, l1, l2, n = ints[start + i]
                set_record(s, offset, k, i, c, t0, lo, hi, l1, l2, n)
            enter(s, node, kn, bi, offset, size, k)
            start += size
        enter_node(s, item, ni, node, blocks, kn)
        blocks_left -= blocks


@kernel
def load(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    member_starts: I64,
    reaches: F64,
    member_fields: I64,
    run_starts: I64,
    run_floats: F64,
    run_ints: I64,
) -> None:
    """Fill fresh arrays, with rows of audiences and items (audience, time, value) in place and enough room."""
    s = pointers(head, items, values, audiences, m, f)
    for audience in range(member_starts.shape[0] - 1):
        audiences[audience, FIRST_ITEM] = -1
        if member_starts[audience] < member_starts[audience + 1]:
            load_members(s, audience, reaches, member_fields, member_starts[audience], member_starts[audience + 1])
    for item in range(run_starts.shape[0] - 1):
        if items[item, ITEM_AUDIENCE] >= 0:
            link(s, item, items[item, ITEM_AUDIENCE])
            if run_starts[item] < run_starts[item + 1]:
                load_runs(s, item, run_floats, run_ints, run_starts[item], run_starts[item + 1])
