"""The rows of one table as compiled loops see them: pointers, and where the parts of a record are.

Numba counts references to every array of a tuple at every call; where a loop runs over rows or columns this takes longer
than all else, so what is called there gets pointers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel
from tidings.kernels.rows import (
    CODES,
    COLUMNS,
    ENDS,
    EQUALS,
    EXACT,
    PAGE,
    PAGE_BITS,
    RECORD_TEXT,
    RECORD_VALID,
    WIDTH,
    Int,
    Rows,
)


class TableRows(NamedTuple):
    words: Any
    text: Any
    page_base: Any
    alive: Any
    since: Any
    until: Any
    kinds: Any
    first_kind: Int
    """Where in `kinds` those of the table's columns begin."""
    columns: Int
    width: Int
    codes: Int
    equals: Int
    ends: Int


@kernel
def table_rows(rows: Rows, table: Int) -> TableRows:
    layout = rows.layout
    return TableRows(
        pointer(rows.words),
        pointer(rows.text),
        pointer(rows.page_base),
        pointer(rows.alive),
        pointer(rows.since),
        pointer(rows.until),
        pointer(rows.kinds),
        table * rows.kinds.shape[1],
        layout[table, COLUMNS],
        layout[table, WIDTH],
        layout[table, CODES],
        layout[table, EQUALS],
        layout[table, ENDS],
    )


@kernel
def record_at(t: TableRows, version: Int) -> Int:
    return t.page_base[version >> PAGE_BITS] + (version & (PAGE - 1)) * t.width


@kernel
def is_there(t: TableRows, version: Int, event: Int) -> bool:
    """Whether the version was in its table just after the event of this micro-batch."""
    return bool(t.alive[version] != 0 and t.since[version] <= event and event < t.until[version])


@kernel
def has_value(t: TableRows, record: Int, column: Int) -> Int:
    """1 if the value is not null."""
    return (t.words[record + RECORD_VALID + (column >> 6)] >> (column & 63)) & 1


@kernel
def text_span(t: TableRows, record: Int, column: Int) -> tuple[Int, Int]:
    """(start, stop) of a value's text."""
    start = t.words[record + RECORD_TEXT]
    begin = start + (t.words[record + t.ends + column - 1] if column else 0)
    return begin, start + t.words[record + t.ends + column]


@kernel
def are_same(a: Any, a_start: Int, a_stop: Int, b: Any, b_start: Int, b_stop: Int) -> bool:
    """Whether two texts are."""
    if a_stop - a_start != b_stop - b_start:
        return False
    for i in range(a_stop - a_start):
        if a[a_start + i] != b[b_start + i]:
            return False
    return True


@kernel
def differs(t: TableRows, a: Int, b: Int, column: Int) -> bool:
    """Whether two records have different values; null is as null."""
    valid = has_value(t, a, column)
    if valid != has_value(t, b, column):
        return True
    if not valid:
        return False
    if t.words[a + t.equals + column] != t.words[b + t.equals + column]:
        return True
    if t.kinds[t.first_kind + column] == EXACT:
        return False
    a_start, a_stop = text_span(t, a, column)
    b_start, b_stop = text_span(t, b, column)
    return not are_same(t.text, a_start, a_stop, t.text, b_start, b_stop)
