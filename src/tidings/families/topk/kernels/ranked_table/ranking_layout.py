"""Where all that is known about one (table, rank column, direction) lies in memory, and how compiled loops see it.

`Ranking` has the arrays. Kernels are given their handles (tidings.kernels.handles). What is called per row or list gets a
`View` of pointers, to the table's rows as well (see tidings.kernels.intrinsics.pointer).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import carray

from tidings.kernels import extents
from tidings.kernels.buddy import CLASSES, EXTENT_FIELDS, extent_free, extent_new
from tidings.kernels.extents import class_for
from tidings.kernels.handles import bytes_at, halves_at, words_at
from tidings.kernels.jit import kernel
from tidings.kernels.rows import (
    CODES,
    ENDS,
    EQUALS,
    EXACT,
    I32,
    I64,
    NONE,
    PAGE,
    PAGE_BITS,
    RECORD_TEXT,
    RECORD_VALID,
    TEXT,
    U8,
    WIDTH,
    Int,
    compare_texts,
)
from tidings.kernels.stabbing import Boxes

CODE_MIN, CODE_MAX = -(2**63), 2**63 - 1
BLOCK = 128
"""Rows that a block of an order has room for."""
RANGES_MAX = 8

# Fields of `head` behind those of extents: what the rank is, columns of the table; end and free chain of row numbers; end of
# orders in use; end and free chain of blocks; the number of the last event looked at. Then the free lists of extents.
TABLE, RANK_COLUMN, IS_DESCENDING, COLUMNS, ROW_TOP, ROW_FREE, ORDER_TOP, BLOCK_TOP, BLOCK_FREE, STAMP, FREE_LISTS = (
    range(EXTENT_FIELDS, EXTENT_FIELDS + 11)
)
HEAD_FIELDS = FREE_LISTS + CLASSES
CLASS_MIN = 2
"""Class of the smallest extents, of words."""

# Fields of a block, each [BLOCK]; then codes of range columns.
HASH, RANK, ROW, STORED = range(4)
# Fields of an order: forms that use it (0: it is free), directory in `words` and its room, blocks, rows; how many equality
# columns, then these.
USERS, DIRECTORY, DIRECTORY_ROOM, BLOCKS, ROWS, EQUAL_COLUMNS, ORDER_FIELDS = range(7)

# Fields of a plan, which all subscriptions of a form share: subscriptions (0: it is free), order, k, rows a list may hold,
# mask of shown columns, whether these tell rows apart, whether one is a DOUBLE, ranges; then range columns, then the places
# of these in blocks.
MEMBERS, ORDER, K, CAPACITY, SHOWN, SHOWS_KEY, RANGES, RANGE_COLUMNS = range(8)
PLACES = RANGE_COLUMNS + RANGES_MAX
PLAN_FIELDS = PLACES + RANGES_MAX

# Fields of a list: subscription (NONE: it is free), plan, extent of its rows and how many there is room for, rows, whether
# these are all, highest rank that matters, constants and their words, channels (values of equality columns); what an event
# has touched.
SLOT, PLAN, START, ROOM, SIZE, IS_COMPLETE, HIGH, CONSTANTS, CONSTANT_WORDS, CHANNELS, TOUCHED, BITS, LIST_FIELDS = (
    range(13)
)
# Constants: (lo, hi) of each range; then per channel these fields, and (code, start, stop of the text or NONE) per column;
# then the texts. A held row is two words, its rank and its number.
CHANNEL_HASH, CHANNEL_BOX, CHANNEL_FIELDS = range(3)


# Places of the arrays of a ranking in the table of addresses; then rows of its table, boxes, `evaluate.Work`, lives and
# projections.
HEAD, ROW_OF, CURRENT, TIE, WORDS, BYTES, BLOCK_POOL, BLOCK_SIZE, ORDERS, STORED_COLUMNS, PLANS, LISTS = range(12)
RECORDS, TEXTS, PAGE_BASE, KINDS, KEYS, LAYOUT = range(12, 18)
FIRST_OF_BOXES = 18
FIRST_OF_WORK = FIRST_OF_BOXES + len(Boxes._fields)


class Ranking(NamedTuple):
    """State of one (table, rank column, direction). Arrays are replaced when they grow."""

    head: I64
    row_of: I32
    """[versions]: number of the row that a current version is a state of."""
    current: I64
    """[rows]: the row's version; free numbers are chained as -2 - next."""
    tie: I64
    """[rows]: code of the first key column, which decides most comparisons of keys."""
    words: I64
    """Extents of 4, 8, 16 .. words: directories of orders, rows that lists hold, constants of subscriptions."""
    bytes: U8
    """The same memory, for texts."""
    blocks: I64
    """[blocks, STORED + range columns, BLOCK]."""
    block_size: I64
    """[blocks]: rows in each; free ones are chained as -2 - next."""
    orders: I64
    """Records of ORDER_FIELDS + columns words; here and in the next two a number is where a record begins."""
    stored: I64
    """[range columns]: columns whose codes blocks have."""
    plans: I64
    """Records of PLAN_FIELDS words."""
    lists: I64
    """Records of LIST_FIELDS words."""


