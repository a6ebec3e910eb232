"""The flat arrays that meshes live in: records in one memory, found by their set and name through one table.

    entry   SET NAME ITEM NEXT LAST, then a cell (NEXT, LAST) for each edge of its kind
    knot    SET NAME, then the first entry at either end of an edge

An entry is an item that a set holds; its name is that of the item. NEXT and LAST chain the entries of a set, and those that
have the same tie at an edge. A knot is a tie that entries of a set have at an edge, and its name is that tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

# Words of an entry, before its cells. Those of a knot have the same SET and NAME.
SET, NAME, ITEM, NEXT, LAST, ENTRY_WORDS = range(6)
CELL_NEXT, CELL_LAST, CELL_WORDS = range(3)
KNOT_HEADS, KNOT_WORDS = 2, 4
# Fields of a row of `items`, before its ties, one an edge; a whole combination has its items there instead.
ITEM_NAME, ITEM_KIND, ITEM_LOOK, ITEM_COUNT, ITEM_TIES = range(5)
# Fields of `head`: words of memory ever used, records in the table, entries, items that no set holds, and the first free
# record of each length (chained by their first words).
TOP, FILLED, ENTRIES, LOOSE, FREE = range(5)

NONE = -1
MEMORY_MAX = 2**31 - 1
_FACTOR, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_HALF, _TAG = np.uint64(32), np.uint64(33)
LOW = 2**32 - 1
"""The bits of a word of the table that are a place in memory."""


@kernel
def tag_of(number: Int, name: Int) -> Int:
    """31 bits that say where in the table a record is looked for."""
    mixed = ((np.uint64(number) << _HALF) ^ np.uint64(name)) * _FACTOR
    mixed = (mixed ^ (mixed >> _HALF)) * _OTHER
    return np.int64((mixed ^ (mixed >> _HALF)) >> _TAG)


@kernel
def locate(memory: I32, table: I64, number: Int, name: Int) -> Int:
    """Where in the table a set's record of a name is, or NONE.

    A word of the table is a tag and the place in memory, so that others are passed over without a look at them.
    """
    tag, mask = tag_of(number, name), len(table) - 1
    at = tag & mask
    while table[at] != NONE:
        if table[at] >> 32 == tag:
            record = table[at] & LOW
            if memory[record + SET] == number and memory[record + NAME] == name:
                return at
        at = (at + 1) & mask
    return NONE


@kernel
def find(memory: I32, table: I64, number: Int, name: Int) -> Int:
    """A set's record of a name, or NONE."""
    at = locate(memory, table, number, name)
    return NONE if at == NONE else table[at] & LOW


@kernel
def take(head: I64, memory: I32, table: I64, words: I64, length: Int, number: Int, name: Int) -> Int:
    """A new record of words[length] words, for which there is room."""
    record = head[FREE + length]
    if record != NONE:
        head[FREE + length] = memory[record]
    else:
        record = head[TOP]
        head[TOP] += words[length]
    memory[record + SET], memory[record + NAME] = number, name
    tag, mask = tag_of(number, name), len(table) - 1
    at = tag & mask
    while table[at] != NONE:
        at = (at + 1) & mask
    table[at] = (tag << 32) | record
    head[FILLED] += 1
    return record


@kernel
def give_back(head: I64, memory: I32, table: I64, length: Int, at: Int) -> None:
    """Forgets the record at a place of the table."""
    record = table[at] & LOW
    memory[record] = head[FREE + length]
    head[FREE + length] = record
    head[FILLED] -= 1
    # Those that had to step aside for it, or for others that did, move up.
    mask, hole, after = len(table) - 1, at, (at + 1) & (len(table) - 1)
    while table[after] != NONE:
        wanted = (table[after] >> 32) & mask
        if ((after - wanted) & mask) >= ((after - hole) & mask):
            table[hole] = table[after]
            hole = after
        after = (after + 1) & mask
    table[hole] = NONE


@kernel
def with_words(head: I64, memory: I32, words: Int) -> I32:
    """Memory with so many words behind those used."""
    needed = head[TOP] + words
    if needed <= len(memory):
        return memory
    if needed > MEMORY_MAX:
        raise OverflowError("too many items in all sets together")
    longer = np.empty(min(needed + needed // 4 + 64, MEMORY_MAX), np.int32)
    longer[: head[TOP]] = memory[: head[TOP]]
    return longer


@kernel
def with_places(head: I64, table: I64, records: Int) -> I64:
    """The table with room for so many more records, a fifth of it empty."""
    needed, length = head[FILLED] + records, len(table)
    while 5 * needed > 4 * length:
        length *= 2
    if length == len(table):
        return table
    wider, mask = np.full(length, NONE, np.int64), length - 1
    for word in table:
        if word != NONE:
            at = (word >> 32) & mask
            while wider[at] != NONE:
                at = (at + 1) & mask
            wider[at] = word
    return wider
