"""Whether any point lies in a box: a walk like that of forest_query for one box, which ends at the first point found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.forest_arrays import CAPACITY, CHUNK, COUNT, I32, I64, IS_LEAF, LEFT, OFFSET, RIGHT, ROOT, Int
from tidings.kernels.forest_leaf import test_chunk
from tidings.kernels.forest_query import narrow, new_stack
from tidings.kernels.jit import kernel


@kernel
def is_empty(box_lo: I64, box_hi: I64, box: Int) -> bool:
    """Whether a box has its ends the wrong way round somewhere."""
    wrong = False
    for d in range(box_lo.shape[1]):
        wrong |= box_lo[box, d] > box_hi[box, d]
    return wrong


@kernel
def any_in_leaf(nodes: I32, pool: I64, leaf: Int, box_lo: I64, box_hi: I64, box: Int, mask: Int, misses: I64) -> bool:
    """Whether any of a leaf's points lies in the box, of which only the dimensions of `mask` matter there."""
    offset = np.int64(nodes[leaf, OFFSET])
    count: Int = np.int64(nodes[leaf, COUNT])
    stride = np.int64(nodes[leaf, CAPACITY])
    outside = 1
    for at in range(0, count, CHUNK):
        test_chunk(pool, offset * box_lo.shape[1] + at, stride, box_lo, box_hi, box, mask, misses)
        for i in range(min(CHUNK, count - at)):
            outside &= misses[i]
        if not outside:
            break
    return outside == 0


@kernel
def any_inside(
    channels: I32,
    nodes: I32,
    bounds: I64,
    pool: I64,
    order: I64,
    query_channels: I64,
    box_lo: I64,
    box_hi: I64,
) -> NDArray[np.bool_]:
    """Whether there is a point, bool[q], for one box a query; the queries are worked on in the given order."""
    found = np.zeros(query_channels.shape[0], np.bool_)
    everything = (1 << bounds.shape[2]) - 1
    stack, _, _ = new_stack(bounds.shape[2], np.zeros(1, np.int64))
    misses = np.empty(CHUNK, np.int64)
    for query in order:
        channel = query_channels[query]
        if not 0 <= channel < channels.shape[0] or channels[channel, ROOT] < 0 or is_empty(box_lo, box_hi, query):
            continue
        root = np.int64(channels[channel, ROOT])
        mask = narrow(bounds, root, box_lo, box_hi, query, everything)
        stack[0, 0], stack[0, 1] = root, mask
        depth = 1 if mask > 0 else 0
        is_found = mask == 0
        while depth:
            depth -= 1
            node, mask = stack[depth, 0], stack[depth, 1]
            if nodes[node, LEFT] == IS_LEAF:
                is_found = any_in_leaf(nodes, pool, node, box_lo, box_hi, query, mask, misses)
            else:
                for side in (RIGHT, LEFT):
                    child = np.int64(nodes[node, side])
                    child_mask = narrow(bounds, child, box_lo, box_hi, query, mask)
                    # No node is without points: one that lies in the box is an answer.
                    is_found |= child_mask == 0
                    if child_mask > 0:
                        stack[depth, 0], stack[depth, 1] = child, child_mask
                        depth += 1
            if is_found:
                break
        found[query] = is_found
    return found
