"""Boxes made of columns: a column is joined with the box before if the bounds of both hold no other points of the crowd."""

from __future__ import annotations

from tidings.kernels.crowds_arrays import LISTED, CrowdPointers
from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BOXES,
    COLUMN_HI_MAX,
    COLUMN_HI_MIN,
    COLUMN_LO_MAX,
    COLUMN_LO_MIN,
    INT64_MAX,
    INT64_MIN,
    IS_JOINED,
    Int,
    Pointers,
)
from tidings.kernels.rankings_columns import columns_of
from tidings.kernels.rankings_far import is_free_far
from tidings.kernels.rankings_near import is_free_near
from tidings.kernels.rankings_stairs import OutputPointers, put_box, send


@kernel
def paint(
    c: CrowdPointers,
    out: OutputPointers,
    of: Int,
    first: Int,
    boxes: Int,
    lo_min: Int,
    lo_max: Int,
    hi_min: Int,
    hi_max: Int,
) -> Int:
    """Widen the last of the boxes from number `first` on by one on its left, or write that behind; how many there are."""
    if boxes > first:
        lo2_min, lo2_max = out.lo[2 * boxes - 2], out.hi[2 * boxes - 2]
        hi2_min, hi2_max = out.lo[2 * boxes - 1], out.hi[2 * boxes - 1]
        if c.head[LISTED] >= 0:
            is_free = is_free_near(c, lo_min, lo_max, lo2_min, lo2_max, hi_min, hi_max, hi2_min, hi2_max)
        else:
            is_free = is_free_far(c, of, lo_min, lo_max, lo2_min, lo2_max, hi_min, hi_max, hi2_min, hi2_max)
        if is_free:
            put_box(out, boxes - 1, lo_min, lo2_max, min(hi_min, hi2_min), max(hi_max, hi2_max))
            return boxes
    put_box(out, boxes, lo_min, lo_max, hi_min, hi_max)
    return boxes + 1


@kernel
def send_columns(
    s: Pointers, c: CrowdPointers, out: OutputPointers, of: Int, start: Int, end: Int, entry: Int, is_gone: bool
) -> None:
    """Send an entry to the points of columns."""
    at, stride = columns_of(s)
    first = boxes = s.head[BOXES]
    lo_min, lo_max, hi_min, hi_max = INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN
    for a in range(start, end):
        if not s.work[at + IS_JOINED * stride + a] and lo_min <= lo_max:
            boxes = paint(c, out, of, first, boxes, lo_min, lo_max, hi_min, hi_max)
            lo_min, lo_max, hi_min, hi_max = INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN
        lo_min = min(lo_min, s.work[at + COLUMN_LO_MIN * stride + a])
        lo_max = max(lo_max, s.work[at + COLUMN_LO_MAX * stride + a])
        hi_min = min(hi_min, s.work[at + COLUMN_HI_MIN * stride + a])
        hi_max = max(hi_max, s.work[at + COLUMN_HI_MAX * stride + a])
    if lo_min <= lo_max:
        boxes = paint(c, out, of, first, boxes, lo_min, lo_max, hi_min, hi_max)
    send(s, out, entry, is_gone, boxes)
