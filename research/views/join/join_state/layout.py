"""How the rows that views hold lie in memory: records found by (view, name) through one hash table.

    entry    VIEW NAME ROW NEXT LAST, then a link (NEXT, LAST) for each edge of its relation
    bucket   VIEW NAME, then the first entry at either end of an edge

An entry is a row that a view holds; its name is the key of the row. NEXT and LAST chain the entries of a view; those of
links chain the entries of a view with the same join value at an edge. A bucket is a join value that entries of a view have
at an edge, and its name is that value. The table is open addressing with linear probing and backward-shift deletion (Knuth,
The Art of Computer Programming, volume 3, section 6.4): a word of it is 31 bits of hash above the place of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel
from tidings.kernels.rows import I32, I64, NONE, Int

# Words of an entry, before its links. Those of a bucket have the same VIEW and NAME.
VIEW, NAME, ROW, NEXT, LAST, ENTRY_WORDS = range(6)
LINK_NEXT, LINK_LAST, LINK_WORDS = range(3)
BUCKET_FIRSTS, BUCKET_WORDS = 2, 4
# Fields of a row of `rows`, before its join values, one an edge; a joined row has its parts there instead, one a relation.
KEY, RELATION, LOOK, HOLDERS, VALUES = range(5)
# Fields of `head`: words of memory ever used, records in the table, entries, rows that no view holds, and the first free record
# of each kind (chained by their first words).
TOP, FILLED, ENTRIES, UNUSED, FREE = range(5)
# Fields of a step: the relation to add, the edge it is found by, the relation at the other end, and its checks.
STEP_RELATION, STEP_EDGE, STEP_OTHER, STEP_CHECKS, STEP_CHECKS_END, STEP_FIELDS = range(6)
# Columns of `layout`, before where links are (one an edge) and where in a bucket the first entries are (one an edge).
WORDS, LINKS = 0, 1

MEMORY_MAX = 2**31 - 1
_FACTOR, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_HALF, _TAG = np.uint64(32), np.uint64(33)
LOW = 2**32 - 1
"""The bits of a word of the table that are a place in memory."""


class Plan(NamedTuple):
    """What all views have in common. Relations are numbered from 0; the number after the last is that of joined rows."""

    layout: I64
    """[relation, or after these joined rows and buckets; fields]: WORDS of a record; by edge, where in an entry its link is
    (NONE: the edge is not of the relation); by edge, where in a bucket its first entry is."""
    steps: NDArray[np.int64]
    """[relation, step, STEP_FIELDS]: in which order the other relations are joined to a row of this one."""
    checks: I64
    """[check, 2]: (edge, other relation) at which the added row must have the same join value as well."""


def plan_of(relations: int, edges: Sequence[tuple[int, int]]) -> Plan:
    """For relations 0 .. relations - 1, connected by edges between two different ones each."""
    layout = np.full((relations + 2, LINKS + 2 * len(edges)), NONE, np.int64)
    layout[:, WORDS] = ENTRY_WORDS
    for edge, ends in enumerate(edges):
        for end, relation in enumerate(ends):
            layout[relation, LINKS + edge] = layout[relation, WORDS]
            layout[relation, LINKS + len(edges) + edge] = BUCKET_FIRSTS + end
            layout[relation, WORDS] += LINK_WORDS
    layout[-1, WORDS] = BUCKET_WORDS
    steps = np.zeros((relations, relations - 1, STEP_FIELDS), np.int64)
    checks: list[tuple[int, int]] = []
    for first in range(relations):
        placed = [first]
        while len(placed) < relations:
            before = len(placed)
            for relation in range(relations):
                found = [
                    (edge, other)
                    for edge, (one, two) in enumerate(edges)
                    for own, other in ((one, two), (two, one))
                    if own == relation and other in placed
                ]
                if relation not in placed and found:
                    steps[first, len(placed) - 1] = relation, *found[0], len(checks), len(checks) + len(found) - 1
                    checks.extend(found[1:])
                    placed.append(relation)
            if len(placed) == before:
                raise ValueError("a relation without an edge to the others cannot be joined with them")
    return Plan(layout, steps, np.array(checks, np.int64).reshape(-1, 2))


@kernel
def tag_of(view: Int, name: Int) -> Int:
    """31 bits of hash: where in the table a record is looked for."""
    mixed = ((np.uint64(view) << _HALF) ^ np.uint64(name)) * _FACTOR
    mixed = (mixed ^ (mixed >> _HALF)) * _OTHER
    return np.int64((mixed ^ (mixed >> _HALF)) >> _TAG)


@kernel
def locate(memory: I32, table: I64, view: Int, name: Int) -> Int:
    """Where in the table a view's record of a name is, or NONE."""
    tag, mask = tag_of(view, name), len(table) - 1
    at = tag & mask
    while table[at] != NONE:
        if table[at] >> 32 == tag:
            record = table[at] & LOW
            if memory[record + VIEW] == view and memory[record + NAME] == name:
                return at
        at = (at + 1) & mask
    return NONE


