"""Rank index: rows of a table in order of (values of some columns, rank, primary key), as a composite B-tree index has them.

All that is known about one (table, rank column, direction) lives in the flat arrays of `Ranking`. Rows have numbers that stay
while versions come and go, so a change of columns that nobody sorts or filters by moves nothing. An *order* lists the rows
for one set of equality columns, sorted by (hash of their equality codes, rank, key): rows of equal values are a run, found by
binary search. Orders are cut into blocks of up to BLOCK rows, column by column; a block has room for the codes of range
columns too, so that a scan for rows within ranges reads memory in sequence.

    order  ->  directory [block, block, ..]        block  hash | rank | row | code of range column 0 | ..   each [BLOCK]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tidings.kernels.rows import (
    I32,
    I64,
    NONE,
    U8,
    Int,
    Rows,
    code_at,
    compare_keys,
    equal_at,
    hash_bytes,
    is_valid,
    mix,
    record_of,
)

CODE_MIN, CODE_MAX = -(2**63), 2**63 - 1

BLOCK = 128
BLOCK_LOW, BLOCK_JOINED = BLOCK // 4, 3 * BLOCK // 4
"""A block with fewer rows is joined with a neighbour, if they have at most so many together."""

# Fields of a block, each [BLOCK]; then codes of range columns.
HASH, RANK, ROW, STORED = range(4)

# Fields of an order: subscriptions' forms that use it (0: it is free), directory in `words` and its room, blocks, rows; how
# many equality columns, then these.
USERS, DIRECTORY, DIRECTORY_ROOM, BLOCKS, ROWS, EQUALS, ORDER_FIELDS = range(7)

# Fields of `head`: what the rank is; end and free chain of row numbers; end of orders in use and of words; end and free
# chain of blocks; the number of the last event looked at. Then a chain of free extents per size.
(
    TABLE,
    RANK_COLUMN,
    IS_DESCENDING,
    COLUMNS,
    ROW_TOP,
    ROW_FREE,
    ORDER_TOP,
    TOP,
    BLOCK_TOP,
    BLOCK_FREE,
    STAMP,
    FREE_LISTS,
) = range(12)
SIZES = 40
HEAD_FIELDS = FREE_LISTS + SIZES
EXTENT_MIN = 4


class Ranking(NamedTuple):
    """State of one (table, rank column, direction), for kernels. Arrays are replaced when they grow."""

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
    """[orders, ORDER_FIELDS + columns]."""
    stored: I64
    """[range columns]: columns whose codes blocks have."""
    plans: I64
    """[forms, PLAN_FIELDS]: see `top_lists`."""
    lists: I64
    """[lists, LIST_FIELDS]: see `top_lists`."""


@njit(cache=True)
def extent_words(words: Int) -> Int:
    """Size of the extent that has room for so many words."""
    size = EXTENT_MIN
    while size < words:
        size <<= 1
    return size


@njit(cache=True)
def _chain_of(words: Int) -> Int:
    chain = FREE_LISTS
    while EXTENT_MIN << (chain - FREE_LISTS) < words:
        chain += 1
    return chain


@njit(cache=True)
def allocate(ranking: Ranking, words: Int) -> Int:
    """An extent of at least so many words; the caller has seen to it that there is room behind TOP."""
    chain = _chain_of(words)
    at = ranking.head[chain]
    if at != NONE:
        ranking.head[chain] = ranking.words[at]
        return at
    at = ranking.head[TOP]
    ranking.head[TOP] = at + (EXTENT_MIN << (chain - FREE_LISTS))
    if ranking.head[TOP] > ranking.words.shape[0]:
        raise MemoryError
    return at


@njit(cache=True)
def release(ranking: Ranking, at: Int, words: Int) -> None:
    """Gives back an extent that was allocated for so many words."""
    chain = _chain_of(words)
    ranking.words[at] = ranking.head[chain]
    ranking.head[chain] = at


@njit(cache=True)
def rank_of(ranking: Ranking, rows: Rows, record: Int) -> tuple[bool, Int]:
    """(whether the record has a rank, the rank: lower is earlier)."""
    table, column = ranking.head[TABLE], ranking.head[RANK_COLUMN]
    code = code_at(rows, record, table, column)
    return is_valid(rows, record, column), ~code if ranking.head[IS_DESCENDING] else code


@njit(cache=True)
def take_row(ranking: Ranking, rows: Rows, version: Int) -> Int:
    """A number for a new row; there must be room for it."""
    row = ranking.head[ROW_FREE]
    if row != NONE:
        ranking.head[ROW_FREE] = -2 - ranking.current[row]
    else:
        row = ranking.head[ROW_TOP]
        ranking.head[ROW_TOP] = row + 1
    table = ranking.head[TABLE]
    ranking.current[row] = version
    ranking.row_of[version] = row
    ranking.tie[row] = code_at(rows, record_of(rows, version), table, rows.keys[table, 0])
    return row


@njit(cache=True)
def free_row(ranking: Ranking, row: Int) -> None:
    ranking.current[row] = -2 - ranking.head[ROW_FREE]
    ranking.head[ROW_FREE] = row


@njit(cache=True)
def take_rows(ranking: Ranking, rows: Rows, versions: I64) -> None:
    """Numbers for the current rows of a table that nobody looked at before."""
    for i in range(versions.shape[0]):
        take_row(ranking, rows, versions[i])


@njit(cache=True)
def key_order(ranking: Ranking, rows: Rows, a: Int, b: Int) -> Int:
    """-1, 0 or 1: order of two rows by primary key."""
    if a == b:
        return 0
    x, y = ranking.tie[a], ranking.tie[b]
    if x != y:
        return -1 if x < y else 1
    first, other = record_of(rows, ranking.current[a]), record_of(rows, ranking.current[b])
    return compare_keys(rows, first, other, ranking.head[TABLE])


@njit(cache=True)
def hash_codes(codes: I64) -> I64:
    """[n, columns] equality codes -> [n] hashes by which orders sort."""
    hashes = np.zeros(codes.shape[0], np.int64)
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            hashes[i] = mix(hashes[i], codes[i, j])
    return hashes


@njit(cache=True)
def hash_texts(text: U8, spans: I64) -> I64:
    """[n, 2] (start, stop) of texts -> [n] equality codes."""
    codes = np.empty(spans.shape[0], np.int64)
    for i in range(spans.shape[0]):
        codes[i] = hash_bytes(text, spans[i, 0], spans[i, 1])
    return codes


@njit(cache=True)
def hash_of(ranking: Ranking, rows: Rows, record: Int, order: Int) -> tuple[bool, Int]:
    """(whether no equality column of the order is null in the record, hash of their values)."""
    hashed = np.int64(0)
    for i in range(ranking.orders[order, EQUALS]):
        column = ranking.orders[order, ORDER_FIELDS + i]
        if not is_valid(rows, record, column):
            return False, hashed
        hashed = mix(hashed, equal_at(rows, record, ranking.head[TABLE], column))
    return True, hashed


@njit(cache=True)
def _stands_before(ranking: Ranking, rows: Rows, block: Int, place: Int, hashed: Int, rank: Int, row: Int) -> bool:
    """Whether the entry at a place of a block stands before (hash, rank, row); NONE is the row before all others."""
    value = ranking.blocks[block, HASH, place]
    if value != hashed:
        return value < hashed
    value = ranking.blocks[block, RANK, place]
    if value != rank:
        return value < rank
    return row != NONE and key_order(ranking, rows, ranking.blocks[block, ROW, place], row) < 0


@njit(cache=True)
def find(ranking: Ranking, rows: Rows, order: Int, hashed: Int, rank: Int, row: Int) -> tuple[Int, Int]:
    """(number of the block in the order's directory, place in it) of the first entry that does not stand before this one.

    The place may be the end of its block, where the next block begins with that entry.
    """
    directory = ranking.orders[order, DIRECTORY]
    low, high = 1, ranking.orders[order, BLOCKS]
    while low < high:
        middle = (low + high) >> 1
        if _stands_before(ranking, rows, ranking.words[directory + middle], 0, hashed, rank, row):
            low = middle + 1
        else:
            high = middle
    at = low - 1
    if ranking.orders[order, BLOCKS] == 0:
        return 0, 0
    block = ranking.words[directory + at]
    low, high = 0, ranking.block_size[block]
    while low < high:
        middle = (low + high) >> 1
        if _stands_before(ranking, rows, block, middle, hashed, rank, row):
            low = middle + 1
        else:
            high = middle
    return at, low


@njit(cache=True)
def find_entry(ranking: Ranking, rows: Rows, order: Int, hashed: Int, rank: Int, row: Int) -> tuple[Int, Int]:
    """(number of the block in the directory, place in it) of an entry that is there."""
    at, place = find(ranking, rows, order, hashed, rank, row)
    if place == ranking.block_size[ranking.words[ranking.orders[order, DIRECTORY] + at]]:
        return at + 1, 0
    return at, place


@njit(cache=True)
def _store(ranking: Ranking, rows: Rows, block: Int, place: Int, record: Int) -> None:
    """Writes the codes of range columns beside an entry; for null the least code, as a scan verifies what it finds."""
    for i in range(ranking.stored.shape[0]):
        column = ranking.stored[i]
        code = np.int64(CODE_MIN)
        if is_valid(rows, record, column):
            code = code_at(rows, record, ranking.head[TABLE], column)
        ranking.blocks[block, STORED + i, place] = code


@njit(cache=True)
def store_again(ranking: Ranking, rows: Rows, order: Int, hashed: Int, rank: Int, row: Int, record: Int) -> None:
    """Codes of range columns have changed, but not the entry's place."""
    at, place = find_entry(ranking, rows, order, hashed, rank, row)
    _store(ranking, rows, ranking.words[ranking.orders[order, DIRECTORY] + at], place, record)


@njit(cache=True)
def store_columns(ranking: Ranking, rows: Rows) -> None:
    """Writes the codes of all range columns beside all entries: there is a new one."""
    for order in range(ranking.head[ORDER_TOP]):
        if ranking.orders[order, USERS]:
            for at in range(ranking.orders[order, BLOCKS]):
                block = ranking.words[ranking.orders[order, DIRECTORY] + at]
                for place in range(ranking.block_size[block]):
                    version = ranking.current[ranking.blocks[block, ROW, place]]
                    _store(ranking, rows, block, place, record_of(rows, version))


@njit(cache=True)
def _take_block(ranking: Ranking) -> Int:
    block = ranking.head[BLOCK_FREE]
    if block != NONE:
        ranking.head[BLOCK_FREE] = -2 - ranking.block_size[block]
    else:
        block = ranking.head[BLOCK_TOP]
        ranking.head[BLOCK_TOP] = block + 1
    ranking.block_size[block] = 0
    return block


@njit(cache=True)
def _free_block(ranking: Ranking, block: Int) -> None:
    ranking.block_size[block] = -2 - ranking.head[BLOCK_FREE]
    ranking.head[BLOCK_FREE] = block


@njit(cache=True)
def _insert_block(ranking: Ranking, order: Int, at: Int, block: Int) -> None:
    """Lets a block be number `at` of the order's directory."""
    count, room = ranking.orders[order, BLOCKS], ranking.orders[order, DIRECTORY_ROOM]
    if count == room:
        wider = allocate(ranking, 2 * room)
        narrow = ranking.orders[order, DIRECTORY]
        ranking.words[wider : wider + count] = ranking.words[narrow : narrow + count]
        release(ranking, narrow, room)
        ranking.orders[order, DIRECTORY], ranking.orders[order, DIRECTORY_ROOM] = wider, 2 * room
    directory = ranking.orders[order, DIRECTORY]
    for i in range(directory + count, directory + at, -1):
        ranking.words[i] = ranking.words[i - 1]
    ranking.words[directory + at] = block
    ranking.orders[order, BLOCKS] = count + 1


@njit(cache=True)
def _remove_block(ranking: Ranking, order: Int, at: Int) -> None:
    directory, count = ranking.orders[order, DIRECTORY], ranking.orders[order, BLOCKS] - 1
    _free_block(ranking, ranking.words[directory + at])
    for i in range(directory + at, directory + count):
        ranking.words[i] = ranking.words[i + 1]
    ranking.orders[order, BLOCKS] = count


@njit(cache=True)
def _move(ranking: Ranking, source: Int, start: Int, target: Int) -> None:
    """Moves the entries of a block from `start` on to the end of another one."""
    count, size = ranking.block_size[source] - start, ranking.block_size[target]
    for field in range(ranking.blocks.shape[1]):
        for i in range(count):
            ranking.blocks[target, field, size + i] = ranking.blocks[source, field, start + i]
    ranking.block_size[source] = start
    ranking.block_size[target] = size + count


@njit(cache=True)
def insert(ranking: Ranking, rows: Rows, order: Int, hashed: Int, rank: Int, row: Int, record: Int) -> None:
    """Puts a row in its place; there must be room for a block, and for a directory of twice the size."""
    if ranking.orders[order, BLOCKS] == 0:
        _insert_block(ranking, order, 0, _take_block(ranking))
    at, place = find(ranking, rows, order, hashed, rank, row)
    block = ranking.words[ranking.orders[order, DIRECTORY] + at]
    if ranking.block_size[block] == BLOCK:
        new = _take_block(ranking)
        _move(ranking, block, BLOCK // 2, new)
        _insert_block(ranking, order, at + 1, new)
        if place > BLOCK // 2:
            block, place = new, place - BLOCK // 2
    size = ranking.block_size[block]
    for field in range(ranking.blocks.shape[1]):
        for i in range(size, place, -1):
            ranking.blocks[block, field, i] = ranking.blocks[block, field, i - 1]
    ranking.blocks[block, HASH, place], ranking.blocks[block, RANK, place] = hashed, rank
    ranking.blocks[block, ROW, place] = row
    _store(ranking, rows, block, place, record)
    ranking.block_size[block] = size + 1
    ranking.orders[order, ROWS] += 1


@njit(cache=True)
def remove(ranking: Ranking, rows: Rows, order: Int, hashed: Int, rank: Int, row: Int) -> None:
    """Takes a row out of its place."""
    at, place = find_entry(ranking, rows, order, hashed, rank, row)
    directory = ranking.orders[order, DIRECTORY]
    block = ranking.words[directory + at]
    size = ranking.block_size[block] - 1
    for field in range(ranking.blocks.shape[1]):
        for i in range(place, size):
            ranking.blocks[block, field, i] = ranking.blocks[block, field, i + 1]
    ranking.block_size[block] = size
    ranking.orders[order, ROWS] -= 1
    if size == 0:
        _remove_block(ranking, order, at)
    elif size < BLOCK_LOW:
        for first in range(max(at - 1, 0), min(at + 1, ranking.orders[order, BLOCKS] - 1)):
            left, right = ranking.words[directory + first], ranking.words[directory + first + 1]
            if ranking.block_size[left] + ranking.block_size[right] <= BLOCK_JOINED:
                _move(ranking, right, 0, left)
                _remove_block(ranking, order, first + 1)
                break


@njit(cache=True)
def room_for_change(ranking: Ranking) -> tuple[Int, Int]:
    """(blocks, words) that one change of a row may take."""
    blocks = words = 0
    for order in range(ranking.head[ORDER_TOP]):
        if ranking.orders[order, USERS]:
            blocks += 1
            if ranking.orders[order, BLOCKS] == ranking.orders[order, DIRECTORY_ROOM]:
                words += 2 * ranking.orders[order, DIRECTORY_ROOM]
    return blocks, words


@njit(cache=True)
def describe_rows(ranking: Ranking, rows: Rows, order: Int, versions: I64, keys: I64) -> Int:
    """Fills keys[:, i] with hash, rank, first key code and row of those that belong into the order; how many they are."""
    count = 0
    for i in range(versions.shape[0]):
        record = record_of(rows, versions[i])
        has_rank, rank = rank_of(ranking, rows, record)
        is_in, hashed = hash_of(ranking, rows, record, order)
        if has_rank and is_in:
            row = ranking.row_of[versions[i]]
            keys[0, count], keys[1, count], keys[2, count], keys[3, count] = hashed, rank, ranking.tie[row], row
            count += 1
    return count


@njit(cache=True)
def _sort_run(ranking: Ranking, rows: Rows, run: I64, spare: I64) -> None:
    """Sorts rows by primary key: merges of runs of 1, 2, 4 .. rows."""
    n, width = run.shape[0], 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for at in range(start, stop):
                if i < middle and (j == stop or key_order(ranking, rows, run[i], run[j]) < 0):
                    spare[at] = run[i]
                    i += 1
                else:
                    spare[at] = run[j]
                    j += 1
        run[:] = spare[:n]
        width *= 2


@njit(cache=True)
def build(ranking: Ranking, rows: Rows, order: Int, keys: I64) -> None:
    """Fills an empty order with rows sorted by keys[:3]; there is room for all blocks, and in its directory.

    First key codes decide only most comparisons: rows that agree in all three are sorted here.
    """
    n = keys.shape[1]
    spare = np.empty(n, np.int64)
    start = 0
    while start < n:
        stop = start + 1
        while (
            stop < n
            and keys[0, stop] == keys[0, start]
            and keys[1, stop] == keys[1, start]
            and keys[2, stop] == keys[2, start]
        ):
            stop += 1
        if stop - start > 1:
            _sort_run(ranking, rows, keys[3, start:stop], spare)
        start = stop
    filled = BLOCK_JOINED
    for start in range(0, n, filled):
        block = _take_block(ranking)
        for i in range(start, min(start + filled, n)):
            place, row = i - start, keys[3, i]
            ranking.blocks[block, HASH, place], ranking.blocks[block, RANK, place] = keys[0, i], keys[1, i]
            ranking.blocks[block, ROW, place] = row
            _store(ranking, rows, block, place, record_of(rows, ranking.current[row]))
        ranking.block_size[block] = min(filled, n - start)
        _insert_block(ranking, order, ranking.orders[order, BLOCKS], block)
    ranking.orders[order, ROWS] = n


@njit(cache=True)
def forget_order(ranking: Ranking, order: Int) -> None:
    """Nobody uses the order any more."""
    directory = ranking.orders[order, DIRECTORY]
    for at in range(ranking.orders[order, BLOCKS]):
        _free_block(ranking, ranking.words[directory + at])
    release(ranking, directory, ranking.orders[order, DIRECTORY_ROOM])
    ranking.orders[order] = 0
