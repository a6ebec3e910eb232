"""The flat arrays of plane kd-trees: what is in them, and how records and blocks are given out.

The different points (lo, hi) of a set, each with the number of times it is there, are in *cells* of up to 32, and these in
blocks of up to 16 cells. Above the blocks is a tree that cuts the plane by lo and by hi in turn. All that a walk asks of a
node or a block is in its *record*; the records of two siblings are neighbours:

    set -> record (root) -> [record | record] -> ..     a record: bounds of the points below, what is below, how many
                                |
                              block: bounds and sizes of its cells | lo .. hi .. of one cell | .. | times ..

The tree is so small that it stays in the processor's cache, and a block brings all that its cells are chosen by in a few
lines. Bounds are exact at all times: a record or a cell that is inside of a box answers for all its points. In all kernels
`of` is the number of a set, and `at` a place in `nodes`, of a record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel

I64 = NDArray[np.int64]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

INT64_MIN = np.iinfo(np.int64).min
INT64_MAX = np.iinfo(np.int64).max

LINE = 8
"""Words of a line of the processor's cache."""
CELL_BITS = 5
CELL_MAX = 1 << CELL_BITS
"""Most points in a cell."""
CELLS_MAX = 16
"""Most cells in a block."""
BLOCK_MAX = CELL_MAX * CELLS_MAX

# Fields of a record. CHILD is block offset << CLASS_BITS | class, or if negative, the complement of where in `nodes` two
# siblings are; SIZE is how many different points there are, COUNT how many. Of two siblings, the first has the greatest
# coordinate that belongs to it as its CUT, the second which coordinate that is.
LO_MIN, LO_MAX, HI_MIN, HI_MAX, CHILD, SIZE, COUNT, CUT, RECORD = range(9)

# The class of a block is log2 of the points there is room for. Up to CELL_MAX, it is one cell: [lo .. | hi .. | times ..].
# A larger one starts with fields of its cells: their bounds, as of a record, and their sizes. Free cells have bounds
# turned round, which are apart from any box, or add nothing to it.
CLASS_BITS = 4
CLASSES = 10
CELL_SIZE, CELL_FIELDS = 4, 5
CELL_WORDS = 2 * CELL_MAX

# Fields of `head`. LIST_LIMIT to RIGHT_HI are for who lists points of the tree (see range_topk.sparse); the last are the
# first free block of each class, the first free siblings and the first free root, or -1; their first word is the next one.
PROGRESS, SET_TOP, POINTS, TOP, CAPACITY, NODE_TOP, NODE_CAPACITY, WANTED, NODES_WANTED = range(9)
LIST_LIMIT, LISTED, LIVE, LEFT_LO, LEFT_HI, RIGHT_LO, RIGHT_HI, FREE_BLOCKS = range(9, 17)
FREE_NODES = FREE_BLOCKS + CLASSES
FREE_ROOTS = FREE_NODES + 1
# How many rectangles stand for the points of a set, in arrays that have no points (see kernels.rectangle_cover); else 0.
RECTANGLES = FREE_ROOTS + 1
HEAD_FIELDS = RECTANGLES + 1

# What a kernel reports. Where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, BAD_POINT = range(3)

# Places in `work`: the stack of a walk, the path to a block, what a walk has met (see query), and the points that are
# gathered, as they are found and as range_topk.sparse orders them.
DEPTH_MAX = 512
LIST_MAX = 512
"""Most points that are gathered; that they are more may be found out a block too late."""
LIST_ROOM = LIST_MAX + BLOCK_MAX + CELL_MAX
MET_MAX = 32
"""Most records met before they are looked into."""
STACK, PATH, MET = (i * DEPTH_MAX for i in range(3))
MET_INSIDE, MET_ACROSS, LISTS = (MET + i * MET_MAX for i in range(1, 4))
FOUND_LO, FOUND_HI, FOUND_RANK, NEAR_LO, NEAR_HI, NEAR_RANK = (LISTS + i * LIST_ROOM for i in range(6))
WORK_WORDS = LISTS + 6 * LIST_ROOM


class Arrays(NamedTuple):
    """All state; every kernel gets exactly these, in this order."""

    head: I64
    sets: I64
    """[sets] Where in `nodes` the record of the root is, or -1."""
    nodes: I64
    """Memory of all records."""
    m: I64
    """Memory of all blocks."""
    work: I64
    """Scratch."""


