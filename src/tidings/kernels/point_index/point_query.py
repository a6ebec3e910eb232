"""Which points lie in a union of boxes: one walk down a tree for all boxes of a query together.

Every node on the stack carries the list of boxes that still matter there, each with the bit set of dimensions still to be
tested; a dimension is dropped once the node's bounds lie inside the box. A box that misses the bounds leaves the list, and a
node without boxes is not visited. A box without dimensions left holds everything below, untested. As each leaf is visited
once, no point is reported twice however the boxes overlap. The lists form a stack too:

    stack     (node, list start, list size)            lists    box:  ..., 3, 5, | 3, | 3, 5     (parent | right | left)
                                                                open: ..., 7, 4, | 1, | 3, 0

The points of a leaf are tested by chunks, one dimension after the other. The loops over a chunk have a fixed length and no
branches, so that they become a few vector instructions; they may read past the leaf's last point, and what they find there
is ignored. Functions for one leaf run some ten times a query: they call nothing and leave nothing early, as otherwise numba
would count references to every array at every call.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import I32, I64, U8, ZERO, Int
from tidings.kernels.jit import kernel
from tidings.kernels.point_index.point_layout import CAPACITY, CHUNK, COUNT, IS_LEAF, LEFT, OFFSET, RIGHT, ROOT

HIT = 256
"""Set beside the tag bits of a point that is in some box: tags may be 0."""


# --- One leaf ---


@kernel(inline="always")
def test_chunk(pool: I64, at: Int, stride: Int, box_lo: I64, box_hi: I64, box: Int, mask: Int, misses: I64) -> None:
    """Set misses[i], for the CHUNK points from pool[at] on, to 0 if point i is in the box and to 1 if not."""
    for i in range(CHUNK):
        misses[i] = 0
    for d in range(box_lo.shape[1]):
        if (mask >> d) & 1:
            lo = box_lo[box, d]
            hi = box_hi[box, d]
            # Unsigned, because the check for an index from the end would keep the loop from being vectorised.
            column = np.uint64(at + d * stride)
            for i in range(CHUNK):
                x = pool[column + np.uint64(i)]
                misses[i] |= (x < lo) | (x > hi)


@kernel
def report_all(nodes: I32, pool_slot: I32, leaf: Int, tag: Int, slots: I32, tags: U8, size: Int) -> Int:
    """Append all points of a leaf; returns the new size."""
    source = np.uint64(nodes[leaf, OFFSET])
    target = np.uint64(size)
    count: Int = np.int64(nodes[leaf, COUNT])
    for i in range(count):
        slots[target + np.uint64(i)] = pool_slot[source + np.uint64(i)]
        tags[target + np.uint64(i)] = tag
    return size + count


@kernel
def report_one(
    nodes: I32,
    pool: I64,
    pool_slot: I32,
    leaf: Int,
    box_lo: I64,
    box_hi: I64,
    box: Int,
    mask: Int,
    tag: Int,
    misses: I64,
    slots: I32,
    tags: U8,
    size: Int,
) -> Int:
    """Append the leaf's points in the one box that matters there; returns the new size."""
    offset = np.int64(nodes[leaf, OFFSET])
    count: Int = np.int64(nodes[leaf, COUNT])
    stride = np.int64(nodes[leaf, CAPACITY])
    for at in range(0, count, CHUNK):
        test_chunk(pool, offset * box_lo.shape[1] + at, stride, box_lo, box_hi, box, mask, misses)
        source = np.uint64(offset + at)
        for i in range(min(CHUNK, count - at)):
            slots[np.uint64(size)] = pool_slot[source + np.uint64(i)]
            tags[np.uint64(size)] = tag
            size += 1 - misses[i]
    return size


@kernel
def report_union(
    nodes: I32,
    pool: I64,
    pool_slot: I32,
    leaf: Int,
    box_lo: I64,
    box_hi: I64,
    box_tags: U8,
    list_box: I64,
    list_mask: I64,
    start: Int,
    end: Int,
    misses: I64,
    marks: I64,
    slots: I32,
    tags: U8,
    size: Int,
) -> Int:
    """Append the leaf's points in any of the boxes listed in start:end, tags joined; returns the new size."""
    offset = np.int64(nodes[leaf, OFFSET])
    count: Int = np.int64(nodes[leaf, COUNT])
    stride = np.int64(nodes[leaf, CAPACITY])
    always = 0
    for b in range(start, end):
        if list_mask[b] == 0:
            always |= box_tags[list_box[b]] | HIT
    for at in range(0, count, CHUNK):
        for i in range(CHUNK):
            marks[i] = always
        for b in range(start, end):
            if list_mask[b]:
                base = offset * box_lo.shape[1] + at
                test_chunk(pool, base, stride, box_lo, box_hi, list_box[b], list_mask[b], misses)
                tag = np.int64(box_tags[list_box[b]]) | HIT
                for i in range(CHUNK):
                    marks[i] |= tag & (misses[i] - 1)
        source = np.uint64(offset + at)
        for i in range(min(CHUNK, count - at)):
            slots[np.uint64(size)] = pool_slot[source + np.uint64(i)]
            tags[np.uint64(size)] = marks[i] & (HIT - 1)
            size += marks[i] >> 8
    return size


