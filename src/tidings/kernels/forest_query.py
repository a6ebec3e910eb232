"""Which points lie in a union of boxes: one walk down a tree for all boxes of a query together.

Every node on the stack carries the list of boxes that still matter there, each with the bit set of dimensions still to
be tested; a dimension is dropped once the node's bounds lie inside the box. A box that misses the bounds leaves the
list, and a node without boxes is not visited. A box without dimensions left holds everything below, untested. As each
leaf is visited once, no point is reported twice however the boxes overlap. The lists form a stack too:

    stack     (node, list start, list size)            lists    box:  ..., 3, 5, | 3, | 3, 5     (parent | right | left)
                                                                open: ..., 7, 4, | 1, | 3, 0
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tidings.kernels.forest_arrays import CAPACITY, CHUNK, COUNT, I32, I64, IS_LEAF, LEFT, OFFSET, RIGHT, ROOT, U8

HIT = 256
"""Set beside the tag bits of a point that is in some box: tags may be 0."""


@njit(cache=True)
def narrow(bounds: I64, node: int, box_lo: I64, box_hi: I64, box: int, mask: int) -> int:
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


@njit(cache=True)
def open_boxes(
    bounds: I64, root: int, box_lo: I64, box_hi: I64, start: int, end: int, list_box: I64, list_mask: I64
) -> int:
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


@njit(cache=True)
def push_children(
    nodes: I32,
    bounds: I64,
    box_lo: I64,
    box_hi: I64,
    node: int,
    start: int,
    size: int,
    list_box: I64,
    list_mask: I64,
    stack: I64,
    depth: int,
) -> int:
    """Push those children of a node that meet a box of its list, which is on top; returns the new depth."""
    top = start + size
    for side in (RIGHT, LEFT):
        child = np.int64(nodes[node, side])
        first = top
        for i in range(start, start + size):
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


@njit(cache=True)
def test_chunk(pool: I64, at: int, stride: int, box_lo: I64, box_hi: I64, box: int, mask: int, misses: I64) -> None:
    """Set misses[i], for the CHUNK points from pool[at] on, to 0 if point i is in the box and to 1 if not."""
    for i in range(CHUNK):
        misses[i] = 0
    for d in range(box_lo.shape[1]):
        if (mask >> d) & 1:
            lo = box_lo[box, d]
            hi = box_hi[box, d]
            column = pool[at + d * stride : at + d * stride + CHUNK]
            for i in range(CHUNK):
                misses[i] |= (column[i] < lo) | (column[i] > hi)


@njit(cache=True)
def report_one(
    nodes: I32,
    pool: I64,
    pool_slot: I32,
    leaf: int,
    box_lo: I64,
    box_hi: I64,
    box: int,
    mask: int,
    tag: int,
    misses: I64,
    slots: I32,
    tags: U8,
    size: int,
) -> int:
    """Append the leaf's points in the one box that matters there; returns the new size."""
    offset = np.int64(nodes[leaf, OFFSET])
    count = np.int64(nodes[leaf, COUNT])
    first = size
    if mask == 0:
        source = pool_slot[offset : offset + count]
        target = slots[size : size + count]
        for i in range(count):
            target[i] = source[i]
        size += count
    else:
        stride = np.int64(nodes[leaf, CAPACITY])
        for at in range(0, count, CHUNK):
            test_chunk(pool, offset * box_lo.shape[1] + at, stride, box_lo, box_hi, box, mask, misses)
            source = pool_slot[offset + at : offset + count]
            for i in range(min(CHUNK, count - at)):
                slots[size] = source[i]
                size += 1 - misses[i]
    tags[first:size] = tag
    return size


@njit(cache=True)
def report_union(
    nodes: I32,
    pool: I64,
    pool_slot: I32,
    leaf: int,
    box_lo: I64,
    box_hi: I64,
    box_tags: U8,
    list_box: I64,
    list_mask: I64,
    misses: I64,
    marks: I64,
    slots: I32,
    tags: U8,
    size: int,
) -> int:
    """Append the leaf's points in any of the listed boxes, tags joined; returns the new size."""
    offset = np.int64(nodes[leaf, OFFSET])
    count = np.int64(nodes[leaf, COUNT])
    stride = np.int64(nodes[leaf, CAPACITY])
    always = 0
    for b in range(list_box.shape[0]):
        if list_mask[b] == 0:
            always |= box_tags[list_box[b]] | HIT
    for at in range(0, count, CHUNK):
        for i in range(CHUNK):
            marks[i] = always
        for b in range(list_box.shape[0]):
            if list_mask[b]:
                base = offset * box_lo.shape[1] + at
                test_chunk(pool, base, stride, box_lo, box_hi, list_box[b], list_mask[b], misses)
                tag = np.int64(box_tags[list_box[b]]) | HIT
                for i in range(CHUNK):
                    marks[i] |= tag * (1 - misses[i])
        source = pool_slot[offset + at : offset + count]
        for i in range(min(CHUNK, count - at)):
            slots[size] = source[i]
            tags[size] = marks[i] & (HIT - 1)
            size += marks[i] >> 8
    return size


@njit(cache=True)
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
    slots = np.empty(1024, np.int32)
    tags = np.empty(1024, np.uint8)
    size = 0
    stack = np.empty((4 * bounds.shape[2] + 256, 3), np.int64)
    list_box = np.empty(1024, np.int64)
    list_mask = np.empty(1024, np.int64)
    misses = np.empty(CHUNK, np.int64)
    marks = np.empty(CHUNK, np.int64)
    for query in order:
        channel = query_channels[query]
        first = size
        depth = 0
        if 0 <= channel < channels.shape[0] and channels[channel, ROOT] >= 0:
            begin, end = box_starts[query], box_starts[query + 1]
            if end - begin > list_box.shape[0]:
                list_box = np.empty(end - begin, np.int64)
                list_mask = np.empty(end - begin, np.int64)
            root = np.int64(channels[channel, ROOT])
            opened = open_boxes(bounds, root, box_lo, box_hi, begin, end, list_box, list_mask)
            if opened:
                stack[0, 0], stack[0, 1], stack[0, 2] = root, 0, opened
                depth = 1
        while depth:
            depth -= 1
            node, start, length = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            if nodes[node, LEFT] != IS_LEAF:
                if start + 3 * length > list_box.shape[0]:
                    list_box = np.concatenate((list_box, np.empty_like(list_box), np.empty_like(list_box)))
                    list_mask = np.concatenate((list_mask, np.empty_like(list_mask), np.empty_like(list_mask)))
                depth = push_children(
                    nodes, bounds, box_lo, box_hi, node, start, length, list_box, list_mask, stack, depth
                )
                continue
            room = size + nodes[node, COUNT] + CHUNK
            if room > slots.shape[0]:
                grown_slots = np.empty(2 * room, np.int32)
                grown_slots[:size] = slots[:size]
                slots = grown_slots
                grown_tags = np.empty(2 * room, np.uint8)
                grown_tags[:size] = tags[:size]
                tags = grown_tags
            if length == 1:
                box, mask = list_box[start], list_mask[start]
                tag = box_tags[box]
                size = report_one(
                    nodes, pool, pool_slot, node, box_lo, box_hi, box, mask, tag, misses, slots, tags, size
                )
            else:
                boxes = list_box[start : start + length]
                masks = list_mask[start : start + length]
                size = report_union(
                    nodes, pool, pool_slot, node, box_lo, box_hi, box_tags, boxes, masks, misses, marks, slots, tags, size
                )
        sizes[query] = size - first
    return sizes, slots[:size], tags[:size]


@njit(cache=True)
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
