"""Which boxes hold a vector: one probe per set of equality axes, then the cells of the bucket, flat or down their trees.

A change asks with the vector before and the one after at once. Where both fall into one bucket they are tested in one
visit, and cells to which nothing that matters has changed are not looked at. Boxes are compared 64 at a time, axis by axis,
into a word with a bit for each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import carray

from tidings.kernels.extents import NOWHERE
from tidings.kernels.intrinsics import lowest_bit, pointer, prefetch
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, U8, Int, compare_texts
from tidings.kernels.stabbing.stabbing_layout import (
    BOX,
    BUCKET_CELLS,
    BUCKET_FIELDS,
    CELL_FIELDS,
    CODE,
    DATA,
    DIMS,
    EXTRA_COLUMNS,
    FAN,
    FAN_BITS,
    KIND_FIELDS,
    KIND_MASK,
    LEAF,
    LEAF_BITS,
    LEVELS_MAX,
    MASK,
    NEW,
    OLD,
    OWNER,
    OWNER_BITS,
    PACKED,
    ROOM,
    SET_AXES,
    SET_BUCKETS,
    SET_FIELDS,
    SET_MASK,
    SET_WATCH,
    SETS_STOP,
    SHAPE,
    SHAPE_FIELDS,
    SHAPE_MASK,
    TEXT_COLUMNS,
    TEXT_START,
    TEXT_STOP,
    TEXTS,
    TREE,
    TREE_FIELDS,
    TREE_LEVELS,
    USED,
    VALID,
    VECTOR_FIELDS,
    Boxes,
    Pointers,
    find_bucket,
    pointers_of,
)

STACK_WORDS = 2 * FAN * LEVELS_MAX
LINE = 8
"""Words in a line of the processor's cache."""


class Hits(NamedTuple):
    """Where hits are written: room for `capacity` hits of `width` words, 2 or 3."""

    words: Any
    capacity: Int
    width: Int


@kernel
def scan(arena: Any, base: Int, stride: Int, n: Int, dims: Int, values: Any, at: Int) -> Int:
    """Bits of those of n <= 64 boxes, column pairs from `base`, that hold the values from place `at`."""
    found = np.int64(-1) if n >= LEAF else (np.int64(1) << n) - 1
    for d in range(dims):
        x = values[at + d]
        lo = base + 2 * d * stride
        hi = lo + stride
        bits = np.int64(0)
        for j in range(n):
            bits |= np.int64((arena[lo + j] <= x) & (x <= arena[hi + j])) << j
        found &= bits
        if found == 0:
            break
    return found


# It makes arrays of pointers, and says so: it would otherwise be compiled as its callers are.
@kernel(_nrt=True)
def is_inside_texts(p: Pointers, side: Int, shape: Int, data: Int, room: Int, position: Int) -> bool:
    """Whether a vector lies within the exact ends of a box's text ranges, where its codes tie with theirs."""
    dims = p.arena[shape + DIMS]
    for t in range(p.arena[shape + TEXTS]):
        place = p.arena[shape + SHAPE_FIELDS + dims + t]
        axis = side * p.axis_words + p.arena[shape + SHAPE_FIELDS + place] * VECTOR_FIELDS
        start, stop = p.x[axis + TEXT_START], p.x[axis + TEXT_STOP]
        at = data + (2 * dims + EXTRA_COLUMNS + TEXT_COLUMNS * t) * room + position
        for end in range(2):
            key = p.arena[at + 2 * end * room]
            if key >= 0 and p.arena[data + (2 * place + end) * room + position] == p.x[axis + CODE]:
                end_stop = p.arena[at + (2 * end + 1) * room]
                order = compare_texts(carray(p.text, stop), start, stop, carray(p.bytes, end_stop), key >> 1, end_stop)
                if (order < 0 if end == 0 else order > 0) or (order == 0 and key & 1 == 0):
                    return False
    return True


@kernel
def report(p: Pointers, cell: Int, first: Int, old: Int, new: Int, changed: Int, hits: Hits, count: Int) -> Int:
    """Writes the boxes at positions from `first` whose bits are set; the new count of hits, or -1."""
    shape, data, room = p.arena[cell + SHAPE], p.arena[cell + DATA], p.arena[cell + ROOM]
    dims, texts = p.arena[shape + DIMS], p.arena[shape + TEXTS]
    owners = data + (2 * dims + OWNER) * room + first
    left = old | new
    while left:
        j = lowest_bit(left)
        left &= left - 1
        bits = (old >> j & 1) * OLD | (new >> j & 1) * NEW
        if texts:
            if bits & OLD and not is_inside_texts(p, np.int64(0), shape, data, room, first + j):
                bits &= NEW
            if bits & NEW and not is_inside_texts(p, np.int64(1), shape, data, room, first + j):
                bits &= OLD
            if bits == 0:
                continue
        word = p.arena[owners + j]
        if bits == OLD | NEW and p.kinds[(word >> 32) * KIND_FIELDS + KIND_MASK] & changed == 0:
            continue
        if count >= hits.capacity:
            return -1
        at = hits.width * count
        hits.words[at] = word & OWNER_BITS
        hits.words[at + 1] = word >> 32 << 2 | bits
        if hits.width > 2:
            hits.words[at + 2] = p.arena[owners + (BOX - OWNER) * room + j]
        count += 1
    return count


@kernel
def ask_for(arena: Any, data: Int, room: Int, columns: Int) -> None:
    """Asks for the columns of a whole leaf whose first column begins at `data`, without waiting for them."""
    for c in range(columns):
        for word in range(0, LEAF, LINE):
            prefetch(arena, data + c * room + word)