@kernel
def count_leaf(
    nodes: I32,
    pool: I64,
    leaf: Int,
    box_lo: I64,
    box_hi: I64,
    list_box: I64,
    list_mask: I64,
    start: Int,
    end: Int,
    misses: I64,
    outside: I64,
) -> Int:
    """Number of a leaf's points in any of the boxes listed in start:end."""
    offset = np.int64(nodes[leaf, OFFSET])
    count: Int = np.int64(nodes[leaf, COUNT])
    stride = np.int64(nodes[leaf, CAPACITY])
    found = count
    for at in range(0, count, CHUNK):
        for i in range(CHUNK):
            outside[i] = 1
        for b in range(start, end):
            base = offset * box_lo.shape[1] + at
            test_chunk(pool, base, stride, box_lo, box_hi, list_box[b], list_mask[b], misses)
            for i in range(CHUNK):
                outside[i] &= misses[i]
        for i in range(min(CHUNK, count - at)):
            found -= outside[i]
    return found


# --- The walk ---


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
    size = at = ZERO
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
        # Memory beyond `size` is not touched, so a generous size costs nothing.
        more_slots, more_tags = np.empty(room, np.int32), np.empty(room, np.uint8)
        for i in range(size):
            more_slots[i], more_tags[i] = slots[i], tags[i]
        slots, tags = more_slots, more_tags


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
        for i in range(end - begin):
            out_slots[begin + i], out_tags[begin + i] = slots[at + i], tags[at + i]
        at += end - begin
    return starts, out_slots, out_tags


@kernel
def count(
    channels: I32,
    nodes: I32,
    bounds: I64,
    pool: I64,
    order: I64,
    query_channels: I64,
    box_lo: I64,
    box_hi: I64,
    box_starts: I64,
) -> I64:
    """Number of points per query, int64[q]; the queries are worked on in the given order."""
    counts = np.zeros(query_channels.shape[0], np.int64)
    stack, list_box, list_mask = new_stack(bounds.shape[2], box_starts)
    misses = np.empty(CHUNK, np.int64)
    outside = np.empty(CHUNK, np.int64)
    for query in order:
        channel = query_channels[query]
        if not 0 <= channel < channels.shape[0] or channels[channel, ROOT] < 0:
            continue
        root = np.int64(channels[channel, ROOT])
        begin, end = box_starts[query], box_starts[query + 1]
        stack[0, 0], stack[0, 1] = root, 0
        stack[0, 2] = open_boxes(bounds, root, box_lo, box_hi, begin, end, list_box, list_mask)
        depth = 1 if stack[0, 2] else 0
        found = 0
        while depth:
            depth -= 1
            node, start, end = stack[depth, 0], stack[depth, 1], stack[depth, 1] + stack[depth, 2]
            inside = False
            for i in range(start, end):
                inside |= list_mask[i] == 0
            if inside:
                found += nodes[node, COUNT]
            elif nodes[node, LEFT] == IS_LEAF:
                found += count_leaf(nodes, pool, node, box_lo, box_hi, list_box, list_mask, start, end, misses, outside)
            else:
                depth = push_children(
                    nodes, bounds, box_lo, box_hi, node, start, end, list_box, list_mask, stack, depth
                )
        counts[query] = found
    return counts


@kernel
def some_inside(
    channels: I32,
    nodes: I32,
    bounds: I64,
    pool: I64,
    pool_slot: I32,
    query_channels: I64,
    box_lo: I64,
    box_hi: I64,
    most: Int,
) -> tuple[I64, I32]:
    """(how many points, int64[q]; which, int32[q, most]) for one box a query; more than `most` count as one more."""
    counts = np.zeros(query_channels.shape[0], np.int64)
    slots = np.empty((query_channels.shape[0], most), np.int32)
    everything = (1 << bounds.shape[2]) - 1
    stack, _, _ = new_stack(bounds.shape[2], np.zeros(1, np.int64))
    misses = np.empty(CHUNK, np.int64)
    for query in range(query_channels.shape[0]):
        channel = query_channels[query]
        is_empty = not 0 <= channel < channels.shape[0] or channels[channel, ROOT] < 0
        for d in range(box_lo.shape[1]):
            is_empty |= box_lo[query, d] > box_hi[query, d]
        if is_empty:
            continue
        root = np.int64(channels[channel, ROOT])
        mask = narrow(bounds, root, box_lo, box_hi, query, everything)
        stack[0, 0], stack[0, 1] = root, mask
        depth = 1 if mask >= 0 else 0
        size = 0
        while depth and size <= most:
            depth -= 1
            node, mask = stack[depth, 0], stack[depth, 1]
            if most == 0 and mask == 0:
                # No node is without points, and nobody asks which.
                size = 1
                break
            if nodes[node, LEFT] != IS_LEAF:
                for side in (RIGHT, LEFT):
                    child = np.int64(nodes[node, side])
                    child_mask = narrow(bounds, child, box_lo, box_hi, query, mask)
                    if child_mask >= 0:
                        stack[depth, 0], stack[depth, 1] = child, child_mask
                        depth += 1
                continue
            offset = np.int64(nodes[node, OFFSET])
            count: Int = np.int64(nodes[node, COUNT])
            stride = np.int64(nodes[node, CAPACITY])
            for at in range(0, count, CHUNK):
                test_chunk(pool, offset * box_lo.shape[1] + at, stride, box_lo, box_hi, query, mask, misses)
                for i in range(min(CHUNK, count - at)):
                    if misses[i] == 0:
                        if size < most:
                            slots[query, size] = pool_slot[offset + at + i]
                        size += 1
        counts[query] = min(size, most + 1)
    return counts, slots
