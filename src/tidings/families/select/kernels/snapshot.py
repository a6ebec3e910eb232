"""What a new subscription starts with: its boxes are compared with every current row, both read where they lie."""

from __future__ import annotations

import numpy as np
from numba import carray

from tidings.families.select.kernels.table import (
    TableRows,
    are_same,
    has_value,
    is_there,
    table_rows,
    text_span,
)
from tidings.kernels.jit import kernel
from tidings.kernels.rows import FIRST_PAGE, I64, NONE, PAGE, PAGE_BITS, Int, Rows, compare_texts
from tidings.kernels.stabbing import Boxes
from tidings.kernels.stabbing.stabbing_layout import (
    BUCKET_FIELDS,
    BUCKET_SET,
    CODE_MAX,
    CODE_MIN,
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
    Pointers,
    pointers_of,
)


@kernel
def _has_constants(p: Pointers, bucket: Int, t: TableRows, record: Int, first_axis: Int) -> bool:
    of = p.arena[bucket + BUCKET_SET]
    n = p.sets[of + SET_AXES]
    for i in range(n):
        column = p.sets[of + SET_FIELDS + i] - first_axis
        if column == t.columns:
            # The axis of the table itself.
            continue
        if column > t.columns:
            # The axis that says: the column is null.
            if has_value(t, record, column - t.columns - 1):
                return False
            continue
        if t.words[record + t.equals + column] != p.arena[bucket + BUCKET_FIELDS + i] or not has_value(
            t, record, column
        ):
            return False
        at = bucket + BUCKET_FIELDS + n + 2 * i
        if p.arena[at] >= 0:
            start, stop = text_span(t, record, column)
            if not are_same(t.text, start, stop, p.bytes, p.arena[at], p.arena[at + 1]):
                return False
    return True


@kernel
def _is_in_ranges(p: Pointers, cell: Int, position: Int, t: TableRows, record: Int, first_axis: Int) -> bool:
    shape, data, room = p.arena[cell + SHAPE], p.arena[cell + DATA], p.arena[cell + ROOM]
    dims = p.arena[shape + DIMS]
    for d in range(dims):
        column = p.arena[shape + SHAPE_FIELDS + d] - first_axis
        code = t.words[record + t.codes + column]
        at = data + 2 * d * room + position
        if code < p.arena[at] or code > p.arena[at + room] or not has_value(t, record, column):
            return False
    for i in range(p.arena[shape + TEXTS]):
        place = p.arena[shape + SHAPE_FIELDS + dims + i]
        start, stop = text_span(t, record, p.arena[shape + SHAPE_FIELDS + place] - first_axis)
        at = data + (2 * dims + EXTRA_COLUMNS + TEXT_COLUMNS * i) * room + position
        for end in range(2):
            key = p.arena[at + 2 * end * room]
            if key >= 0:
                end_stop = p.arena[at + (2 * end + 1) * room]
                order = compare_texts(carray(t.text, stop), start, stop, carray(p.bytes, end_stop), key >> 1, end_stop)
                if (order < 0 if end == 0 else order > 0) or (order == 0 and key & 1 == 0):
                    return False
    return True


@kernel
def _holds(p: Pointers, cells: I64, places: I64, box: Int, t: TableRows, record: Int, first_axis: Int) -> bool:
    """Whether the box holds the row."""
    cell, position = cells[places[box] >> 32], places[box] & POSITION
    bucket = cell - p.arena[cell + OFFSET]
    return bool(
        _has_constants(p, bucket, t, record, first_axis) and _is_in_ranges(p, cell, position, t, record, first_axis)
    )


@kernel
def _first_condition(p: Pointers, cell: Int, position: Int, t: TableRows, first_axis: Int) -> tuple[Int, Int, Int]:
    """(place in a record, least, largest): what the word there has to be in every row that the box holds."""
    bucket = cell - p.arena[cell + OFFSET]
    of = p.arena[bucket + BUCKET_SET]
    for i in range(p.sets[of + SET_AXES]):
        column = p.sets[of + SET_FIELDS + i] - first_axis
        if column < t.columns:
            code = p.arena[bucket + BUCKET_FIELDS + i]
            return t.equals + column, code, code
    shape = p.arena[cell + SHAPE]
    if p.arena[shape + DIMS]:
        lo = p.arena[cell + DATA] + position
        column = p.arena[shape + SHAPE_FIELDS] - first_axis
        return t.codes + column, p.arena[lo], p.arena[lo + p.arena[cell + ROOM]]
    return t.codes, np.int64(CODE_MIN), np.int64(CODE_MAX)


@kernel
def next_box(following: I64, box: Int) -> Int:
    """The next box of the same subscription, or NONE. Boxes of subscriptions with one box may lie beyond the array."""
    return following[box] if box < len(following) else np.int64(NONE)


@kernel
def find_rows(
    rows: Rows,
    boxes: Boxes,
    vectors: I64,
    following: I64,
    first: Int,
    table: Int,
    first_axis: Int,
    event: Int,
    changes: I64,
    count: Int,
) -> Int:
    """Appends inserts of the rows, current just after an event, that a chain of boxes holds; their end, -1 if out of room.

    Nearly all rows fail the first condition of a box: nothing else of them is read.
    """
    p, t = pointers_of(boxes, rows.text, vectors), table_rows(rows, table)
    cells, places = boxes.cells, boxes.places
    box = first
    while box != NONE:
        field, least, largest = _first_condition(p, cells[places[box] >> 32], places[box] & POSITION, t, first_axis)
        page = np.int64(rows.layout[table, FIRST_PAGE])
        while page != NONE:
            record = t.page_base[page]
            for version in range(page << PAGE_BITS, (page << PAGE_BITS) + PAGE):
                word = t.words[record + field]
                is_found = (
                    least <= word <= largest
                    and is_there(t, version, event)
                    and _holds(p, cells, places, box, t, record, first_axis)
                )
                # A row that several boxes hold is there once.
                other = first
                while is_found and other != box:
                    is_found = not _holds(p, cells, places, other, t, record, first_axis)
                    other = next_box(following, other)
                if is_found:
                    if count >= changes.shape[0]:
                        return -1
                    changes[count, 0], changes[count, 1] = NONE, version
                    count += 1
                record += t.width
            page = np.int64(rows.page_next[page])
        box = next_box(following, box)
    return count


@kernel
def count_versions(rows: Rows, table: Int) -> Int:
    """How many versions the pages of a table have room for."""
    count = 0
    page = np.int64(rows.layout[table, FIRST_PAGE])
    while page != NONE:
        count += PAGE
        page = np.int64(rows.page_next[page])
    return count
