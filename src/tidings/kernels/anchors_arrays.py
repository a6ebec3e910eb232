"""The flat arrays that anchors live in: what is in them, when a record is hit, and the allocator of extents.

Sequences are kept as lists of lists. Each list is an *extent* of one memory, with room for a power of two of entries,
field after field; `f` and `m` are the same memory, as floats and as integers:

    extent at `offset`, class 2, three fields:   [a0 a1 a2 a3 | b0 b1 b2 b3 | c0 c1 c2 c3]

The class is log2 of the room. A reference to an extent is its offset and its *shape*, size << 8 | class. Freed extents
are chained through their first word; one too large for a request is halved until it fits.

    of an audience   ROOTS -> MEMBERS                             the distinct reaches, ascending
    of an item       LISTS (root) -> LISTS (nodes) -> RECORDS (blocks)      the runs of equal anchor, in key order
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from tidings.kernels.jit import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""
Float = Any

INT64_MIN = np.iinfo(np.int64).min
INT64_MAX = np.iinfo(np.int64).max
LABEL_MIN, LABEL_MAX = INT64_MIN, INT64_MAX
NO_TIME = INT64_MIN
CHOOSE = INT64_MIN
"""In place of a label: let one be chosen. No member has it."""

ABSOLUTE, PERCENT, RATIO = 0, 1, 2

BLOCK_MAX = 32
"""Most records in a block."""
NODE_MAX = 64
"""Most blocks in a node; twice as many while an item is worked on."""
MEMBER_MAX = 128
"""Most reaches in a block of members: these are searched, never scanned, so the blocks may be larger."""
MANY_WORDS = 8
"""So many words are not moved one by one."""

# Sorts of extents, and the numbers of fields of their entries.
RECORDS, LISTS, MEMBERS, ROOTS, SORTS = 0, 1, 2, 3, 4
RECORD_WIDTH, LIST_WIDTH, MEMBER_WIDTH, ROOT_WIDTH = 10, 7, 4, 3

# Fields of records and of list entries; the first ones are the same, so that both are scanned and searched alike. A list
# entry has the lowest UP, highest DN, lowest DUE and the first key (LO, L1) of what is below it.
UP, DN, DUE, LO, L1, C, HI, T0, L2, N = range(10)
CHILD, SHAPE = 5, 6
# Fields of members, and of their roots; the first is the reach, or the first reach, in both.
COUNT, LABEL_LO, LABEL_HI = 1, 2, 3
ROOT_CHILD, ROOT_SHAPE = 1, 2

# Fields of a row of `items` (ITEM_AUDIENCE is -1 if the item is free, then chained by NEXT) and of `audiences`.
ITEM_AUDIENCE, TIME, NEXT, PREVIOUS, ITEM_ROOT, ITEM_SHAPE, ITEM_FIELDS = 0, 1, 2, 3, 4, 5, 6
FIRST_ITEM, ITEMS, TOTAL, AUDIENCE_ROOT, AUDIENCE_SHAPE, AUDIENCE_FIELDS = 0, 1, 2, 3, 4, 5

# Fields of `head`; RESUME is the item at which the change of a member is to go on, or -1, and then come the count and the
# labels of the reach before that change. The last is the first of the free lists, one for each sort and class.
KIND, PATIENCE, PROGRESS, ITEM_TOP, ITEM_FREE, AUDIENCE_TOP, BOXES, BOXES_WANTED = range(8)
RESUME, COUNT_BEFORE, LABEL_LO_BEFORE, LABEL_HI_BEFORE, TOP, WANTED, CAPACITY = range(8, 15)
# Of the walk of a move: what is open (in which extent, and where), how many records are in the scratch extent, the wide
# record before an open part of the same range, and the last count looked up.
OPEN, AT, CLASS, PLACE, M, WIDE_BEFORE, WIDE_AT, WIDE_CLASS, WIDE_PLACE, LAST_COUNT, FREE_LISTS = range(15, 26)
CLASSES = 32
HEAD_FIELDS = FREE_LISTS + SORTS * CLASSES

# What a kernel reports. Where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, BAD_KEY, BAD_LABEL, NOT_ALONE, NO_LABEL, BAD_AUDIENCE, BAD_REACH, BAD_ITEM = range(9)

SCRATCH, SCRATCH_CLASS = 0, 7
"""The first two extents are for records: for what replaces a part of a block, and for a whole block that is to be cut."""
WHOLE = RECORD_WIDTH << SCRATCH_CLASS
KNOWN_REACH = 2 * WHOLE
"""A word of the memory: the reach whose count was last looked up in a move."""
MEMORY_START = 2 * WHOLE + 1


class Arrays(NamedTuple):
    """All state; every kernel gets exactly these, in this order."""

    head: I64
    items: I64
    """[items, ITEM_FIELDS]"""
    values: F64
    """[items] current values, NaN if void."""
    audiences: I64
    """[audiences, AUDIENCE_FIELDS]"""
    m: I64
    """Memory of all extents, as integers."""
    f: F64
    """The same, as floats."""


def empty_arrays(kind: int, patience: int) -> Arrays:
    """The arrays of a structure without audiences and items."""
    head = np.full(HEAD_FIELDS, -1, np.int64)
    head[:FREE_LISTS] = 0
    head[KIND], head[PATIENCE], head[ITEM_FREE], head[RESUME] = kind, patience, -1, -1
    head[TOP] = MEMORY_START
    items, audiences = np.zeros((0, ITEM_FIELDS), np.int64), np.zeros((0, AUDIENCE_FIELDS), np.int64)
    memory = np.zeros(MEMORY_START, np.int64)
    return Arrays(head, items, np.zeros(0), audiences, memory, memory.view(np.float64))


class Pointers(NamedTuple):
    """The same without sizes and reference counts, for compiled code only.

    Numba counts references to every array at every call: that would take longer than all else. Rows are laid end to
    end. The arrays themselves stay alive as arguments of the kernel that was called from Python.
    """

    head: Any
    items: Any
    values: Any
    audiences: Any
    m: Any
    f: Any


@intrinsic
def pointer(_context: Any, array: Any) -> Any:
    """Pointer to the first entry of an array."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), codegen


