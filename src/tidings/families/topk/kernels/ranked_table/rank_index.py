"""Rank index: rows of a table in order of (values of some columns, rank, primary key), as a composite B-tree index has them.

Rows have numbers that stay while versions come and go, so a change of columns that nobody sorts or filters by moves nothing.
An *order* lists the rows for one set of equality columns, sorted by (hash of their equality codes, rank, key): rows of equal
values are a run, found by binary search. Orders are cut into blocks of up to BLOCK rows, column by column; a block has room for
the codes of range columns too, so that a scan for rows within ranges reads memory in sequence.

    order  ->  directory [block, block, ..]        block  hash | rank | row | code of range column 0 | ..   each [BLOCK]
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

import numpy as np

from tidings.families.topk.kernels.ranked_table.ranking_layout import (
    BLOCK,
    BLOCK_FREE,
    BLOCK_TOP,
    BLOCKS,
    CODE_MIN,
    DIRECTORY,
    DIRECTORY_ROOM,
    EQUAL_COLUMNS,
    HASH,
    ORDER_FIELDS,
    ORDER_TOP,
    RANK,
    ROW,
    ROWS,
    STORED,
    USERS,
    View,
    allocate,
    has_value,
    key_order,
    rank_of,
    record_at,
    release,
    view_at,
)
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, NONE, U8, Int, hash_bytes, mix

BLOCK_LOW, BLOCK_JOINED = BLOCK // 4, 3 * BLOCK // 4
"""A block with fewer rows is joined with a neighbour, if they have at most so many together."""


@kernel
def field_of(v: View, block: Int, field: Int) -> Int:
    """Where a field of a block begins in `blocks`."""
    return (block * v.block_fields + field) * BLOCK


@kernel
def hash_codes(codes: I64) -> I64:
    """[n, columns] equality codes -> [n] hashes by which orders sort."""
    hashes = np.zeros(codes.shape[0], np.int64)
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            hashes[i] = mix(hashes[i], codes[i, j])
    return hashes


@kernel
def hash_texts(text: U8, spans: I64) -> I64:
    """[n, 2] (start, stop) of texts -> [n] equality codes."""
    codes = np.empty(spans.shape[0], np.int64)
    for i in range(spans.shape[0]):
        codes[i] = hash_bytes(text, spans[i, 0], spans[i, 1])
    return codes


@kernel
def hash_of(v: View, record: Int, order: Int) -> tuple[bool, Int]:
    """(whether no equality column of the order is null in the record, hash of their values)."""
    hashed = np.int64(0)
    for i in range(v.orders[order + EQUAL_COLUMNS]):
        column = v.orders[order + ORDER_FIELDS + i]
        if not has_value(v, record, column):
            return False, hashed
        hashed = mix(hashed, v.records[record + v.equals + column])
    return True, hashed


@kernel
def _stands_before(v: View, block: Int, place: Int, hashed: Int, rank: Int, row: Int) -> bool:
    """Whether the entry at a place of a block stands before (hash, rank, row); NONE is the row before all others."""
    value = v.blocks[field_of(v, block, HASH) + place]
    if value != hashed:
        return bool(value < hashed)
    value = v.blocks[field_of(v, block, RANK) + place]
    if value != rank:
        return bool(value < rank)
    return bool(row != NONE and key_order(v, v.blocks[field_of(v, block, ROW) + place], row) < 0)


@kernel
def find(v: View, order: Int, hashed: Int, rank: Int, row: Int) -> tuple[Int, Int]:
    """(number of the block in the order's directory, place in it) of the first entry that does not stand before this one.

    The place may be the end of its block, where the next block begins with that entry.
    """
    directory = v.orders[order + DIRECTORY]
    low, high = 1, v.orders[order + BLOCKS]
    while low < high:
        middle = (low + high) >> 1
        if _stands_before(v, v.words[directory + middle], 0, hashed, rank, row):
            low = middle + 1
        else:
            high = middle
    at = low - 1
    if v.orders[order + BLOCKS] == 0:
        return 0, 0
    block = v.words[directory + at]
    low, high = 0, v.block_size[block]
    while low < high:
        middle = (low + high) >> 1
        if _stands_before(v, block, middle, hashed, rank, row):
            low = middle + 1
        else:
            high = middle
    return at, low


@kernel
def find_entry(v: View, order: Int, hashed: Int, rank: Int, row: Int) -> tuple[Int, Int]:
    """(number of the block in the directory, place in it) of an entry that is there."""
    at, place = find(v, order, hashed, rank, row)
    if place == v.block_size[v.words[v.orders[order + DIRECTORY] + at]]:
        return at + 1, 0
    return at, place


@kernel
def _store(v: View, block: Int, place: Int, record: Int) -> None:
    """Writes the codes of range columns beside an entry; for null the least code, as a scan verifies what it finds."""
    for i in range(v.block_fields - STORED):
        column = v.stored[i]
        code = np.int64(CODE_MIN)
        if has_value(v, record, column):
            code = v.records[record + v.codes + column]
        v.blocks[field_of(v, block, STORED + i) + place] = code


@kernel
def store_again(v: View, order: Int, hashed: Int, rank: Int, row: Int, record: Int) -> None:
    """Codes of range columns have changed, but not the entry's place."""
    at, place = find_entry(v, order, hashed, rank, row)
    _store(v, v.words[v.orders[order + DIRECTORY] + at], place, record)


@kernel
def store_columns(handles: I64) -> None:
    """Writes the codes of all range columns beside all entries: there is a new one."""
    v = view_at(handles)
    for order in range(0, v.head[ORDER_TOP], v.order_fields):
        if v.orders[order + USERS]:
            for at in range(v.orders[order + BLOCKS]):
                block = v.words[v.orders[order + DIRECTORY] + at]
                for place in range(v.block_size[block]):
                    version = v.current[v.blocks[field_of(v, block, ROW) + place]]
                    _store(v, block, place, record_at(v, version))


@kernel
def _take_block(v: View) -> Int:
    block = v.head[BLOCK_FREE]
    if block != NONE:
        v.head[BLOCK_FREE] = -2 - v.block_size[block]
    else:
        block = v.head[BLOCK_TOP]
        v.head[BLOCK_TOP] = block + 1
    v.block_size[block] = 0
    return block


@kernel
def _free_block(v: View, block: Int) -> None:
    v.block_size[block] = -2 - v.head[BLOCK_FREE]
    v.head[BLOCK_FREE] = block


@kernel
def _insert_block(v: View, order: Int, at: Int, block: Int) -> None:
    """Lets a block be number `at` of the order's directory."""
    count, room = v.orders[order + BLOCKS], v.orders[order + DIRECTORY_ROOM]
    if count == room:
        wider = allocate(v, 2 * room)
        narrow = v.orders[order + DIRECTORY]
        for i in range(count):
            v.words[wider + i] = v.words[narrow + i]
        release(v, narrow, room)
        v.orders[order + DIRECTORY], v.orders[order + DIRECTORY_ROOM] = wider, 2 * room
    directory = v.orders[order + DIRECTORY]
    for i in range(directory + count, directory + at, -1):
        v.words[i] = v.words[i - 1]
    v.words[directory + at] = block
    v.orders[order + BLOCKS] = count + 1


@kernel
def _remove_block(v: View, order: Int, at: Int) -> None:
    directory, count = v.orders[order + DIRECTORY], v.orders[order + BLOCKS] - 1
    _free_block(v, v.words[directory + at])
    for i in range(directory + at, directory + count):
        v.words[i] = v.words[i + 1]
    v.orders[order + BLOCKS] = count


@kernel
def _move(v: View, source: Int, start: Int, target: Int) -> None:
    """Moves the entries of a block from `start` on to the end of another one."""
    count, size = v.block_size[source] - start, v.block_size[target]
    for field in range(v.block_fields):
        to, at = field_of(v, target, field) + size, field_of(v, source, field) + start
        for i in range(count):
            v.blocks[to + i] = v.blocks[at + i]
    v.block_size[source] = start
    v.block_size[target] = size + count


@kernel
def insert(v: View, order: Int, hashed: Int, rank: Int, row: Int, record: Int) -> None:
    """Puts a row in its place; there must be room for a block, and for a directory of twice the size."""
    if v.orders[order + BLOCKS] == 0:
        _insert_block(v, order, 0, _take_block(v))
    at, place = find(v, order, hashed, rank, row)
    block = v.words[v.orders[order + DIRECTORY] + at]
    if v.block_size[block] == BLOCK:
        new = _take_block(v)
        _move(v, block, BLOCK // 2, new)
        _insert_block(v, order, at + 1, new)
        if place > BLOCK // 2:
            block, place = new, place - BLOCK // 2
    size = v.block_size[block]
    for field in range(v.block_fields):
        first = field_of(v, block, field)
        for i in range(first + size, first + place, -1):
            v.blocks[i] = v.blocks[i - 1]
    v.blocks[field_of(v, block, HASH) + place], v.blocks[field_of(v, block, RANK) + place] = hashed, rank
    v.blocks[field_of(v, block, ROW) + place] = row
    _store(v, block, place, record)
    v.block_size[block] = size + 1
    v.orders[order + ROWS] += 1


@kernel
def remove(v: View, order: Int, hashed: Int, rank: Int, row: Int) -> None:
    """Takes a row out of its place."""
    at, place = find_entry(v, order, hashed, rank, row)
    directory = v.orders[order + DIRECTORY]
    block = v.words[directory + at]
    size = v.block_size[block] - 1
    for field in range(v.block_fields):
        first = field_of(v, block, field)
        for i in range(first + place, first + size):
            v.blocks[i] = v.blocks[i + 1]
    v.block_size[block] = size
    v.orders[order + ROWS] -= 1
    if size == 0:
        _remove_block(v, order, at)
    elif size < BLOCK_LOW:
        for first in range(max(at - 1, 0), min(at + 1, v.orders[order + BLOCKS] - 1)):
            left, right = v.words[directory + first], v.words[directory + first + 1]
            if v.block_size[left] + v.block_size[right] <= BLOCK_JOINED:
                _move(v, right, 0, left)
                _remove_block(v, order, first + 1)
                break


@kernel
def room_for_change(v: View) -> tuple[Int, Int]:
    """(blocks, words) that one change of a row may take."""
    blocks = words = 0
    for order in range(0, v.head[ORDER_TOP], v.order_fields):
        if v.orders[order + USERS]:
            blocks += 1
            if v.orders[order + BLOCKS] == v.orders[order + DIRECTORY_ROOM]:
                words += 2 * v.orders[order + DIRECTORY_ROOM]
    return blocks, words


@kernel
def describe_rows(handles: I64, order: Int, versions: I64, keys: I64) -> Int:
    """Fills keys[:, i] with hash, rank, first key code and row of those that belong into the order; how many they are."""
    v = view_at(handles)
    count = 0
    for i in range(versions.shape[0]):
        record = record_at(v, versions[i])
        has_rank, rank = rank_of(v, record)
        is_in, hashed = hash_of(v, record, order)
        if has_rank and is_in:
            row = v.row_of[versions[i]]
            keys[0, count], keys[1, count], keys[2, count], keys[3, count] = hashed, rank, v.tie[row], row
            count += 1
    return count


@kernel
def _sort_run(v: View, run: I64, spare: I64) -> None:
    """Sorts rows by primary key: merges of runs of 1, 2, 4 .. rows."""
    n, width = run.shape[0], 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for at in range(start, stop):
                if i < middle and (j == stop or key_order(v, run[i], run[j]) < 0):
                    spare[at] = run[i]
                    i += 1
                else:
                    spare[at] = run[j]
                    j += 1
        run[:] = spare[:n]
        width *= 2


@kernel
def build(handles: I64, order: Int, keys: I64, room: Int) -> None:
    """Fills an empty order with rows sorted by keys[:3]; there is room for all blocks, and for a directory of `room`.

    First key codes decide only most comparisons: rows that agree in all three are sorted here.
    """
    v = view_at(handles)
    v.orders[order + DIRECTORY], v.orders[order + DIRECTORY_ROOM] = allocate(v, room), room
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
            _sort_run(v, keys[3, start:stop], spare)
        start = stop
    filled = BLOCK_JOINED
    for start in range(0, n, filled):
        block = _take_block(v)
        for i in range(start, min(start + filled, n)):
            place, row = i - start, keys[3, i]
            v.blocks[field_of(v, block, HASH) + place], v.blocks[field_of(v, block, RANK) + place] = (
                keys[0, i],
                keys[1, i],
            )
            v.blocks[field_of(v, block, ROW) + place] = row
            _store(v, block, place, record_at(v, v.current[row]))
        v.block_size[block] = min(filled, n - start)
        _insert_block(v, order, v.orders[order + BLOCKS], block)
    v.orders[order + ROWS] = n


@kernel
def forget_order(handles: I64, order: Int) -> None:
    """Nobody uses the order any more."""
    v = view_at(handles)
    directory = v.orders[order + DIRECTORY]
    for at in range(v.orders[order + BLOCKS]):
        _free_block(v, v.words[directory + at])
    release(v, directory, v.orders[order + DIRECTORY_ROOM])
    for i in range(v.order_fields):
        v.orders[order + i] = 0