class View(NamedTuple):
    """Pointers to the arrays of a ranking and to the rows of its table, sizes, and where parts of a record are."""

    head: Any
    row_of: Any
    current: Any
    tie: Any
    words: Any
    bytes: Any
    blocks: Any
    blocks_room: Int
    block_fields: Int
    block_size: Any
    orders: Any
    order_fields: Int
    stored: Any
    plans: Any
    lists: Any
    records: Any
    text: Any
    page_base: Any
    kinds: Any
    keys: Any
    width: Int
    codes: Int
    equals: Int
    ends: Int


@kernel
def view_at(handles: I64) -> View:
    """Pointers to the arrays of a ranking and to rows of its table."""
    head, layout = words_at(handles[HEAD, 0]), words_at(handles[LAYOUT, 0])
    head[extents.CAPACITY] = handles[WORDS, 1]
    fields = STORED + handles[STORED_COLUMNS, 1]
    return View(
        head,
        halves_at(handles[ROW_OF, 0]),
        words_at(handles[CURRENT, 0]),
        words_at(handles[TIE, 0]),
        words_at(handles[WORDS, 0]),
        bytes_at(handles[BYTES, 0]),
        words_at(handles[BLOCK_POOL, 0]),
        handles[BLOCK_SIZE, 1],
        fields,
        words_at(handles[BLOCK_SIZE, 0]),
        words_at(handles[ORDERS, 0]),
        ORDER_FIELDS + head[COLUMNS],
        words_at(handles[STORED_COLUMNS, 0]),
        words_at(handles[PLANS, 0]),
        words_at(handles[LISTS, 0]),
        words_at(handles[RECORDS, 0]),
        bytes_at(handles[TEXTS, 0]),
        words_at(handles[PAGE_BASE, 0]),
        halves_at(handles[KINDS, 0]),
        halves_at(handles[KEYS, 0]),
        layout[WIDTH],
        layout[CODES],
        layout[EQUALS],
        layout[ENDS],
    )


@kernel
def extent_words(words: Int) -> Int:
    """Size of the extent that has room for so many words."""
    return 1 << max(CLASS_MIN, class_for(words))


@kernel
def has_words(v: View, words: Int) -> bool:
    """Whether there is room for so many words more in extents."""
    return extents.has_room(v.head, words)


@kernel
def allocate(v: View, words: Int) -> Int:
    """An extent of at least so many words; the caller has made sure that there is room behind TOP."""
    return extent_new(v.words, v.head, FREE_LISTS, 1, max(CLASS_MIN, class_for(words)))


