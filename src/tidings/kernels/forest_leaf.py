"""Which points of one leaf lie in boxes: all points of a chunk at once, one dimension after the other.

The loops over a chunk have a fixed length and no branches, so that they become a few vector instructions; they may read
past the leaf's last point, and what they find there is ignored. These functions run some ten times a query: they call
nothing and leave nothing early, as otherwise numba would count references to every array at every call.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.forest_arrays import CAPACITY, CHUNK, COUNT, I32, I64, OFFSET, U8, Int
from tidings.kernels.jit import kernel

HIT = 256
"""Set beside the tag bits of a point that is in some box: tags may be 0."""


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
