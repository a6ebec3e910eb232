"""Whether a row lies in a box, read from both where they lie: a new subscription is compared with every current row."""

from __future__ import annotations

import numpy as np
from numba import njit

from tidings.kernels.rows import (
    COLUMNS,
    FIRST_PAGE,
    I64,
    NONE,
    PAGE,
    PAGE_BITS,
    Int,
    Rows,
    code_at,
    compare_texts,
    equal_at,
    is_current,
    is_valid,
    record_of,
    same_text,
    text_at,
)
from tidings.kernels.stabbing import Boxes
from tidings.kernels.stabbing.layout import (
    BUCKET_FIELDS,
    BUCKET_SET,
    DATA,
    DIMS,
    EXTRA_COLUMNS,
    OFFSET,
    POSITION,
    ROOM,
    SET_AXES,
    SET_FIELDS,
    SHAPE,
    SHAPE_FIELDS,
    TEXT_COLUMNS,
    TEXTS,
)


@njit(cache=True)
def _has_constants(boxes: Boxes, bucket: Int, rows: Rows, record: Int, table: Int, first_axis: Int) -> bool:
    of = boxes.arena[bucket + BUCKET_SET]
    n = boxes.sets[of + SET_AXES]
    for i in range(n):
        column = boxes.sets[of + SET_FIELDS + i] - first_axis
        if column == rows.layout[table, COLUMNS]:
            # The axis of the table itself.
            continue
        if not is_valid(rows, record, column):
            return False
        if equal_at(rows, record, table, column) != boxes.arena[bucket + BUCKET_FIELDS + i]:
            return False
        at = bucket + BUCKET_FIELDS + n + 2 * i
        if boxes.arena[at] >= 0 and not same_text(
            rows, record, table, column, boxes.bytes, boxes.arena[at], boxes.arena[at + 1]
        ):
            return False
    return True


@njit(cache=True)
def _is_in_ranges(boxes: Boxes, cell: Int, position: Int, rows: Rows, record: Int, table: Int, first_axis: Int) -> bool:
    arena = boxes.arena
    shape, data, room = arena[cell + SHAPE], arena[cell + DATA], arena[cell + ROOM]
    dims = arena[shape + DIMS]
    for d in range(dims):
        column = arena[shape + SHAPE_FIELDS + d] - first_axis
        code = code_at(rows, record, table, column)
        at = data + 2 * d * room + position
        if not is_valid(rows, record, column) or code < arena[at] or code > arena[at + room]:
            return False
    for t in range(arena[shape + TEXTS]):
        place = arena[shape + SHAPE_FIELDS + dims + t]
        start, stop = text_at(rows, record, table, arena[shape + SHAPE_FIELDS + place] - first_axis)
        at = data + (2 * dims + EXTRA_COLUMNS + TEXT_COLUMNS * t) * room + position
        for end in range(2):
            key = arena[at + 2 * end * room]
            if key >= 0:
                order = compare_texts(rows.text, start, stop, boxes.bytes, key >> 1, arena[at + (2 * end + 1) * room])
                if (order < 0 if end == 0 else order > 0) or (order == 0 and key & 1 == 0):
                    return False
    return True


@njit(cache=True)
def find_rows(
    rows: Rows,
    boxes: Boxes,
    next_box: I64,
    first: Int,
    table: Int,
    first_axis: Int,
    event: Int,
    changes: I64,
    count: Int,
) -> Int:
    """Appends inserts of the rows, current just after an event, that a chain of boxes holds; their end, -1 if out of room."""
    page = np.int64(rows.layout[table, FIRST_PAGE])
    while page != NONE:
        for version in range(page << PAGE_BITS, (page << PAGE_BITS) + PAGE):
            if not is_current(rows, version, event):
                continue
            record = record_of(rows, version)
            box = first
            while box != NONE:
                place = boxes.places[box]
                cell = boxes.cells[place >> 32]
                bucket = cell - boxes.arena[cell + OFFSET]
                if _has_constants(boxes, bucket, rows, record, table, first_axis) and _is_in_ranges(
                    boxes, cell, place & POSITION, rows, record, table, first_axis
                ):
                    if count >= changes.shape[0]:
                        return -1
                    changes[count, 0], changes[count, 1] = NONE, version
                    count += 1
                    break
                box = next_box[box]
        page = np.int64(rows.page_next[page])
    return count


@njit(cache=True)
def count_versions(rows: Rows, table: Int) -> Int:
    """How many versions the pages of a table have room for."""
    count = 0
    page = np.int64(rows.layout[table, FIRST_PAGE])
    while page != NONE:
        count += PAGE
        page = np.int64(rows.page_next[page])
    return count