@kernel
def release(v: View, at: Int, words: Int) -> None:
    """Gives back an extent that was allocated for so many words."""
    extent_free(v.words, v.head, FREE_LISTS, at, max(CLASS_MIN, class_for(words)))


@kernel
def record_at(v: View, version: Int) -> Int:
    return v.page_base[version >> PAGE_BITS] + (version & (PAGE - 1)) * v.width


@kernel
def has_value(v: View, record: Int, column: Int) -> bool:
    """Whether the value is not null."""
    return bool((v.records[record + RECORD_VALID + (column >> 6)] >> (column & 63)) & 1)


@kernel
def text_span(v: View, record: Int, column: Int) -> tuple[Int, Int]:
    """(start, stop) of a value's text."""
    start = v.records[record + RECORD_TEXT]
    begin = start + (v.records[record + v.ends + column - 1] if column else 0)
    return begin, start + v.records[record + v.ends + column]


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
def differs(v: View, a: Int, b: Int, column: Int) -> bool:
    """Whether two records have different values; null is as null."""
    valid = has_value(v, a, column)
    if valid != has_value(v, b, column):
        return True
    if not valid:
        return False
    if v.records[a + v.equals + column] != v.records[b + v.equals + column]:
        return True
    if v.kinds[column] == EXACT:
        return False
    a_start, a_stop = text_span(v, a, column)
    b_start, b_stop = text_span(v, b, column)
    return not are_same(v.text, a_start, a_stop, v.text, b_start, b_stop)


@kernel
def rank_of(v: View, record: Int) -> tuple[bool, Int]:
    """(whether the record has a rank, the rank: lower is earlier)."""
    column = v.head[RANK_COLUMN]
    code = v.records[record + v.codes + column]
    return has_value(v, record, column), ~code if v.head[IS_DESCENDING] else code


@kernel
def _compare_keys(v: View, a: Int, b: Int) -> Int:
    """Order of two rows by all columns of the primary key."""
    one, other = record_at(v, v.current[a]), record_at(v, v.current[b])
    for i in range(v.head[COLUMNS]):
        column = v.keys[i]
        if column == NONE:
            break
        x, y = v.records[one + v.codes + column], v.records[other + v.codes + column]
        if x != y:
            return -1 if x < y else 1
        if v.kinds[column] == TEXT:
            start, stop = text_span(v, one, column)
            other_start, other_stop = text_span(v, other, column)
            order = compare_texts(
                carray(v.text, stop), start, stop, carray(v.text, other_stop), other_start, other_stop
            )
            if order != 0:
                return order
    return 0


@kernel
def key_order(v: View, a: Int, b: Int) -> Int:
    """-1, 0 or 1: order of two rows by primary key."""
    if a == b:
        return 0
    x, y = v.tie[a], v.tie[b]
    if x != y:
        return -1 if x < y else 1
    return _compare_keys(v, a, b)


@kernel
def stands_before(v: View, rank: Int, row: Int, other_rank: Int, other: Int) -> bool:
    if rank != other_rank:
        return bool(rank < other_rank)
    return bool(key_order(v, row, other) < 0)


@kernel
def take_row(v: View, version: Int) -> Int:
    """A number for a new row; there must be room for it."""
    row = v.head[ROW_FREE]
    if row != NONE:
        v.head[ROW_FREE] = -2 - v.current[row]
    else:
        row = v.head[ROW_TOP]
        v.head[ROW_TOP] = row + 1
    v.current[row] = version
    v.row_of[version] = row
    v.tie[row] = v.records[record_at(v, version) + v.codes + v.keys[0]]
    return row


@kernel
def free_row(v: View, row: Int) -> None:
    v.current[row] = -2 - v.head[ROW_FREE]
    v.head[ROW_FREE] = row


@kernel
def take_rows(handles: I64, versions: I64) -> None:
    """Numbers the current rows of a table that nobody looked at before."""
    v = view_at(handles)
    for i in range(versions.shape[0]):
        take_row(v, versions[i])
