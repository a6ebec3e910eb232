"""Buddy system (Knowlton 1965): extents with room for a power of two of entries, with free lists by size and width.

An extent of class k has room for 1 << k entries of `width` words each, laid out field after field:

    extent at `offset`, class 2, width 3:   [a0 a1 a2 a3 | b0 b1 b2 b3 | c0 c1 c2 c3]

Its owner keeps an array `head` whose first fields are TOP, CAPACITY and WANTED of `tidings.kernels.extents`. For extents of
each width, head[free : free + CLASSES] has the first free extent of each class, or -1; the first word of a free extent is
the next one. One that is too large is halved until it fits; halves are not joined again.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.arrays import Int
from tidings.kernels.extents import CAPACITY, TOP, class_for, copy_span
from tidings.kernels.jit import kernel

EXTENT_FIELDS = 3
"""Fields of `head` before the free lists."""
CLASSES = 32


@kernel
def extent_free(m: Any, head: Any, free: Int, offset: Int, k: Int) -> None:
    """Gives back an extent of class k."""
    m[offset] = head[free + k]
    head[free + k] = offset


@kernel
def extent_new(m: Any, head: Any, free: Int, width: Int, k: Int) -> Int:
    """Offset of an extent of class k. The caller has made sure that there is room."""
    for larger in range(k, CLASSES):
        offset = head[free + larger]
        if offset >= 0:
            head[free + larger] = m[offset]
            while larger > k:
                larger -= 1
                extent_free(m, head, free, offset + (width << larger), larger)
            return offset
    offset = head[TOP]
    head[TOP] = offset + (width << k)
    if head[TOP] > head[CAPACITY]:
        raise MemoryError
    return offset


@kernel
def extent_fit(
    m: Any, head: Any, free: Int, width: Int, offset: Int, k: Int, size: Int, wanted: Int
) -> tuple[Int, Int]:
    """(offset, class) of an extent with the given one's entries and room for `wanted`, but not for four times as many."""
    if wanted > (1 << k) or (wanted << 2) <= (1 << k):
        fitting = class_for(wanted)
        moved = extent_new(m, head, free, width, fitting)
        copy_span(m, width, offset, k, 0, moved, fitting, 0, min(size, wanted))
        extent_free(m, head, free, offset, k)
        return moved, fitting
    return offset, k
