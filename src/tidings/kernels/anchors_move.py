"""Moves in batches: room is seen to before each, so that none stops halfway."""

from __future__ import annotations

import numpy as np

from tidings.kernels.anchors_arrays import (
    BAD_ITEM,
    BLOCK_MAX,
    BOXES,
    BOXES_WANTED,
    DONE,
    F64,
    I64,
    ITEM_AUDIENCE,
    ITEM_TOP,
    LABEL_MAX,
    LABEL_MIN,
    NEEDS_ROOM,
    NODE_MAX,
    PATIENCE,
    PROGRESS,
    TIME,
    TOTAL,
    Float,
    Int,
    N,
    Pointers,
    has_room,
    pointer,
    pointers,
)
from tidings.kernels.anchors_change import BLOCK_ROOM, JOIN_ROOM
from tidings.kernels.anchors_members import extremes
from tidings.kernels.anchors_runs import child_of, free_runs, root_of, start_runs
from tidings.kernels.anchors_touch import next_hit, put_box, touch_item
from tidings.kernels.jit import kernel

FEW_NODES = 8
"""An item with more nodes is looked at before it is moved, to see how much room that takes."""


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
    ni = next_hit(s, root, kr, 0, nodes, d, t, timed)
    while ni < nodes:
        node, blocks, k = child_of(s, root, kr, ni)
        records += JOIN_ROOM
        bi = next_hit(s, node, k, 0, blocks, d, t, timed)
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
        if not has_room(s, records + 1, lists + 2, 0, 0) or head[BOXES] + boxes > boxes_f.shape[0]:
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