@kernel
def find(memory: I32, table: I64, view: Int, name: Int) -> Int:
    """A view's record of a name, or NONE."""
    at = locate(memory, table, view, name)
    return NONE if at == NONE else table[at] & LOW


@kernel
def record_new(head: I64, memory: I32, table: I64, kind: Int, words: Int, view: Int, name: Int) -> Int:
    """A new record of so many words, for which there is room. `kind`: a relation, or a number after these."""
    record = head[FREE + kind]
    if record != NONE:
        head[FREE + kind] = memory[record]
    else:
        record = head[TOP]
        head[TOP] += words
    memory[record + VIEW], memory[record + NAME] = view, name
    tag, mask = tag_of(view, name), len(table) - 1
    at = tag & mask
    while table[at] != NONE:
        at = (at + 1) & mask
    table[at] = (tag << 32) | record
    head[FILLED] += 1
    return record


@kernel
def record_free(head: I64, memory: I32, table: I64, kind: Int, at: Int) -> None:
    """Frees the record at a place of the table."""
    record = table[at] & LOW
    memory[record] = head[FREE + kind]
    head[FREE + kind] = record
    head[FILLED] -= 1
    mask, hole, after = len(table) - 1, at, (at + 1) & (len(table) - 1)
    while table[after] != NONE:
        wanted = (table[after] >> 32) & mask
        if ((after - wanted) & mask) >= ((after - hole) & mask):
            table[hole] = table[after]
            hole = after
        after = (after + 1) & mask
    table[hole] = NONE


@kernel
def has_room(head: I64, memory: I32, table: I64, layout: I64, more: Int) -> bool:
    """Whether there is room for so many more rows held, each with new buckets; a fifth of the table stays empty."""
    edges = (layout.shape[1] - LINKS) // 2
    words = more * (ENTRY_WORDS + edges * (LINK_WORDS + BUCKET_WORDS))
    return bool(head[TOP] + words <= len(memory) and 5 * (head[FILLED] + more * (1 + edges)) <= 4 * len(table))


@kernel
def with_room(head: I64, memory: I32, table: I64, layout: I64, more: Int) -> tuple[I32, I64]:
    """Memory and table that have the room."""
    edges = (layout.shape[1] - LINKS) // 2
    needed = head[TOP] + more * (ENTRY_WORDS + edges * (LINK_WORDS + BUCKET_WORDS))
    if needed > MEMORY_MAX:
        raise OverflowError("too many rows in all views together")
    if needed > len(memory):
        longer = np.empty(min(needed + needed // 4 + 64, MEMORY_MAX), np.int32)
        longer[: head[TOP]] = memory[: head[TOP]]
        memory = longer
    length = len(table)
    while 5 * (head[FILLED] + more * (1 + edges)) > 4 * length:
        length *= 2
    if length > len(table):
        wider, mask = np.full(length, NONE, np.int64), length - 1
        for word in table:
            if word != NONE:
                at = (word >> 32) & mask
                while wider[at] != NONE:
                    at = (at + 1) & mask
                wider[at] = word
        table = wider
    return memory, table
