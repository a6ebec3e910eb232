"""Rows of all tables, each kept once and known by number; compiled loops read codes, equality codes and texts from here.

A *version* is one state of one row: it never changes. Updating a row makes a new version; the old one is freed when the
micro-batch is over, unless somebody has pinned it. A version's record is a run of int64 words:

    table | start of text | valid bits .. | codes .. | equality codes .. | ends of texts ..

- code of a column: its order-preserving int64 code (`tidings.model.codes`); of TEXT only the first eight bytes.
- equality code: equal for equal values. For TEXT and BINARY it is a hash of the text, so a hit must be verified (`same_text`);
  for all other types it is the code itself.
- text: the value as it stands in a line of output, JSON quotes and escapes included; values follow each other without
  separators. Equal values have equal texts.

Versions live in pages of one table each, so that all versions of a table can be visited without touching others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.handles import array_at, half_array_at, half_table_at, table_at, text_array_at
from tidings.kernels.jit import CHECKED, kernel

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
Int = Any
"""An integer inside compiled code."""

NONE = -1
NOWHERE = -(1 << 60)
"""So far outside of any array that indices near it are outside, too."""
PAGE_BITS = 8
PAGE = 1 << PAGE_BITS
"""Versions a page holds."""

# Kinds of columns.
EXACT, TEXT, BINARY = 0, 1, 2

# Fields of a table's layout: how many columns, words a record takes, where parts of a record begin, first page, free list, how
# many rows are current, whether rows ever are.
COLUMNS, WIDTH, VALID, CODES, EQUALS, ENDS, FIRST_PAGE, FREE, LIVE, IS_KEPT, LAYOUT_FIELDS = range(11)
# Fields of every record before its valid bits.
RECORD_TABLE, RECORD_TEXT, RECORD_VALID = 0, 1, 2


class Rows(NamedTuple):
    """All versions of all rows. Arrays are replaced when they grow: ask the store for them anew for every call."""

    page_base: I64
    """[pages]: where a page's records begin in `words`."""
    page_table: I32
    """[pages]: the table of a page."""
    page_next: I32
    """[pages]: the next page of the same table, or NONE."""
    words: I64
    """Records."""
    text: U8
    """Texts of values."""
    alive: U8
    """[versions]: whether there is such a version."""
    pins: I32
    """[versions]: holders that want the version kept although the row has changed or gone."""
    since: I64
    """[versions]: the event of this micro-batch that brought it, NONE if it was there before."""
    until: I64
    """[versions]: the event of this micro-batch that replaced or deleted it; the largest int64 while it is current."""
    layout: I64
    """[tables, LAYOUT_FIELDS]."""
    kinds: I32
    """[tables, columns at most]: EXACT, TEXT or BINARY."""
    keys: I32
    """[tables, columns at most]: columns of the primary key, then NONE."""


@kernel
def rows_at(handles: I64) -> Rows:
    """The rows whose arrays have these handles, in the order of their fields."""
    return Rows(
        array_at(handles, 0),
        half_array_at(handles, 1),
        half_array_at(handles, 2),
        array_at(handles, 3),
        text_array_at(handles, 4),
        text_array_at(handles, 5),
        half_array_at(handles, 6),
        array_at(handles, 7),
        array_at(handles, 8),
        table_at(handles, 9),
        half_table_at(handles, 10),
        half_table_at(handles, 11),
    )


@kernel
def table_of(rows: Rows, version: Int) -> Int:
    return rows.page_table[version >> PAGE_BITS]


@kernel
def record_of(rows: Rows, version: Int) -> Int:
    """Where the version's record begins in `words`. Of NONE, too, which must not be read."""
    if CHECKED:
        if version == NONE:
            return np.int64(NOWHERE)
        if rows.alive[version] == 0:
            raise IndexError("a version of a row is used that has been freed")
    return place_of(rows, version)


@kernel
def place_of(rows: Rows, version: Int) -> Int:
    """`record_of` for versions that may be free."""
    page = version >> PAGE_BITS
    width = rows.layout[rows.page_table[page], WIDTH]
    return rows.page_base[page] + (version & (PAGE - 1)) * width


@kernel
def is_valid(rows: Rows, record: Int, column: Int) -> bool:
    """Whether the value is not null."""
    return (rows.words[record + RECORD_VALID + (column >> 6)] >> (column & 63)) & 1 != 0


@kernel
def code_at(rows: Rows, record: Int, table: Int, column: Int) -> Int:
    return rows.words[record + rows.layout[table, CODES] + column]


@kernel
def equal_at(rows: Rows, record: Int, table: Int, column: Int) -> Int:
    """The equality code."""
    return rows.words[record + rows.layout[table, EQUALS] + column]


@kernel
def text_at(rows: Rows, record: Int, table: Int, column: Int) -> tuple[Int, Int]:
    """(start, stop) of the value's text in `rows.text`."""
    first = record + rows.layout[table, ENDS]
    start = rows.words[record + RECORD_TEXT]
    begin = start + (rows.words[first + column - 1] if column else 0)
    return begin, start + rows.words[first + column]


