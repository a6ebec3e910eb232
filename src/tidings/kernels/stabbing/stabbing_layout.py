"""Where the boxes of a stabbing index lie in memory: sets of equality axes, buckets, cells, and the arena they live in.

    sets      one record per distinct set of equality axes
    table     open addressing: hash of (set, equality codes) -> bucket
    bucket    set | hash | codes and texts of the constants | cells side by side, one per shape of ranges
    cell      up to 64 boxes, or a packed tree of them and a tail of newcomers; data column by column:
              lo, hi of each range axis | kind and owner | box | ends of text ranges

Buckets, data, trees and texts are extents (`tidings.kernels.extents`) of one arena of int64 words. A kernel that runs out of
room returns, and is called again with more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.kernels import extents
from tidings.kernels.extents import EXTENT_FIELDS, NOWHERE
from tidings.kernels.handles import array_at, text_array_at
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, U8, Int, mix

OLD, NEW, SIDES = 1, 2, 3
"""Which of the two vectors a box holds; the bits of both."""
VALID, CODE, EQUAL, TEXT_START, TEXT_STOP, VECTOR_FIELDS = range(6)
"""Fields of a vector's axis."""

CODE_MIN, CODE_MAX = -(2**63), 2**63 - 1
POSITION = (1 << 32) - 1
"""Bits of a box's place that are its position in the cell."""

LEAF_BITS, FAN_BITS = 6, 4
LEAF, FAN = 1 << LEAF_BITS, 1 << FAN_BITS
"""Boxes in a leaf of a tree, and children of a node."""

# Fields of `head` behind those of the allocator: the end and the first free number of boxes and of cells; buckets in the
# table; the end of `sets`; how many boxes there are.
BOX_TOP, BOX_FREE, CELL_TOP, CELL_FREE, BUCKETS, SETS_STOP, LIVE, HEAD_FIELDS = range(EXTENT_FIELDS, EXTENT_FIELDS + 8)

# Fields of a set: how many axes, buckets it has, masks of its axes and of all axes that matter to a box of it; then axes.
SET_AXES, SET_BUCKETS, SET_MASK, SET_WATCH, SET_FIELDS = range(5)

# Fields of a bucket; then codes, (start, stop) of the texts in bytes of the arena (start NONE for exact types), and cells.
BUCKET_SET, BUCKET_HASH, BUCKET_CELLS, BUCKET_WORDS, BUCKET_FIELDS = range(5)

# Fields of a cell: mask of axes that matter to some box, shape, data and room for boxes in it, boxes in the tree, all
# positions in use, the tree, dead positions in the tree, the cell's number, boxes about to be added, words from the start of
# its bucket.
MASK, SHAPE, DATA, ROOM, PACKED, USED, TREE, DEAD, NUMBER, COMING, OFFSET, CELL_FIELDS = range(12)

# Fields of a shape: range axes, text axes among them, mask of range axes; then the axes, then places of the text axes.
DIMS, TEXTS, SHAPE_MASK, SHAPE_FIELDS = range(4)

# Columns of a cell's data behind its ends (kind << 32 | owner, and the number of the box), and columns of one text range:
# start << 1 | is closed, and stop, of lo and hi.
OWNER, BOX, EXTRA_COLUMNS = range(3)
TEXT_COLUMNS = 4
OWNER_BITS = (1 << 32) - 1

# Fields of a kind of box: mask of the axes that matter to it, and a number that callers may use as they like.
KIND_MASK, KIND_TAG, KIND_FIELDS = range(3)

# A tree: number of levels, then (start, entries) of each from the leaves up, then bounds column by column.
TREE_LEVELS, TREE_FIELDS = range(2)
LEVELS_MAX = 16


class Boxes(NamedTuple):
    """All boxes of an index, for kernels. Arrays are replaced when they grow: ask the index anew for every call."""

    head: I64
    sets: I64
    """Records of sets, one after the other."""
    table: I64
    """[2 * slots]: hash and bucket."""
    cells: I64
    """[cells]: where a cell's record is in the arena; free numbers are chained as -2 - next."""
    places: I64
    """[boxes]: cell number << 32 | position; free numbers are chained as -2 - next."""
    arena: I64
    bytes: U8
    """The arena, as bytes."""
    work: I64
    """Scratch: values of two vectors, and the stack of a walk."""
    kinds: I64
    """[kinds * KIND_FIELDS]: boxes of one kind are concerned by changes of the same axes."""


