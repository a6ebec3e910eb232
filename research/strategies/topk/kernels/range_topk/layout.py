"""The flat arrays of a range top-k index: what is in them.

The entries of a set are kept in the order of their positions (x, tie), as a B-tree of three levels. Each list is an extent
of one memory (see tidings.kernels.extents):

    set -> root, a list of nodes -> node, a list of blocks -> block, a list of entries
            [x, tie, y, tie of y, child, shape]                [x, tie, y, entry]

A list entry has the first position and the lowest key (y, tie) of what is below it, where that is, and its *shape*:
size << 8 | class. A *place* is where an entry is: number of its node, of its block in the node, and of itself in the block,
as one integer. Places compare like positions. In all kernels `of` is the number of a set.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.buddy import CLASSES, EXTENT_FIELDS
from tidings.kernels.extents import CAPACITY
from tidings.kernels.intrinsics import pointer
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

# Fields of blocks and of lists; the first three are the same. The tie of the lowest key is TIE in a block, LOW_TIE in a list.
X, TIE, Y, ENTRY, BLOCK_WIDTH = range(5)
LOW_TIE, CHILD, SHAPE, LIST_WIDTH = range(3, 7)

# A place is node << NODE_SHIFT | block << BLOCK_SHIFT | number in the block. All ones stand for an entry yet to be
# looked for in the block, or in the node.
BLOCK_SHIFT, NODE_SHIFT = 6, 14
SOMEWHERE = (1 << BLOCK_SHIFT) - 1
SOME_BLOCK = (1 << NODE_SHIFT) - 1
NOWHERE = -1

# Fields of a row of `sets`, and of `entries`: OWNER is the number of the set plus 1, or 0 if the entry is absent.
ROOT, ROOT_SHAPE, SIZE, SET_FIELDS = range(4)
OWNER, ENTRY_X, ENTRY_Y, ENTRY_TIE, ENTRY_FIELDS = range(5)

# Fields of `head` behind those of extents: k; most boxes of a send (see `group_of`); where a kernel stopped; sets; entries
# present; how often the next best entry was looked for, and the low entries on a side; sends and boxes written so far.
# Then the free lists of extents of blocks, and of lists.
K, GROUPS, PROGRESS, SET_COUNT, PRESENT, LOOKUPS, SIDES, SENDS, BOXES, FREE_BLOCKS = range(
    EXTENT_FIELDS, EXTENT_FIELDS + 10
)
FREE_LISTS = FREE_BLOCKS + CLASSES
HEAD_FIELDS = FREE_LISTS + CLASSES

# What a kernel reports. Where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, NEEDS_OUTPUT, BAD_SET, BAD_ENTRY, BAD_X, BAD_TIE = range(7)

# Fields of a side of `work`, k + 2 words each: the low entries and the segments between them (see staircase).
LOW_X, EDGE, LOW_PLACE, LEAST_Y, LEAST_TIE, LEAST_PLACE, SIDE_FIELDS = range(7)
LEFT, RIGHT = 0, 1


class Arrays(NamedTuple):
    """All state. Every kernel gets exactly these, in this order."""

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
    """The arrays of an index without sets."""
    head = np.full(HEAD_FIELDS, -1, np.int64)
    head[:FREE_BLOCKS] = 0
    head[K], head[GROUPS] = k, groups
    sets, entries = np.zeros((0, SET_FIELDS), np.int64), np.zeros((0, ENTRY_FIELDS), np.int64)
    work = np.zeros(2 * SIDE_FIELDS * (k + 2), np.int64)
    return Arrays(head, sets, entries, np.zeros(0, np.int64), work)


class Pointers(NamedTuple):
    """Pointers to the same, rows laid end to end; see tidings.kernels.intrinsics.pointer."""

    head: Any
    sets: Any
    entries: Any
    m: Any
    work: Any


class OutputPointers(NamedTuple):
    """Pointers to where sends and their boxes go; how many there are is in `head`."""

    entry: Any
    is_gone: Any
    box_starts: Any
    lo: Any
    hi: Any


@kernel
def pointers(head: I64, sets: I64, entries: I64, m: I64, work: I64) -> Pointers:
    """What all functions below a kernel work on."""
    head[CAPACITY] = m.shape[0]
    return Pointers(pointer(head), pointer(sets), pointer(entries), pointer(m), pointer(work))


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
    """The place of entry i of block bi of node ni."""
    return ni << NODE_SHIFT | bi << BLOCK_SHIFT | i


@kernel
def parts_of(place: Int) -> tuple[Int, Int, Int]:
    """Numbers of the node, of the block in it, and in the block."""
    return place >> NODE_SHIFT, (place & SOME_BLOCK) >> BLOCK_SHIFT, place & SOMEWHERE


@kernel
def block_at(s: Pointers, of: Int, place: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of the block that a place is in."""
    root, _, kr = root_of(s, of)
    ni, bi, _ = parts_of(place)
    node, _, kn = child_of(s, root, kr, ni)
    return child_of(s, node, kn, bi)


@kernel
def side_of(s: Pointers, side: Int) -> tuple[Int, Int]:
    """Where in `work` the first field of a side is, and how far it is to the next field."""
    stride = s.head[K] + 2
    return side * SIDE_FIELDS * stride, stride
