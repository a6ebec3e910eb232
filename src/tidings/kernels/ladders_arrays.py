"""The flat arrays that ladders live in: one pool of extents, and how a ladder finds room in it.

A short ladder is one extent, sorted by (code, entry). A tall one is blocks of up to BLOCK pairs, and its own extent is the
directory of these:

    short   codes   [c0 c1 c2 ..]               tall   codes   [c0 c1 c2 .. | offset0 offset1 offset2 ..]
            entries [e0 e1 e2 ..]                      entries [e0 e1 e2 .. | size0   size1   size2   ..]

The pair (c, e) of a block stands after none of its pairs, and after all of the block before; that of the first block means
nothing. No block is empty. Extents have ROOM_MIN << k words; freed ones are chained through `entries`, and one too large
for a request is halved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel

I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

CODE_MIN = np.iinfo(np.int64).min
CODE_MAX = np.iinfo(np.int64).max

# Fields of a row of `ladders`: extent and its words, pairs in all, blocks (0: the ladder is short).
OFFSET, ROOM, SIZE, HEIGHT, LADDER_FIELDS = range(5)

ROOM_MIN = 8
BLOCK = 256
"""Most pairs of a short ladder or of a block."""
BLOCK_LOW = BLOCK // 4
"""A block with fewer is joined with a neighbour, if they have at most BLOCK_JOINED together."""
BLOCK_JOINED = 3 * BLOCK // 4
CLASSES = 36

# Fields of `head`; the last is the first of the free lists, one a size of extents.
LADDERS, TOP, FREE, PROGRESS, NEEDED, FREE_LISTS = range(6)
HEAD_FIELDS = FREE_LISTS + CLASSES

# What `change` reports; where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, MISFIT = range(3)


@kernel
def class_of(room: Int) -> Int:
    """The k of an extent of ROOM_MIN << k words."""
    k = 0
    while ROOM_MIN << k < room:
        k += 1
    return k


@kernel
def extent_free(head: I64, entries: I64, offset: Int, room: Int) -> None:
    """Give back an extent."""
    k = class_of(room)
    entries[offset] = head[FREE_LISTS + k]
    head[FREE_LISTS + k] = offset
    head[FREE] += room


@kernel
def extent_new(head: I64, entries: I64, room: Int) -> Int:
    """Offset of an extent; there must be room for it at the top."""
    k = class_of(room)
    larger = k
    while larger < CLASSES and head[FREE_LISTS + larger] < 0:
        larger += 1
    if larger == CLASSES:
        offset = head[TOP]
        head[TOP] += room
        return offset
    offset = head[FREE_LISTS + larger]
    head[FREE_LISTS + larger] = entries[offset]
    head[FREE] -= ROOM_MIN << larger
    while larger > k:
        larger -= 1
        extent_free(head, entries, offset + (ROOM_MIN << larger), ROOM_MIN << larger)
    return offset


@kernel
def copy_pairs(codes: I64, entries: I64, source: Int, target: Int, count: Int) -> None:
    """Copy pairs to words that are not among those they are read from."""
    for i in range(count):
        codes[target + i] = codes[source + i]
        entries[target + i] = entries[source + i]


@kernel
def resize_short(head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int, room: Int) -> None:
    """Move a short ladder into an extent of so many words, or into none if these are 0."""
    old, old_room = ladders[ladder, OFFSET], ladders[ladder, ROOM]
    if room:
        offset = extent_new(head, entries, room)
        copy_pairs(codes, entries, old, offset, ladders[ladder, SIZE])
        ladders[ladder, OFFSET] = offset
    ladders[ladder, ROOM] = room
    if old_room:
        extent_free(head, entries, old, old_room)


@kernel(inline="always")
def shift_up(words: I64, first: Int, stop: Int) -> None:
    """Move the words from `first` to `stop` one further."""
    # Unsigned, because the check for an index from the end would keep the loop from being vectorised.
    base = np.uint64(first)
    for i in range(stop - first, 0, -1):
        words[base + np.uint64(i)] = words[base + np.uint64(i - 1)]


@kernel(inline="always")
def shift_down(words: I64, first: Int, stop: Int) -> None:
    """Move the words from `first` + 1 to `stop` one back."""
    base = np.uint64(first)
    for i in range(stop - first - 1):
        words[base + np.uint64(i)] = words[base + np.uint64(i + 1)]


@kernel(inline="always")
def block_of(ladders: I64, codes: I64, entries: I64, ladder: Int, block: Int) -> tuple[Int, Int]:
    """(offset, size) of a block; a short ladder is its own only block."""
    if ladders[ladder, HEIGHT] == 0:
        return ladders[ladder, OFFSET], ladders[ladder, SIZE]
    at = ladders[ladder, OFFSET] + ladders[ladder, ROOM] // 2 + block
    return codes[at], entries[at]
