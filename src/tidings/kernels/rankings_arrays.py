"""The flat arrays that rankings live in: what is in them, and the allocator of extents.

The entries of a set are kept in the order of their positions (x, tie), as lists of lists. Each list is an *extent* of
one memory, with room for a power of two of entries, field after field (as in `extents`):

    set -> LISTS (root) -> LISTS (nodes) -> BLOCKS
            [x, tie, y, tie of y, child, shape]   [x, tie, y, entry]

A list entry has the first position, and the lowest key (y, tie), of what is below it. A *place* is where an entry is
found: number of the node, of the block in the node, and in the block, as one number. Places compare like positions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.arrays import pointer
from tidings.kernels.extents import class_for, copy_span
from tidings.kernels.jit import kernel

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

INT64_MIN = np.iinfo(np.int64).min
INT64_MAX = np.iinfo(np.int64).max

BLOCK_MAX = 32
"""Most entries in a block."""
NODE_MAX = 64
"""Most blocks in a node."""

# Sorts of extents, and the numbers of fields of their entries.
BLOCKS, LISTS, SORTS = 0, 1, 2
BLOCK_WIDTH, LIST_WIDTH = 4, 6

# Fields of blocks and of lists; the first three are the same. The tie of the lowest key is TIE in a block, LOW_TIE in a list.
X, TIE, Y, ENTRY = range(4)
LOW_TIE, CHILD, SHAPE = 3, 4, 5

# A place is node << NODE_SHIFT | block << BLOCK_SHIFT | number in the block. All ones stand for an entry yet to be
# looked for in the block, or in the node.
BLOCK_SHIFT, NODE_SHIFT = 6, 14
SOMEWHERE = (1 << BLOCK_SHIFT) - 1
SOME_BLOCK = (1 << NODE_SHIFT) - 1
NOWHERE = -1

# Fields of a row of `sets` (SIZE is -1 if the set is free, then chained by NEXT) and of `entries` (OWNER is the number of
# the set plus 1, or 0 if the entry is absent).
ROOT, ROOT_SHAPE, SIZE, NEXT, SET_FIELDS = range(5)
OWNER, ENTRY_X, ENTRY_Y, ENTRY_TIE, ENTRY_FIELDS = range(5)

# Fields of `head`. The last is the first of the free lists, one for each sort and class.
K, GROUPS, PROGRESS, SET_TOP, SET_FREE, PRESENT, LOOKUPS, SNAPS, SENDS, BOXES, TOP, WANTED, CAPACITY = range(13)
FREE_LISTS = 13
CLASSES = 32
HEAD_FIELDS = FREE_LISTS + SORTS * CLASSES

# What a kernel reports. Where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, NEEDS_OUTPUT, BAD_SET, BAD_ENTRY, BAD_X, BAD_TIE = range(7)

# Fields of a side of `work`, k + 2 words each, for the low entries and the segments between them (see rankings_sweep).
LOW_X, EDGE, LOW_PLACE, LEAST_Y, LEAST_TIE, LEAST_PLACE, WORK_FIELDS = range(7)
LEFT, RIGHT = 0, 1
# Fields of columns, k + 2 words each, behind the two sides (see rankings_columns).
COLUMN_LO_MIN, COLUMN_LO_MAX, COLUMN_HI_MIN, COLUMN_HI_MAX, IS_JOINED, COLUMN_FIELDS = range(6)


class Arrays(NamedTuple):
    """All state; every kernel gets exactly these, in this order."""

    head: I64
    sets: I64
    """[sets, SET_FIELDS]"""
    entries: I64
    """[entries, ENTRY_FIELDS]"""
    m: I64
    """Memory of all extents."""
    work: I64
    """Scratch."""


def empty_arrays(k: int, groups: int) -> Arrays:
    """The arrays of a structure without sets."""
    head = np.full(HEAD_FIELDS, -1, np.int64)
    head[:FREE_LISTS] = 0
    head[K], head[GROUPS], head[SET_FREE] = k, groups, -1
    sets, entries = np.zeros((0, SET_FIELDS), np.int64), np.zeros((0, ENTRY_FIELDS), np.int64)
    work = np.zeros((2 * WORK_FIELDS + COLUMN_FIELDS) * (k + 2), np.int64)
    return Arrays(head, sets, entries, np.zeros(0, np.int64), work)


class Pointers(NamedTuple):
    """The same without sizes and reference counts, for compiled code only; see arrays.pointer."""

    head: Any
    sets: Any
    entries: Any
    m: Any
    work: Any


@kernel
def pointers(head: I64, sets: I64, entries: I64, m: I64, work: I64) -> Pointers:
    """What all functions below a kernel work on."""
    head[CAPACITY] = m.shape[0]
    return Pointers(pointer(head), pointer(sets), pointer(entries), pointer(m), pointer(work))


@kernel
def width_of(sort: Int) -> Int:
    """Fields of an entry in an extent of some sort."""
    return BLOCK_WIDTH if sort == BLOCKS else LIST_WIDTH


@kernel
def extent_free(s: Pointers, sort: Int, offset: Int, k: Int) -> None:
    """Give back an extent of class k."""
    s.m[offset] = s.head[FREE_LISTS + sort * CLASSES + k]
    s.head[FREE_LISTS + sort * CLASSES + k] = offset


@kernel
def extent_new(s: Pointers, sort: Int, k: Int) -> Int:
    """Offset of an extent of class k; the caller has seen to it that there is room (`has_room`)."""
    width = width_of(sort)
    for larger in range(k, CLASSES):
        offset = s.head[FREE_LISTS + sort * CLASSES + larger]
        if offset >= 0:
            s.head[FREE_LISTS + sort * CLASSES + larger] = s.m[offset]
            while larger > k:
                larger -= 1
                extent_free(s, sort, offset + (width << larger), larger)
            return offset
    offset = s.head[TOP]
    s.head[TOP] = offset + (width << k)
    if s.head[TOP] > s.head[CAPACITY]:
        raise MemoryError
    return offset


@kernel
def extent_fit(s: Pointers, sort: Int, offset: Int, k: Int, size: Int, wanted: Int) -> tuple[Int, Int]:
    """Offset and class of an extent with the given one's entries and room for `wanted`, but not for four times as many."""
    if wanted > (1 << k) or (wanted << 2) <= (1 << k):
        fitting = class_for(wanted)
        moved = extent_new(s, sort, fitting)
        copy_span(s.m, width_of(sort), offset, k, 0, moved, fitting, 0, min(size, wanted))
        extent_free(s, sort, offset, k)
        return moved, fitting
    return offset, k


