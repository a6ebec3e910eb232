"""The flat arrays that crowds live in: what is in them, and the allocators.

The different points of a set, each with the number of times it is there, are in *cells* of up to 32, and these in blocks
of up to 16 cells. Above the blocks is a tree that cuts the plane by lo and by hi in turn. All that a walk asks of a node
or a block is in its *record*; the records of two siblings are neighbours:

    set -> record (root) -> [record | record] -> ..     a record: bounds of the points below, what is below, how many
                                |
                              block: bounds and sizes of its cells | lo .. hi .. of one cell | .. | times ..

The tree is so small that it stays in the processor's cache, and a block brings all that its cells are chosen by in a few
lines. Bounds are exact at all times: a record or a cell that is inside of a box answers for all its points.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from tidings.kernels.arrays import pointer
from tidings.kernels.jit import kernel

I64 = NDArray[np.int64]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

INT64_MIN = np.iinfo(np.int64).min
INT64_MAX = np.iinfo(np.int64).max

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

# Fields of `head`. LIST_LIMIT and the following are of painters, see rankings_near; the last are the first of the lists of
# free blocks, one for each class, of free siblings and of free roots.
PROGRESS, SET_TOP, POINTS, TOP, CAPACITY, NODE_TOP, NODE_CAPACITY, WANTED, NODES_WANTED = range(9)
LIST_LIMIT, LISTED, LIVE, LEFT_LO, LEFT_HI, RIGHT_LO, RIGHT_HI, FREE_BLOCKS = range(9, 17)
FREE_NODES = FREE_BLOCKS + CLASSES
FREE_ROOTS = FREE_NODES + 1
HEAD_FIELDS = FREE_ROOTS + 1

# What a kernel reports. Where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, BAD_POINT = range(3)

# Places in `work`: the stack of a walk, the path to a block, what a walk has met (see crowds_walk), and the points that
# are gathered, in two versions (see rankings_near).
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
    """The arrays of a structure without points."""
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[LIST_LIMIT] = LIST_MAX
    head[FREE_BLOCKS:] = -1
    sets, nodes, m = (np.zeros(0, np.int64) for _ in range(3))
    return Arrays(head, sets, nodes, m, np.zeros(WORK_WORDS, np.int64))


class CrowdPointers(NamedTuple):
    """The same without sizes and reference counts, for compiled code only; see arrays.pointer."""

    head: Any
    sets: Any
    nodes: Any
    m: Any
    work: Any


@kernel
def crowd_pointers(head: I64, sets: I64, nodes: I64, m: I64, work: I64) -> CrowdPointers:
    """What all functions below a kernel work on."""
    head[SET_TOP] = sets.shape[0]
    head[NODE_CAPACITY] = nodes.shape[0]
    head[CAPACITY] = m.shape[0]
    return CrowdPointers(pointer(head), pointer(sets), pointer(nodes), pointer(m), pointer(work))


@intrinsic
def lowest_bit(_context: Any, bits: Any) -> Any:
    """Number of the lowest bit that is set, of an integer that is not 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        # What it is of 0 does not matter.
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.int64), codegen


@intrinsic
def prefetch(_context: Any, m: Any, at: Any) -> Any:
    """Have the line of a memory that a word is in brought to the processor, without waiting for it."""

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), cgutils.voidptr_t)
        kind = cgutils.ir.FunctionType(cgutils.ir.VoidType(), [cgutils.voidptr_t] + 3 * [cgutils.int32_t])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # To be read, soon and more than once, as data.
        builder.call(function, [address, *(cgutils.int32_t(number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(m, types.int64), codegen


@kernel
def has_room(c: CrowdPointers, block_words: Int, node_words: Int) -> bool:
    """True if there is so much memory left; else says in `head` how much is wanted."""
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
def block_new(c: CrowdPointers, k: Int) -> Int:
    """Offset of a block of class k; the caller has seen to it that there is room."""
    offset = c.head[FREE_BLOCKS + k]
    if offset >= 0:
        c.head[FREE_BLOCKS + k] = c.m[offset]
        return offset
    offset = c.head[TOP]
    c.head[TOP] = offset + block_words(k)
    if c.head[TOP] > c.head[CAPACITY]:
        raise MemoryError
    return offset


@kernel
def block_free(c: CrowdPointers, offset: Int, k: Int) -> None:
    """Give back a block."""
    c.m[offset] = c.head[FREE_BLOCKS + k]
    c.head[FREE_BLOCKS + k] = offset


@kernel
def records_new(c: CrowdPointers, is_root: bool) -> Int:
    """Where two siblings may be put, or a root."""
    free = FREE_ROOTS if is_root else FREE_NODES
    at = c.head[free]
    if at >= 0:
        c.head[free] = c.nodes[at]
        return at
    at = c.head[NODE_TOP]
    c.head[NODE_TOP] = at + (RECORD if is_root else 2 * RECORD)
    if c.head[NODE_TOP] > c.head[NODE_CAPACITY]:
        raise MemoryError
    return at


@kernel
def records_free(c: CrowdPointers, at: Int, is_root: bool) -> None:
    """Give back two siblings, or a root."""
    free = FREE_ROOTS if is_root else FREE_NODES
    c.nodes[at] = c.head[free]
    c.head[free] = at


@kernel
def root_of(c: CrowdPointers, of: Int) -> Int:
    """Where the record of a set's root is; -1 if the set has no points."""
    return c.sets[of] if 0 <= of < c.head[SET_TOP] else -1


@kernel
def block_of(c: CrowdPointers, at: Int) -> tuple[Int, Int]:
    """Offset and class of the block that a record is of."""
    return c.nodes[at + CHILD] >> CLASS_BITS, c.nodes[at + CHILD] & ((1 << CLASS_BITS) - 1)


@kernel
def cell_of(c: CrowdPointers, at: Int, i: Int) -> tuple[Int, Int, Int, Int]:
    """Where the lo, the hi and the times of cell i of a record's block are, and how many points the cell has."""
    offset, k = block_of(c, at)
    if k <= CELL_BITS:
        return offset, offset + (1 << k), offset + (2 << k), c.nodes[at + SIZE]
    cells = cells_of(k)
    start = offset + CELL_FIELDS * cells
    los = start + CELL_WORDS * i
    return los, los + CELL_MAX, start + CELL_WORDS * cells + CELL_MAX * i, c.m[offset + CELL_SIZE * cells + i]
