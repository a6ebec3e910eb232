"""Extents: runs of words in one memory, taken and given back by compiled code.

Freed extents are chained through their first word, one chain per size (segregated free lists). `take` and `give` leave the
choice of chains to the caller. `allocate` and `release` have sizes of their own, four per power of two; where a chain is
empty, an extent of twice the size, four times, .. is halved until it fits (a buddy system that does not join again).

A structure keeps the numbers of its allocator in the first EXTENT_FIELDS words of its `head`. No extent begins at word 0 of
the memory. Kernels do not ask for memory while they work: they compare with `has_room` beforehand what they may need at
most, stop where it is too little, and are called again once their owner has made the memory longer (`make_room`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.arrays import I64, Int, grow
from tidings.kernels.intrinsics import move_words
from tidings.kernels.jit import kernel

# Fields of `head`: the end of the memory in use, its length, words that a kernel lacked; then the chain of each size.
TOP, CAPACITY, WANTED, CHAINS = range(4)
SIZES = 160
EXTENT_FIELDS = CHAINS + SIZES
NOWHERE = 0
"""Ends a chain."""
MANY_WORDS = 8
"""So many words are not moved one by one."""


def new_head(fields: int, start: int, memory: I64) -> I64:
    """A `head` with room for so many fields in all, of a memory whose first extent may begin at `start`."""
    head = np.zeros(fields, np.int64)
    head[TOP], head[CAPACITY] = start, len(memory)
    return head


def make_room(memory: I64, head: I64) -> None:
    """Gives a memory the length that a kernel lacked."""
    grow(memory, int(head[TOP] + head[WANTED]))
    head[CAPACITY] = len(memory)


@kernel
def has_room(head: Any, words: Int) -> bool:
    """Whether extents of so many words in all can be taken, whatever is chained; else notes what is wanted."""
    head[WANTED] = words
    return bool(head[TOP] + words <= head[CAPACITY])


@kernel
def take(memory: Any, head: Any, chain: Int, words: Int) -> Int:
    """An extent of so many words: the first of a chain, or from the end of the memory in use."""
    at = head[CHAINS + chain]
    if at != NOWHERE:
        head[CHAINS + chain] = memory[at]
        return at
    at = head[TOP]
    head[TOP] = at + words
    if head[TOP] > head[CAPACITY]:
        raise MemoryError
    return at


@kernel
def give(memory: Any, head: Any, chain: Int, at: Int) -> None:
    """Gives an extent back to its chain."""
    memory[at] = head[CHAINS + chain]
    head[CHAINS + chain] = at


@kernel
def size_class(words: Int) -> Int:
    """The smallest size with room for so many words."""
    octave = 0
    while (words >> octave) >= 8:
        octave += 1
    return max(4 * octave + ((words + (1 << octave) - 1) >> octave) - 4, 0)


@kernel
def class_words(size: Int) -> Int:
    """Words of an extent of a size: 4, 5, 6, 7, 8, 10, 12, 14, 16, .."""
    return (4 + (size & 3)) << (size >> 2)


@kernel
def allocate(memory: Any, head: Any, words: Int) -> Int:
    """An extent of at least so many words; the caller has made sure that there is room."""
    size = size_class(words)
    for larger in range(size, SIZES, 4):
        at = head[CHAINS + larger]
        if at != NOWHERE:
            head[CHAINS + larger] = memory[at]
            while larger > size:
                larger -= 4
                give(memory, head, larger, at + class_words(larger))
            return at
    return take(memory, head, size, class_words(size))


@kernel
def release(memory: Any, head: Any, at: Int, words: Int) -> None:
    """Gives an extent back; `words` as they were asked for, or all that its size has."""
    give(memory, head, size_class(words), at)


# --- Extents with room for 2**k entries (class k), field after field: [a0 a1 a2 a3 | b0 b1 b2 b3 | ..] ---


@kernel
def class_for(size: Int) -> Int:
    """The smallest class with room for so many entries."""
    k = 0
    while (1 << k) < size:
        k += 1
    return k


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
