"""Lists of document nodes, each distinct one kept once, and the semi-joins of pairs of them, each worked out once.

A document has few distinct lists of matches, however many patterns are matched: most conditions hold for all nodes of a label
or for none. Lists are numbered as they are found; number 0 is the empty list. Two open-addressing hash tables: from the
contents of a list to its number, and from (operation, list, list) to the number of the result.

A list under construction is written behind the last one; `intern` keeps it there, or forgets it where it is known already.
Semi-joins run in loops that allocate nothing: where room is short they say so, and the loop is left, and entered again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kernels.arrays import I32, I64, Int, grown
from tidings.kernels.jit import kernel, uncounted

_SEED, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)

LISTS, JOINS = range(2)
"""Fields of `counts`: lists, the empty one included, and semi-joins kept."""
CHILD, DESCENDANT = range(2)
"""How the lower node of a pair hangs below the upper one."""
KEEP_UPPER, KEEP_LOWER = 0, 2
"""Which list a semi-join filters; a semi-join is one of these plus the axis."""
NO_ROOM = -1
_LIST_BITS = 30


class ListTable(NamedTuple):
    """List i is nodes[starts[i]:starts[i + 1]], ascending, and has hash hashes[i].

    slots: list numbers by hash, 0 where free. keys: packed semi-joins by hash, 0 where free, with their results. marks: per
    node of the document, the list for which it was marked last.
    """

    counts: I64
    nodes: I32
    starts: I64
    hashes: I64
    slots: I32
    keys: I64
    results: I32
    marks: I64


@kernel
def empty_table(node_count: Int) -> ListTable:
    counts = np.zeros(2, np.int64)
    counts[LISTS] = 1
    return ListTable(
        counts,
        np.empty(4 * node_count + 64, np.int32),
        np.zeros(256, np.int64),
        np.zeros(256, np.int64),
        np.zeros(1024, np.int32),
        np.zeros(2048, np.int64),
        np.zeros(2048, np.int32),
        np.zeros(node_count, np.int64),
    )


@uncounted
def has_room(table: ListTable) -> bool:
    """Whether there is room for one more list, of all nodes of the document at most, and one more semi-join."""
    lists = table.counts[LISTS]
    return (
        lists + 2 <= len(table.starts)
        and table.starts[lists] + len(table.marks) <= len(table.nodes)
        and 2 * lists <= len(table.slots)
        and 2 * table.counts[JOINS] <= len(table.keys)
    )


@kernel
def with_room(table: ListTable) -> ListTable:
    """The table with room for one more: what is too short is made twice as long."""
    counts, nodes, starts, hashes, slots, keys, results, marks = table
    lists = counts[LISTS]
    if lists + 2 > len(starts):
        starts, hashes = grown(starts, lists + 2), grown(hashes, lists + 2)
    if starts[lists] + len(marks) > len(nodes):
        nodes = grown(nodes, starts[lists] + len(marks))
    if 2 * lists > len(slots):
        slots = np.zeros(2 * len(slots), np.int32)
        for number in range(1, lists):
            at = hashes[number] & (len(slots) - 1)
            while slots[at] != 0:
                at = (at + 1) & (len(slots) - 1)
            slots[at] = number
    if 2 * counts[JOINS] > len(keys):
        held, known = keys, results
        keys, results = np.zeros(2 * len(held), np.int64), np.zeros(2 * len(held), np.int32)
        for i in range(len(held)):
            if held[i] != 0:
                at = _slot(keys, held[i])
                keys[at], results[at] = held[i], known[i]
    return ListTable(counts, nodes, starts, hashes, slots, keys, results, marks)


@uncounted
def intern(table: ListTable, length: Int) -> Int:
    """The number of the list whose nodes stand behind the last list."""
    if length == 0:
        return np.int64(0)
    lists = table.counts[LISTS]
    first = table.starts[lists]
    mixed = _SEED
    for i in range(first, first + length):
        mixed = (mixed ^ np.uint64(table.nodes[i])) * _FACTOR
        mixed ^= mixed >> np.uint64(32)
    hashed = np.int64(mixed)
    at = hashed & (len(table.slots) - 1)
    while table.slots[at] != 0:
        if _is_equal(table, np.int64(table.slots[at]), hashed, first, length):
            return np.int64(table.slots[at])
        at = (at + 1) & (len(table.slots) - 1)
    table.slots[at] = lists
    table.hashes[lists] = hashed
    table.starts[lists + 1] = first + length
    table.counts[LISTS] = lists + 1
    return lists


@uncounted
def semi_join(table: ListTable, parents: I32, ends: I32, operation: Int, upper: Int, lower: Int) -> Int:
    """The nodes of `upper` that have one of `lower` below them, or those of `lower` that have one of `upper` above them.

    Neither list is empty. NO_ROOM if the result is unknown and the table has no room for it.
    """
    key = (((upper << _LIST_BITS) | lower) << 2) | operation
    at = _slot(table.keys, key)
    if table.keys[at] == key:
        return np.int64(table.results[at])
    if not has_room(table):
        return np.int64(NO_ROOM)
    if operation == KEEP_UPPER + CHILD:
        found = _with_child(table, parents, upper, lower)
    elif operation == KEEP_UPPER + DESCENDANT:
        found = _with_descendant(table, ends, upper, lower)
    elif operation == KEEP_LOWER + CHILD:
        found = _with_parent(table, parents, upper, lower)
    else:
        found = _with_ancestor(table, ends, upper, lower)
    result = intern(table, found)
    table.keys[at] = key
    table.results[at] = result
    table.counts[JOINS] += 1
    return result


@uncounted
def _slot(keys: I64, key: Int) -> Int:
    """Where a semi-join is, or would be."""
    mixed = (np.uint64(key) ^ _SEED) * _FACTOR
    at = np.int64(mixed >> np.uint64(32)) & (len(keys) - 1)
    while keys[at] != 0 and keys[at] != key:
        at = (at + 1) & (len(keys) - 1)
    return at


@uncounted
def _is_equal(table: ListTable, number: Int, hashed: Int, first: Int, length: Int) -> bool:
    start = table.starts[number]
    if table.hashes[number] != hashed or table.starts[number + 1] - start != length:
        return False
    for i in range(length):
        if table.nodes[start + i] != table.nodes[first + i]:
            return False
    return True


@uncounted
def _with_child(table: ListTable, parents: I32, upper: Int, lower: Int) -> Int:
    nodes, starts, marks = table.nodes, table.starts, table.marks
    # The number of this semi-join: no other has the mark.
    mark = table.counts[JOINS] + 1
    for i in range(starts[lower], starts[lower + 1]):
        if parents[nodes[i]] >= 0:
            marks[parents[nodes[i]]] = mark
    first = to = starts[table.counts[LISTS]]
    for i in range(starts[upper], starts[upper + 1]):
        if marks[nodes[i]] == mark:
            nodes[to] = nodes[i]
            to += 1
    return to - first


@uncounted
def _with_parent(table: ListTable, parents: I32, upper: Int, lower: Int) -> Int:
    nodes, starts, marks = table.nodes, table.starts, table.marks
    mark = table.counts[JOINS] + 1
    for i in range(starts[upper], starts[upper + 1]):
        marks[nodes[i]] = mark
    first = to = starts[table.counts[LISTS]]
    for i in range(starts[lower], starts[lower + 1]):
        parent = parents[nodes[i]]
        if parent >= 0 and marks[parent] == mark:
            nodes[to] = nodes[i]
            to += 1
    return to - first


@uncounted
def _with_descendant(table: ListTable, ends: I32, upper: Int, lower: Int) -> Int:
    nodes, starts = table.nodes, table.starts
    first = to = starts[table.counts[LISTS]]
    at, stop = starts[lower], starts[lower + 1]
    for i in range(starts[upper], starts[upper + 1]):
        while at < stop and nodes[at] <= nodes[i]:
            at += 1
        if at == stop:
            break
        if nodes[at] < ends[nodes[i]]:
            nodes[to] = nodes[i]
            to += 1
    return to - first


@uncounted
def _with_ancestor(table: ListTable, ends: I32, upper: Int, lower: Int) -> Int:
    nodes, starts = table.nodes, table.starts
    first = to = starts[table.counts[LISTS]]
    at, stop = starts[upper], starts[upper + 1]
    end = np.int64(0)
    for i in range(starts[lower], starts[lower + 1]):
        while at < stop and nodes[at] < nodes[i]:
            end = max(end, np.int64(ends[nodes[at]]))
            at += 1
        if nodes[i] < end:
            nodes[to] = nodes[i]
            to += 1
    return to - first