@intrinsic
def move_words(_context: Any, m: Any, target: Any, source: Any, n: Any) -> Any:
    """Copy n words of the memory from place `source` to place `target`; they may overlap."""

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        start, to, at, count = arguments
        cgutils.raw_memmove(builder, builder.gep(start, [to]), builder.gep(start, [at]), count, 8)
        return context.get_dummy_value()

    return types.void(m, types.int64, types.int64, types.int64), codegen


@kernel
def pointers(head: I64, items: I64, values: F64, audiences: I64, m: I64, f: F64) -> Pointers:
    """What all functions below a kernel work on."""
    head[CAPACITY] = m.shape[0]
    return Pointers(pointer(head), pointer(items), pointer(values), pointer(audiences), pointer(m), pointer(f))


@kernel(error_model="numpy")
def thresholds(kind: Int, c: Float, reach: Float) -> tuple[Float, Float]:
    """The values at and above, and at and below, which a member anchored at c is touched; rounded as defined."""
    if kind == ABSOLUTE:
        return c + reach, c - reach
    if kind == PERCENT:
        step = abs(c) * reach / 100.0
        return c + step, c - step
    return c * reach, c / reach


@kernel(error_model="numpy")
def is_hit(kind: Int, c: Float, reach: Float, d: Float) -> bool:
    """True if the move to d touches a member anchored at c by value."""
    up, dn = thresholds(kind, c, reach)
    return bool(d >= up or d <= dn)


@kernel
def due_after(patience: Int, t0: Int) -> Int:
    """The last time at which patience with an anchor of time t0 lasts; a later one touches."""
    if patience == 0 or t0 == NO_TIME or t0 > INT64_MAX - patience:
        return INT64_MAX
    return t0 + (patience - 1)


@kernel
def class_for(size: Int) -> Int:
    """The smallest class with room for so many entries."""
    k = 0
    while (1 << k) < size:
        k += 1
    return k


@kernel
def width_of(sort: Int) -> Int:
    """Fields of an entry in an extent of some sort."""
    if sort == RECORDS:
        return RECORD_WIDTH
    if sort == LISTS:
        return LIST_WIDTH
    return MEMBER_WIDTH if sort == MEMBERS else ROOT_WIDTH


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
def copy_span(m: Any, width: Int, a: Int, ka: Int, i: Int, b: Int, kb: Int, j: Int, n: Int) -> None:
    """Copy n entries from place i of extent a (class ka) to place j of extent b (class kb); they may overlap."""
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
def has_room(s: Pointers, records: Int, lists: Int, members: Int, roots: Int) -> bool:
    """True if there is memory left for so many entries of each sort; else says in `head` how much is wanted."""
    wanted = records * RECORD_WIDTH + lists * LIST_WIDTH + members * MEMBER_WIDTH + roots * ROOT_WIDTH
    s.head[WANTED] = wanted
    return bool(s.head[TOP] + wanted <= s.head[CAPACITY])