@kernel
def boxes_at(handles: I64) -> Boxes:
    """The index whose arrays have these handles, the first in the table."""
    return Boxes(
        array_at(handles, 0),
        array_at(handles, 1),
        array_at(handles, 2),
        array_at(handles, 3),
        array_at(handles, 4),
        array_at(handles, 5),
        text_array_at(handles, 6),
        array_at(handles, 7),
        array_at(handles, 8),
    )


@kernel
def has_room(boxes: Boxes, words: Int) -> bool:
    """Whether so many words can be allocated, in at most four extents, whatever is chained."""
    return bool(extents.has_room(boxes.head, words + (words >> 2) + 32))


@kernel
def allocate(boxes: Boxes, words: Int) -> Int:
    """An extent of at least so many words; the caller has made sure that there is room."""
    return extents.allocate(boxes.arena, boxes.head, words)


@kernel
def release(boxes: Boxes, at: Int, words: Int) -> None:
    """Gives an extent back; `words` are as they were asked for, or all that its size has."""
    extents.release(boxes.arena, boxes.head, at, words)


@kernel
def keep_text(boxes: Boxes, text: U8, start: Int, stop: Int) -> Int:
    """Copies a text into the arena; where it begins, in bytes."""
    at = allocate(boxes, (stop - start + 7) >> 3) << 3
    for i in range(stop - start):
        boxes.bytes[at + i] = text[start + i]
    return at


@kernel
def drop_text(boxes: Boxes, start: Int, stop: Int) -> None:
    release(boxes, start >> 3, (stop - start + 7) >> 3)


@kernel
def columns_of(boxes: Boxes, shape: Int) -> Int:
    """Columns of the data of cells of a shape."""
    return 2 * boxes.arena[shape + DIMS] + EXTRA_COLUMNS + TEXT_COLUMNS * boxes.arena[shape + TEXTS]


@kernel
def first_cell(boxes: Boxes, bucket: Int) -> Int:
    """Where the records of a bucket's cells begin."""
    return bucket + BUCKET_FIELDS + 3 * boxes.sets[boxes.arena[bucket + BUCKET_SET] + SET_AXES]


class Pointers(NamedTuple):
    """What a query reads, without sizes and reference counts; numba counts references to each array at each call."""

    sets: Any
    table: Any
    last_slot: Int
    arena: Any
    bytes: Any
    work: Any
    kinds: Any
    text: Any
    x: Any
    axis_words: Int
    """Words of one vector in `x`."""


@kernel
def pointers_of(boxes: Boxes, text: U8, x: I64) -> Pointers:
    return Pointers(
        pointer(boxes.sets),
        pointer(boxes.table),
        (boxes.table.shape[0] >> 1) - 1,
        pointer(boxes.arena),
        pointer(boxes.bytes),
        pointer(boxes.work),
        pointer(boxes.kinds),
        pointer(text),
        pointer(x),
        x.shape[1] * VECTOR_FIELDS,
    )


@kernel
def _has_constants(p: Pointers, bucket: Int, of: Int, n: Int, vector: Int) -> bool:
    """Whether a vector has the equality constants of a bucket."""
    for i in range(n):
        axis = vector + p.sets[of + SET_FIELDS + i] * VECTOR_FIELDS
        if p.arena[bucket + BUCKET_FIELDS + i] != p.x[axis + EQUAL]:
            return False
        at = bucket + BUCKET_FIELDS + n + 2 * i
        start = p.arena[at]
        if start >= 0:
            length, other = p.arena[at + 1] - start, p.x[axis + TEXT_START]
            if p.x[axis + TEXT_STOP] - other != length:
                return False
            for j in range(length):
                if p.bytes[start + j] != p.text[other + j]:
                    return False
    return True


@kernel
def find_bucket(p: Pointers, of: Int, side: Int) -> Int:
    """The bucket of a set in which boxes that hold vector `side` lie, or NOWHERE."""
    n = p.sets[of + SET_AXES]
    vector = side * p.axis_words
    hashed = np.int64(of)
    for i in range(n):
        axis = vector + p.sets[of + SET_FIELDS + i] * VECTOR_FIELDS
        if p.x[axis + VALID] == 0:
            return NOWHERE
        hashed = mix(hashed, p.x[axis + EQUAL])
    slot = hashed & p.last_slot
    while True:
        bucket = p.table[2 * slot + 1]
        if bucket == NOWHERE:
            return NOWHERE
        is_likely = p.table[2 * slot] == hashed and p.arena[bucket + BUCKET_SET] == of
        if is_likely and _has_constants(p, bucket, of, n, vector):
            return bucket
        slot = (slot + 1) & p.last_slot
