"""Which points lie in a union of boxes: one walk down a tree for all boxes of a query together.

Every node on the stack carries the list of boxes that still matter there, each with the bit set of dimensions still to
be tested; a dimension is dropped once the node's bounds lie inside the box. A box that misses the bounds leaves the
list, and a node without boxes is not visited. A box without dimensions left holds everything below, untested. As each
leaf is visited once, no point is reported twice however the boxes overlap. The lists form a stack too:

    stack     (node, list start, list size)            lists    box:  ..., 3, 5, | 3, | 3, 5     (parent | right | left)
                                                                open: ..., 7, 4, | 1, | 3, 0
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.forest_arrays import CHUNK, COUNT, I32, I64, IS_LEAF, LEFT, RIGHT, ROOT, U8, Int
from tidings.kernels.forest_leaf import report_all, report_one, report_union
from tidings.kernels.jit import kernel


@kernel
def new_stack(dims: Int, box_starts: I64) -> tuple[I64, I64, I64]:
    """A stack and lists that no walk outgrows: heights are limited (see forest_insert), and so are lists per level."""
    boxes = 1
    for query in range(box_starts.shape[0] - 1):
        boxes = max(boxes, box_starts[query + 1] - box_starts[query])
    height = 4 * dims + 256
    lists = (2 * height + 1) * boxes
    return np.empty((height, 3), np.int64), np.empty(lists, np.int64), np.empty(lists, np.int64)


@kernel
def extended(array: NDArray[Any], used: Int, size: Int) -> NDArray[Any]:
    """A longer copy; memory beyond `used` is not touched, so a generous size costs nothing."""
    longer = np.empty(size, array.dtype)
    longer[:used] = array[:used]
    return longer


@kernel
def narrow(bounds: I64, node: Int, box_lo: I64, box_hi: I64, box: Int, mask: Int) -> Int:
    """The dimensions of `mask` in which a node's bounds reach out of a box; -1 if they do not meet."""
    for d in range(bounds.shape[2]):
        if (mask >> d) & 1:
            lo = bounds[node, 0, d]
            hi = bounds[node, 1, d]
            if lo > box_hi[box, d] or hi < box_lo[box, d]:
                return -1
            if lo >= box_lo[box, d] and hi <= box_hi[box, d]:
                mask &= ~(1 << d)
    return mask


@kernel
def open_boxes(
    bounds: I64, root: Int, box_lo: I64, box_hi: I64, start: Int, end: Int, list_box: I64, list_mask: I64
) -> Int:
    """Start the lists with the boxes start:end that meet the root; returns how many."""
    size = 0
    dims = bounds.shape[2]
    for box in range(start, end):
        mask = narrow(bounds, root, box_lo, box_hi, box, (1 << dims) - 1)
        for d in range(dims):
            if box_lo[box, d] > box_hi[box, d]:
                mask = -1
        if mask >= 0:
            list_box[size] = box
            list_mask[size] = mask
            size += 1
    return size


@kernel(inline="always")
def push_children(
    nodes: I32,
    bounds: I64,
    box_lo: I64,
    box_hi: I64,
    node: Int,
    start: Int,
    end: Int,
    list_box: I64,
    list_mask: I64,
    stack: I64,
    depth: Int,
) -> Int:
    """Push those children of a node that meet a box of its list start:end, which is on top; returns the new depth."""
    top = end
    for side in (RIGHT, LEFT):
        child = np.int64(nodes[node, side])
        first = top
        for i in range(start, end):
            mask = narrow(bounds, child, box_lo, box_hi, list_box[i], list_mask[i])
            if mask >= 0:
                list_box[top] = list_box[i]
                list_mask[top] = mask
                top += 1
        if top > first:
            stack[depth, 0] = child
            stack[depth, 1] = first
            stack[depth, 2] = top - first
            depth += 1
    return depth


