"""Conditions of single boxes, read back: does a box hold a vector on some of the axes, and which ranges does it have there?

For callers that know which boxes to ask, and have only part of a vector.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, Int
from tidings.kernels.stabbing.stabbing_layout import (
    BUCKET_FIELDS,
    BUCKET_SET,
    CODE,
    CODE_MAX,
    CODE_MIN,
    DATA,
    DIMS,
    EQUAL,
    KIND_FIELDS,
    KIND_MASK,
    NEW,
    OFFSET,
    OLD,
    OWNER,
    OWNER_BITS,
    POSITION,
    ROOM,
    SET_AXES,
    SET_FIELDS,
    SHAPE,
    SHAPE_FIELDS,
    TEXT_START,
    TEXT_STOP,
    TEXTS,
    VALID,
    VECTOR_FIELDS,
    Boxes,
    Pointers,
)
from tidings.kernels.stabbing.stabbing_query import is_inside_texts


@kernel
def holds(cells: I64, places: I64, p: Pointers, box: Int, first: Int, stop: Int, vector: Int) -> bool:
    """Whether a vector satisfies the conditions of a box on axes first:stop, which alone need be filled.

    Ends of text ranges count as their codes do: `exact_sides` has the last word on them. cells, places: of the index.
    """
    arena, x = p.arena, p.x
    cell, position = cells[places[box] >> 32], places[box] & POSITION
    shape, data, room = arena[cell + SHAPE], arena[cell + DATA], arena[cell + ROOM]
    begin = vector * p.axis_words
    for d in range(arena[shape + DIMS]):
        axis = arena[shape + SHAPE_FIELDS + d]
        if first <= axis < stop:
            value, lo = begin + axis * VECTOR_FIELDS, data + 2 * d * room + position
            code = x[value + CODE]
            if x[value + VALID] == 0 or code < arena[lo] or arena[lo + room] < code:
                return False
    bucket = cell - arena[cell + OFFSET]
    of = arena[bucket + BUCKET_SET]
    n = p.sets[of + SET_AXES]
    for i in range(n):
        axis = p.sets[of + SET_FIELDS + i]
        if first <= axis < stop:
            value = begin + axis * VECTOR_FIELDS
            if x[value + VALID] == 0 or x[value + EQUAL] != arena[bucket + BUCKET_FIELDS + i]:
                return False
            text = bucket + BUCKET_FIELDS + n + 2 * i
            start = arena[text]
            if start >= 0:
                length, other = arena[text + 1] - start, x[value + TEXT_START]
                if x[value + TEXT_STOP] - other != length:
                    return False
                for j in range(length):
                    if p.bytes[start + j] != p.text[other + j]:
                        return False
    return True


@kernel
def exact_sides(cells: I64, places: I64, p: Pointers, box: Int, sides: Int) -> Int:
    """Which of the vectors OLD | NEW that a box holds by their codes it does hold."""
    arena = p.arena
    cell, position = cells[places[box] >> 32], places[box] & POSITION
    shape, data, room = arena[cell + SHAPE], arena[cell + DATA], arena[cell + ROOM]
    if arena[shape + TEXTS]:
        if sides & OLD and not is_inside_texts(p, np.int64(0), shape, data, room, position):
            sides &= NEW
        if sides & NEW and not is_inside_texts(p, np.int64(1), shape, data, room, position):
            sides &= OLD
    return sides


@kernel
def owner_and_mask(cells: I64, places: I64, p: Pointers, box: Int) -> tuple[Int, Int]:
    """The owner of a box, and the mask of axes that matter to it."""
    arena = p.arena
    cell, position = cells[places[box] >> 32], places[box] & POSITION
    shape, room = arena[cell + SHAPE], arena[cell + ROOM]
    at = arena[cell + DATA] + 2 * arena[shape + DIMS] * room + position
    word = arena[at + OWNER * room]
    return word & OWNER_BITS, p.kinds[(word >> 32) * KIND_FIELDS + KIND_MASK]


@kernel
def ranges_of(boxes: Boxes, numbers: I64, axes: I64, is_equal: I64) -> I64:
    """[boxes, 2 * axes]: lo, hi, lo, hi .. of boxes on some axes; all codes where a box has no such condition.

    Of axis i the range, or where is_equal[i] the equality code, which is both ends.
    """
    arena = boxes.arena
    ends = np.empty((len(numbers), 2 * len(axes)), np.int64)
    for row in range(len(numbers)):
        place = boxes.places[numbers[row]]
        cell, position = boxes.cells[place >> 32], place & POSITION
        shape, data, room = arena[cell + SHAPE], arena[cell + DATA], arena[cell + ROOM]
        bucket = cell - arena[cell + OFFSET]
        of = arena[bucket + BUCKET_SET]
        for i in range(len(axes)):
            lo, hi = np.int64(CODE_MIN), np.int64(CODE_MAX)
            if is_equal[i]:
                for j in range(boxes.sets[of + SET_AXES]):
                    if boxes.sets[of + SET_FIELDS + j] == axes[i]:
                        lo = hi = arena[bucket + BUCKET_FIELDS + j]
            else:
                for d in range(arena[shape + DIMS]):
                    if arena[shape + SHAPE_FIELDS + d] == axes[i]:
                        lo, hi = arena[data + 2 * d * room + position], arena[data + (2 * d + 1) * room + position]
            ends[row, 2 * i], ends[row, 2 * i + 1] = lo, hi
    return ends