@kernel
def same_bytes(a: U8, a_start: Int, a_stop: Int, b: U8, b_start: Int, b_stop: Int) -> bool:
    if a_stop - a_start != b_stop - b_start:
        return False
    for i in range(a_stop - a_start):
        if a[a_start + i] != b[b_start + i]:
            return False
    return True


@kernel
def same_text(rows: Rows, record: Int, table: Int, column: Int, other: U8, start: Int, stop: Int) -> bool:
    """Whether the value's text is the given one: verifies a hit by equality codes of TEXT."""
    begin, end = text_at(rows, record, table, column)
    return same_bytes(rows.text, begin, end, other, start, stop)


@kernel
def same_value(rows: Rows, a: Int, b: Int, table: Int, column: Int) -> bool:
    """Whether two records of one table agree in a column; null is as null."""
    valid = is_valid(rows, a, column)
    if valid != is_valid(rows, b, column):
        return False
    if not valid:
        return True
    if equal_at(rows, a, table, column) != equal_at(rows, b, table, column):
        return False
    if rows.kinds[table, column] == EXACT:
        return True
    start, stop = text_at(rows, b, table, column)
    return same_text(rows, a, table, column, rows.text, start, stop)


@kernel
def joins_with(rows: Rows, a: Int, a_table: Int, a_column: Int, b: Int, b_table: Int, b_column: Int) -> bool:
    """Whether values of two records, of columns of one type, are equal and not null."""
    if not is_valid(rows, a, a_column) or not is_valid(rows, b, b_column):
        return False
    if equal_at(rows, a, a_table, a_column) != equal_at(rows, b, b_table, b_column):
        return False
    if rows.kinds[a_table, a_column] == EXACT:
        return True
    start, stop = text_at(rows, b, b_table, b_column)
    return same_text(rows, a, a_table, a_column, rows.text, start, stop)


_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@kernel
def mix(seed: Int, value: Int) -> Int:
    """A step of hashing int64 numbers: mix(mix(seed, a), b) is a hash of (a, b)."""
    mixed = (np.uint64(seed) ^ np.uint64(value)) * _FACTOR
    mixed ^= mixed >> _SHIFT
    mixed *= _SEED
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed)


@kernel
def hash_bytes(data: U8, start: Int, stop: Int) -> Int:
    """Hash of a text; the equality code of TEXT and BINARY values."""
    hashed = np.int64(stop - start)
    at = start
    while at + 8 <= stop:
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(data[at + i]) << np.uint64(8 * i)
        hashed = mix(hashed, np.int64(word))
        at += 8
    if at < stop:
        word = np.uint64(0)
        for i in range(stop - at):
            word |= np.uint64(data[at + i]) << np.uint64(8 * i)
        hashed = mix(hashed, np.int64(word))
    return hashed


@kernel
def _text_byte(text: U8, at: Int) -> tuple[Int, Int]:
    """(byte of the value, next place) at a place inside a JSON string; escapes as Python's encoder writes them."""
    byte = np.int64(text[at])
    if byte != 92:
        return byte, at + 1
    kind = text[at + 1]
    if kind == 110:
        return np.int64(10), at + 2
    if kind == 116:
        return np.int64(9), at + 2
    if kind == 114:
        return np.int64(13), at + 2
    if kind == 98:
        return np.int64(8), at + 2
    if kind == 102:
        return np.int64(12), at + 2
    if kind == 117:
        value = np.int64(0)
        for i in range(2, 6):
            digit = np.int64(text[at + i])
            value = value * 16 + (digit - 48 if digit < 58 else (digit | 32) - 87)
        return value, at + 6
    return np.int64(kind), at + 2


@kernel
def compare_texts(a: U8, a_start: Int, a_stop: Int, b: U8, b_start: Int, b_stop: Int) -> Int:
    """-1, 0 or 1: order of two JSON strings (quotes included) by their values, in code points."""
    i, j = a_start + 1, b_start + 1
    while i < a_stop - 1 and j < b_stop - 1:
        x, i = _text_byte(a, i)
        y, j = _text_byte(b, j)
        if x != y:
            return -1 if x < y else 1
    if i < a_stop - 1:
        return 1
    return -1 if j < b_stop - 1 else 0


@kernel
def compare_keys(rows: Rows, a: Int, b: Int, table: Int) -> Int:
    """-1, 0 or 1: order of two records of one table by primary key: the order of ties and of joined rows."""
    for i in range(rows.keys.shape[1]):
        column = rows.keys[table, i]
        if column == NONE:
            break
        x, y = code_at(rows, a, table, column), code_at(rows, b, table, column)
        if x != y:
            return -1 if x < y else 1
        if rows.kinds[table, column] == TEXT:
            a_start, a_stop = text_at(rows, a, table, column)
            b_start, b_stop = text_at(rows, b, table, column)
            order = compare_texts(rows.text, a_start, a_stop, rows.text, b_start, b_stop)
            if order != 0:
                return order
    return 0


@kernel
def is_current(rows: Rows, version: Int, event: Int) -> bool:
    """Whether the version was in its table just after the event of this micro-batch (NONE: before the first)."""
    return rows.alive[version] != 0 and rows.since[version] <= event and event < rows.until[version]