def empty_arrays() -> Arrays:
    """The arrays of trees without points."""
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[LIST_LIMIT] = LIST_MAX
    head[FREE_BLOCKS:RECTANGLES] = -1
    sets, nodes, m = (np.zeros(0, np.int64) for _ in range(3))
    return Arrays(head, sets, nodes, m, np.zeros(WORK_WORDS, np.int64))


class TreePointers(NamedTuple):
    """Pointers to the same; see tidings.kernels.intrinsics.pointer."""

    head: Any
    sets: Any
    nodes: Any
    m: Any
    work: Any


@kernel
def tree_pointers(head: I64, sets: I64, nodes: I64, m: I64, work: I64) -> TreePointers:
    """What all functions below a kernel work on."""
    head[SET_TOP] = sets.shape[0]
    head[NODE_CAPACITY] = nodes.shape[0]
    head[CAPACITY] = m.shape[0]
    return TreePointers(pointer(head), pointer(sets), pointer(nodes), pointer(m), pointer(work))


@kernel
def has_room(c: TreePointers, block_words: Int, node_words: Int) -> bool:
    """Whether there is so much memory left; if not, `head` says how much is wanted."""
    c.head[WANTED], c.head[NODES_WANTED] = block_words, node_words
    return bool(
        c.head[TOP] + block_words <= c.head[CAPACITY] and c.head[NODE_TOP] + node_words <= c.head[NODE_CAPACITY]
    )


@kernel
def cells_of(k: Int) -> Int:
    """Number of cells, used or not, of a block of class k."""
    return 1 << max(k - CELL_BITS, 0)


@kernel
def block_words(k: Int) -> Int:
    """Size of a block of class k."""
    return (3 << k) + (CELL_FIELDS * cells_of(k) if k > CELL_BITS else 0)


@kernel
def chunk_new(m: Any, head: Any, free: Int, top: Int, words: Int) -> Int:
    """Place of some words of a memory: the first of the free list head[free], else behind head[top]. There is room."""
    at = head[free]
    if at >= 0:
        head[free] = m[at]
        return at
    at = head[top]
    head[top] = at + words
    if head[top] > head[top + 1]:
        raise MemoryError
    return at


@kernel
def chunk_free(m: Any, head: Any, free: Int, at: Int) -> None:
    """Puts words of a memory on the free list head[free]."""
    m[at] = head[free]
    head[free] = at


@kernel
def block_new(c: TreePointers, k: Int) -> Int:
    """Offset of a block of class k; the caller has made sure that there is room."""
    return chunk_new(c.m, c.head, FREE_BLOCKS + k, TOP, block_words(k))


@kernel
def block_free(c: TreePointers, at: Int) -> None:
    """Gives back the block of a record."""
    offset, k = block_of(c, at)
    chunk_free(c.m, c.head, FREE_BLOCKS + k, offset)


@kernel
def siblings_new(c: TreePointers) -> Int:
    """Where in `nodes` two siblings may be put."""
    return chunk_new(c.nodes, c.head, FREE_NODES, NODE_TOP, 2 * RECORD)


@kernel
def root_new(c: TreePointers, of: Int) -> Int:
    """Where in `nodes` the new root of a set is."""
    c.sets[of] = chunk_new(c.nodes, c.head, FREE_ROOTS, NODE_TOP, RECORD)
    return c.sets[of]


@kernel
def root_free(c: TreePointers, of: Int) -> None:
    """Gives back the root of a set, which has no points any more."""
    chunk_free(c.nodes, c.head, FREE_ROOTS, c.sets[of])
    c.sets[of] = -1


@kernel
def root_of(c: TreePointers, of: Int) -> Int:
    """Where the record of a set's root is; -1 if the set has no points."""
    return c.sets[of] if 0 <= of < c.head[SET_TOP] else -1


@kernel
def block_of(c: TreePointers, at: Int) -> tuple[Int, Int]:
    """Offset and class of the block that a record is of."""
    return c.nodes[at + CHILD] >> CLASS_BITS, c.nodes[at + CHILD] & ((1 << CLASS_BITS) - 1)


@kernel
def cell_of(c: TreePointers, at: Int, i: Int) -> tuple[Int, Int, Int, Int]:
    """Where the lo, the hi and the times of cell i of a record's block are, and how many points the cell has."""
    offset, k = block_of(c, at)
    if k <= CELL_BITS:
        return offset, offset + (1 << k), offset + (2 << k), c.nodes[at + SIZE]
    cells = cells_of(k)
    start = offset + CELL_FIELDS * cells
    los = start + CELL_WORDS * i
    return los, los + CELL_MAX, start + CELL_WORDS * cells + CELL_MAX * i, c.m[offset + CELL_SIZE * cells + i]
