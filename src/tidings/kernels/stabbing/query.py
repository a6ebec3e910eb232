"""Which boxes hold a vector: one probe per set of equality axes, then the cells of the bucket, flat or down their trees.

A change asks with the vector before and the one after at once. Where both fall into one bucket they are tested in one
visit, and cells to which nothing that matters has changed are not looked at. Boxes are compared 64 at a time, axis by axis,
into a word with a bit for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tidings.kernels.anchors_arrays import pointer
from tidings.kernels.crowds_arrays import lowest_bit
from tidings.kernels.rows import I64, U8, Int, compare_texts
from tidings.kernels.stabbing.layout import (
    BOX,
    BOX_MASK,
    BUCKET_CELLS,
    CELL_FIELDS,
    CODE,
    DATA,
    DIMS,
    EXTRA_COLUMNS,
    FAN,
    FAN_BITS,
    LEAF,
    LEAF_BITS,
    LEVELS_MAX,
    MASK,
    NEW,
    NOWHERE,
    OLD,
    OWNER,
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
    Boxes,
    find_bucket,
    first_cell,
)

STACK_WORDS = 2 * FAN * LEVELS_MAX


@njit(cache=True)
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


@njit(cache=True)
def is_inside_texts(boxes: Boxes, text: U8, x: I64, side: Int, shape: Int, data: Int, room: Int, position: Int) -> bool:
    """Whether a vector lies within the exact ends of a box's text ranges, where its codes tie with theirs."""
    arena = boxes.arena
    dims = arena[shape + DIMS]
    for t in range(arena[shape + TEXTS]):
        place = arena[shape + SHAPE_FIELDS + dims + t]
        axis = arena[shape + SHAPE_FIELDS + place]
        code, start, stop = x[side, axis, CODE], x[side, axis, TEXT_START], x[side, axis, TEXT_STOP]
        at = data + (2 * dims + EXTRA_COLUMNS + TEXT_COLUMNS * t) * room + position
        for end in range(2):
            key = arena[at + 2 * end * room]
            if key >= 0 and arena[data + (2 * place + end) * room + position] == code:
                order = compare_texts(text, start, stop, boxes.bytes, key >> 1, arena[at + (2 * end + 1) * room])
                if (order < 0 if end == 0 else order > 0) or (order == 0 and key & 1 == 0):
                    return False
    return True


@njit(cache=True)
def report(
    boxes: Boxes,
    text: U8,
    x: I64,
    cell: Int,
    first: Int,
    old: Int,
    new: Int,
    changed: Int,
    hits: I64,
    count: Int,
) -> Int:
    """Writes the boxes at positions from `first` whose bits are set; the new count of hits, or -1."""
    arena = boxes.arena
    shape, data, room = arena[cell + SHAPE], arena[cell + DATA], arena[cell + ROOM]
    dims, texts = arena[shape + DIMS], arena[shape + TEXTS]
    owners = data + (2 * dims + OWNER) * room
    left = old | new
    while left:
        j = lowest_bit(left)
        left &= left - 1
        position = first + j
        bits = (old >> j & 1) * OLD | (new >> j & 1) * NEW
        if texts:
            if bits & OLD and not is_inside_texts(boxes, text, x, 0, shape, data, room, position):
                bits &= NEW
            if bits & NEW and not is_inside_texts(boxes, text, x, 1, shape, data, room, position):
                bits &= OLD
            if bits == 0:
                continue
        if bits == OLD | NEW and arena[owners + (BOX_MASK - OWNER) * room + position] & changed == 0:
            continue
        if count >= hits.shape[0]:
            return -1
        hits[count, 0] = arena[owners + position]
        hits[count, 1] = bits
        hits[count, 2] = arena[owners + (BOX - OWNER) * room + position]
        count += 1
    return count