@kernel
def has_room(s: Pointers, blocks: Int, lists: Int) -> bool:
    """True if there is memory left for so many entries of blocks and lists; else says in `head` how much is wanted."""
    wanted = blocks * BLOCK_WIDTH + lists * LIST_WIDTH
    s.head[WANTED] = wanted
    return bool(s.head[TOP] + wanted <= s.head[CAPACITY])


@kernel
def root_of(s: Pointers, of: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of a set's root."""
    shape = s.sets[of * SET_FIELDS + ROOT_SHAPE]
    return s.sets[of * SET_FIELDS + ROOT], shape >> 8, shape & 255


@kernel
def child_of(s: Pointers, offset: Int, k: Int, i: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of what the i-th entry of a list refers to."""
    shape = s.m[offset + (SHAPE << k) + i]
    return s.m[offset + (CHILD << k) + i], shape >> 8, shape & 255


@kernel
def place_of(ni: Int, bi: Int, i: Int) -> Int:
    """A place as one number."""
    return ni << NODE_SHIFT | bi << BLOCK_SHIFT | i


@kernel
def parts_of(place: Int) -> tuple[Int, Int, Int]:
    """Numbers of the node, of the block in it, and in the block."""
    return place >> NODE_SHIFT, (place & SOME_BLOCK) >> BLOCK_SHIFT, place & SOMEWHERE