@kernel
def walk(
    channels: I32,
    nodes: I32,
    bounds: I64,
    pool: I64,
    pool_slot: I32,
    order: I64,
    at: Int,
    query_channels: I64,
    box_lo: I64,
    box_hi: I64,
    box_tags: U8,
    box_starts: I64,
    stack: I64,
    list_box: I64,
    list_mask: I64,
    sizes: I64,
    slots: I32,
    tags: U8,
    size: Int,
) -> tuple[Int, Int]:
    """Answer the queries order[at:] as far as there is room for the answers; returns where to go on, and the size."""
    misses = np.empty(CHUNK, np.int64)
    marks = np.empty(CHUNK, np.int64)
    while at < order.shape[0]:
        query = order[at]
        channel = query_channels[query]
        root = np.int64(channels[channel, ROOT]) if 0 <= channel < channels.shape[0] else np.int64(-1)
        first = size
        depth = 0
        if root >= 0:
            if size + nodes[root, COUNT] + CHUNK > slots.shape[0]:
                break
            stack[0, 0] = root
            stack[0, 1] = 0
            stack[0, 2] = open_boxes(
                bounds, root, box_lo, box_hi, box_starts[query], box_starts[query + 1], list_box, list_mask
            )
            depth = 1 if stack[0, 2] else 0
        while depth:
            depth -= 1
            node, start, end = stack[depth, 0], stack[depth, 1], stack[depth, 1] + stack[depth, 2]
            if nodes[node, LEFT] != IS_LEAF:
                depth = push_children(
                    nodes, bounds, box_lo, box_hi, node, start, end, list_box, list_mask, stack, depth
                )
            elif end > start + 1:
                size = report_union(
                    nodes,
                    pool,
                    pool_slot,
                    node,
                    box_lo,
                    box_hi,
                    box_tags,
                    list_box,
                    list_mask,
                    start,
                    end,
                    misses,
                    marks,
                    slots,
                    tags,
                    size,
                )
            elif list_mask[start] == 0:
                size = report_all(nodes, pool_slot, node, box_tags[list_box[start]], slots, tags, size)
            else:
                box, mask = list_box[start], list_mask[start]
                tag = box_tags[box]
                size = report_one(
                    nodes, pool, pool_slot, node, box_lo, box_hi, box, mask, tag, misses, slots, tags, size
                )
        sizes[query] = size - first
        at += 1
    return at, size


@kernel
def stab(
    channels: I32,
    nodes: I32,
    bounds: I64,
    pool: I64,
    pool_slot: I32,
    order: I64,
    query_channels: I64,
    box_lo: I64,
    box_hi: I64,
    box_tags: U8,
    box_starts: I64,
) -> tuple[I64, I32, U8]:
    """Answer the queries in the given order; returns sizes int64[q] by query, and slots and tags in that order."""
    sizes = np.zeros(query_channels.shape[0], np.int64)
    slots = np.empty(4096, np.int32)
    tags = np.empty(4096, np.uint8)
    stack, list_box, list_mask = new_stack(bounds.shape[2], box_starts)
    size = 0
    at = 0
    while True:
        at, size = walk(
            channels,
            nodes,
            bounds,
            pool,
            pool_slot,
            order,
            at,
            query_channels,
            box_lo,
            box_hi,
            box_tags,
            box_starts,
            stack,
            list_box,
            list_mask,
            sizes,
            slots,
            tags,
            size,
        )
        if at == order.shape[0]:
            return sizes, slots[:size], tags[:size]
        room = 2 * (size + nodes[channels[query_channels[order[at]], ROOT], COUNT] + CHUNK)
        slots = extended(slots, size, room)
        tags = extended(tags, size, room)


@kernel
def reorder(order: I64, sizes: I64, slots: I32, tags: U8) -> tuple[I64, I32, U8]:
    """Answers in the order of the queries, from answers in the given order; returns starts, slots and tags."""
    starts = np.zeros(sizes.shape[0] + 1, np.int64)
    for query in range(sizes.shape[0]):
        starts[query + 1] = starts[query] + sizes[query]
    out_slots = np.empty(slots.shape[0], np.int32)
    out_tags = np.empty(slots.shape[0], np.uint8)
    at = 0
    for query in order:
        begin, end = starts[query], starts[query + 1]
        out_slots[begin:end] = slots[at : at + end - begin]
        out_tags[begin:end] = tags[at : at + end - begin]
        at += end - begin
    return starts, out_slots, out_tags