@kernel
def visit(p: Pointers, cell: Int, sides: Int, changed: Int, hits: Hits, count: Int) -> Int:
    """Finds the boxes of a cell that hold the vectors in `sides`."""
    arena, work = p.arena, p.work
    shape, data, room = arena[cell + SHAPE], arena[cell + DATA], arena[cell + ROOM]
    dims = arena[shape + DIMS]
    for d in range(dims):
        old_axis = arena[shape + SHAPE_FIELDS + d] * VECTOR_FIELDS
        new_axis = p.axis_words + old_axis
        work[d], work[dims + d] = p.x[old_axis + CODE], p.x[new_axis + CODE]
        if p.x[old_axis + VALID] == 0:
            sides &= NEW
        if p.x[new_axis + VALID] == 0:
            sides &= OLD
    if sides == 0:
        return count
    is_pair = sides == OLD | NEW and arena[shape + SHAPE_MASK] & changed != 0
    one = 0 if sides & OLD else dims
    old_mask = np.int64(-1) if sides & OLD else np.int64(0)
    new_mask = np.int64(-1) if sides & NEW else np.int64(0)
    stack = 2 * dims
    packed, used, tree = arena[cell + PACKED], arena[cell + USED], arena[cell + TREE]
    depth = 0
    if tree != NOWHERE:
        work[stack], work[stack + 1] = arena[tree + TREE_LEVELS] - 1, 0
        depth = 1
    # The leaves of the tree, then the tail: `met` are leaves from `first` on that are still to be looked at.
    level, first, met, tail = np.int64(0), np.int64(0), np.int64(0), packed
    while True:
        if level == 0 and met:
            start = (first + lowest_bit(met)) << LEAF_BITS
            met &= met - 1
            stop = packed
            if met:
                ask_for(arena, data + ((first + lowest_bit(met)) << LEAF_BITS), room, 2 * dims + 1)
        elif depth:
            depth -= 1
            level, first = work[stack + 2 * depth], work[stack + 2 * depth + 1] << FAN_BITS
            base = arena[tree + TREE_FIELDS + 2 * level]
            entries = arena[tree + TREE_FIELDS + 2 * level + 1]
            n = min(FAN, entries - first)
            met = scan(arena, base + first, entries, n, dims, work, one)
            if is_pair:
                met |= scan(arena, base + first, entries, n, dims, work, dims)
            if level:
                while met:
                    work[stack + 2 * depth], work[stack + 2 * depth + 1] = level - 1, first + lowest_bit(met)
                    met &= met - 1
                    depth += 1
            continue
        elif tail < used:
            start, stop = tail, used
            tail += LEAF
        else:
            return count
        n = min(LEAF, stop - start)
        old = scan(arena, data + start, room, n, dims, work, one)
        new = scan(arena, data + start, room, n, dims, work, dims) if is_pair else old
        old &= old_mask
        new &= new_mask
        if old | new:
            count = report(p, cell, start, old, new, changed, hits, count)
            if count < 0:
                return -1


@kernel
def visit_bucket(p: Pointers, bucket: Int, equals: Int, sides: Int, changed: Int, hits: Hits, count: Int) -> Int:
    cell = bucket + BUCKET_FIELDS + 3 * equals
    for _ in range(p.arena[bucket + BUCKET_CELLS]):
        if sides != OLD | NEW or p.arena[cell + MASK] & changed != 0:
            count = visit(p, cell, sides, changed, hits, count)
            if count < 0:
                return -1
        cell += CELL_FIELDS
    return count


@kernel
def stab(boxes: Boxes, text: U8, x: I64, has: I64, changed: Int, hits: I64) -> Int:
    """Writes (owner, kind << 2 | sides) of every box that holds the old vector x[0] or the new one x[1]; how many there are.

    hits: [room, 2], or [room, 3] to get the number of the box too. The sides are OLD, NEW or both (`SIDES`).
    x: [2, axes, VECTOR_FIELDS], texts lie in `text`; has[i]: whether there is such a vector. `changed` has bit (axis & 63)
    for axes that differ between the two, and is ignored unless both are there: a box that holds both is left out if none
    of its axes has changed. A box is there at most once; -1 if `hits` is too small. Arrays are contiguous.
    """
    p = pointers_of(boxes, text, x)
    out = Hits(pointer(hits), hits.shape[0], hits.shape[1])
    has_old, has_new = has[0] != 0, has[1] != 0
    is_both = has_old and has_new
    # Numbers of numpy: for each literal argument, and each combination of them, a function is compiled once more.
    first, second, count = np.int64(0), np.int64(1), np.int64(0)
    of, stop = np.int64(0), boxes.head[SETS_STOP]
    while of < stop:
        n = p.sets[of + SET_AXES]
        if p.sets[of + SET_BUCKETS] and not (is_both and p.sets[of + SET_WATCH] & changed == 0):
            bucket = find_bucket(p, of, first) if has_old else NOWHERE
            if is_both and p.sets[of + SET_MASK] & changed == 0:
                other = bucket
            else:
                other = find_bucket(p, of, second) if has_new else NOWHERE
            sides = np.int64(OLD)
            if other == bucket:
                sides, other = np.int64(OLD | NEW), NOWHERE
            for _ in range(2):
                if bucket != NOWHERE:
                    count = visit_bucket(p, bucket, n, sides, changed, out, count)
                    if count < 0:
                        return -1
                bucket, sides = other, np.int64(NEW)
        of += SET_FIELDS + n
    return count
