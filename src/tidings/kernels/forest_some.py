"""A few of the points in a box: a walk like that of forest_any, which ends when there are too many."""

from __future__ import annotations

import numpy as np

from tidings.kernels.forest_any import is_empty
from tidings.kernels.forest_arrays import CAPACITY, CHUNK, COUNT, I32, I64, IS_LEAF, LEFT, OFFSET, RIGHT, ROOT, Int
from tidings.kernels.forest_leaf import test_chunk
from tidings.kernels.forest_query import narrow, new_stack
from tidings.kernels.jit import kernel


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
        if not 0 <= channel < channels.shape[0] or channels[channel, ROOT] < 0 or is_empty(box_lo, box_hi, query):
            continue
        root = np.int64(channels[channel, ROOT])
        mask = narrow(bounds, root, box_lo, box_hi, query, everything)
        stack[0, 0], stack[0, 1] = root, mask
        depth = 1 if mask >= 0 else 0
        size = 0
        while depth and size <= most:
            depth -= 1
            node, mask = stack[depth, 0], stack[depth, 1]
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