@njit(cache=True)
def visit(boxes: Boxes, text: U8, x: I64, cell: Int, sides: Int, changed: Int, hits: I64, count: Int) -> Int:
    """Finds the boxes of a cell that hold the vectors in `sides`."""
    arena = boxes.arena
    words, work = pointer(arena), pointer(boxes.work)
    shape, data, room = arena[cell + SHAPE], arena[cell + DATA], arena[cell + ROOM]
    dims = arena[shape + DIMS]
    for d in range(dims):
        axis = arena[shape + SHAPE_FIELDS + d]
        work[d], work[dims + d] = x[0, axis, CODE], x[1, axis, CODE]
        if x[0, axis, VALID] == 0:
            sides &= NEW
        if x[1, axis, VALID] == 0:
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
    while depth:
        depth -= 1
        level, block = work[stack + 2 * depth], work[stack + 2 * depth + 1]
        base = arena[tree + TREE_FIELDS + 2 * level]
        entries = arena[tree + TREE_FIELDS + 2 * level + 1]
        first = block << FAN_BITS
        n = min(FAN, entries - first)
        met = scan(words, base + first, entries, n, dims, work, one)
        if is_pair:
            met |= scan(words, base + first, entries, n, dims, work, dims)
        while met:
            child = first + lowest_bit(met)
            met &= met - 1
            if level:
                work[stack + 2 * depth], work[stack + 2 * depth + 1] = level - 1, child
                depth += 1
                continue
            start = child << LEAF_BITS
            n = min(LEAF, packed - start)
            old = scan(words, data + start, room, n, dims, work, one)
            new = scan(words, data + start, room, n, dims, work, dims) if is_pair else old
            if (old & old_mask) | (new & new_mask):
                count = report(boxes, text, x, cell, start, old & old_mask, new & new_mask, changed, hits, count)
                if count < 0:
                    return -1
    for start in range(packed, used, LEAF):
        n = min(LEAF, used - start)
        old = scan(words, data + start, room, n, dims, work, one)
        new = scan(words, data + start, room, n, dims, work, dims) if is_pair else old
        if (old & old_mask) | (new & new_mask):
            count = report(boxes, text, x, cell, start, old & old_mask, new & new_mask, changed, hits, count)
            if count < 0:
                return -1
    return count


@njit(cache=True)
def visit_bucket(boxes: Boxes, text: U8, x: I64, bucket: Int, sides: Int, changed: Int, hits: I64, count: Int) -> Int:
    cell = first_cell(boxes, bucket)
    for _ in range(boxes.arena[bucket + BUCKET_CELLS]):
        if sides != OLD | NEW or boxes.arena[cell + MASK] & changed != 0:
            count = visit(boxes, text, x, cell, sides, changed, hits, count)
            if count < 0:
                return -1
        cell += CELL_FIELDS
    return count


@njit(cache=True)
def stab(boxes: Boxes, text: U8, x: I64, has: I64, changed: Int, hits: I64) -> Int:
    """Writes (owner, OLD | NEW, box) of every box that holds the old vector x[0] or the new one x[1]; how many there are.

    x: [2, axes, VECTOR_FIELDS], texts lie in `text`; has[i]: whether there is such a vector. `changed` has bit (axis & 63)
    for axes that differ between the two, and is ignored unless both are there: a box that holds both is left out if none
    of its axes has changed. A box is there at most once; -1 if `hits` is too small.
    """
    sets = boxes.sets
    is_both = has[0] != 0 and has[1] != 0
    count = 0
    of = 0
    while of < boxes.head[SETS_STOP]:
        if sets[of + SET_BUCKETS] and not (is_both and sets[of + SET_WATCH] & changed == 0):
            old = find_bucket(boxes, of, text, x, 0) if has[0] else NOWHERE
            if is_both and sets[of + SET_MASK] & changed == 0:
                new = old
            else:
                new = find_bucket(boxes, of, text, x, 1) if has[1] else NOWHERE
            if old == new:
                if old != NOWHERE:
                    count = visit_bucket(boxes, text, x, old, OLD | NEW, changed, hits, count)
            else:
                if old != NOWHERE:
                    count = visit_bucket(boxes, text, x, old, OLD, changed, hits, count)
                if new != NOWHERE and count >= 0:
                    count = visit_bucket(boxes, text, x, new, NEW, changed, hits, count)
            if count < 0:
                return -1
        of += SET_FIELDS + sets[of + SET_AXES]
    return count
