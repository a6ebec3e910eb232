"""How many points lie in a union of boxes, by the same walk as forest_query; subtrees inside a box are not visited."""

from __future__ import annotations

import numpy as np

from tidings.kernels.forest_arrays import CAPACITY, CHUNK, COUNT, I32, I64, IS_LEAF, LEFT, OFFSET, ROOT, Int
from tidings.kernels.forest_leaf import test_chunk
from tidings.kernels.forest_query import new_stack, open_boxes, push_children
from tidings.kernels.jit import kernel


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
