"""Extents: room for a power of two of entries in one memory of words, with free lists by size (buddy system, Knowlton 1965).

An extent of class k has room for 1 << k entries of `width` words each, laid out field after field:

    extent at `offset`, class 2, width 3:   [a0 a1 a2 a3 | b0 b1 b2 b3 | c0 c1 c2 c3]

Its owner keeps an array `head` whose first fields are TOP (words given out so far), CAPACITY (words there are) and WANTED
(words that a kernel has asked the owner for). For extents of each width, head[free : free + CLASSES] has the first free
extent of each class, or -1; the first word of a free extent is the next one. One that is too large is halved until it fits.
All functions take pointers to the memory `m` and to `head`.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.intrinsics import move_words
from tidings.kernels.jit import kernel

Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

TOP, CAPACITY, WANTED, EXTENT_FIELDS = range(4)
"""First fields of `head`."""
CLASSES = 32
MANY_WORDS = 8
"""So many words are not moved one by one."""


@kernel
def class_for(size: Int) -> Int:
    """The smallest class with room for so many entries."""
    k = 0
    while (1 << k) < size:
        k += 1
    return k


@kernel
def has_room(head: Any, words: Int) -> bool:
    """Whether so many words are left behind TOP; if not, WANTED says how many are wanted."""
    head[WANTED] = words
    return bool(head[TOP] + words <= head[CAPACITY])


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
def copy_span(m: Any, width: Int, a: Int, ka: Int, i: Int, b: Int, kb: Int, j: Int, n: Int) -> None:
    """Copies n entries from place i of extent a (class ka) to place j of extent b (class kb); they may overlap."""
    if n <= 0:
        return
    for field in range(width):
        source, target = a + (field << ka) + i, b + (field << kb) + j
        if n >= MANY_WORDS:
            move_words(m, target, source, n)
        elif source < target:
            for x in range(n - 1, -1, -1):
                m[target + x] = m[source + x]
        else:
            for x in range(n):
                m[target + x] = m[source + x]


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
