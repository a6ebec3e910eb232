"""All combinations that an item is in: one item of every kind, tied to each other at all edges.

From the item one kind after another is added, in an order in which each has an edge with one before it. What has been
chosen, and where to go on at each step, is kept on a small stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.growth import grown
from tidings.kernels.jit import kernel
from tidings.kernels.meshes_arrays import CELL_NEXT, I32, I64, ITEM, ITEM_KIND, ITEM_TIES, NONE, Int, find
from tidings.kernels.meshes_plan import STEP_CHECKS, STEP_CHECKS_END, STEP_EDGE, STEP_KIND, STEP_OTHER

_SEED, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(32)


@kernel
def combine(
    memory: I32,
    table: I64,
    items: I32,
    cells: I64,
    heads: I64,
    steps: Any,
    checks: I64,
    number: Int,
    item: Int,
    chosen: I32,
    cursor: I64,
    out: I32,
    end: Int,
) -> Int:
    """Writes all combinations of a set in which an item is to out[end:]; gives the end there, NONE if there is no room.

    A whole combination stands for itself. `chosen` and `cursor` have an element a kind, of any value.
    """
    kinds = len(chosen)
    first = items[item, ITEM_KIND]
    if first == kinds:
        if end == len(out):
            return NONE
        for kind in range(kinds):
            out[end, kind] = items[item, ITEM_TIES + kind]
        return end + 1
    chosen[first] = item
    at = 0
    cursor[0] = _first(memory, table, items, heads, steps, number, first, 0, chosen)
    while at >= 0:
        entry = cursor[at]
        if entry == NONE:
            at -= 1
            continue
        kind, edge = steps[first, at, STEP_KIND], steps[first, at, STEP_EDGE]
        cursor[at] = memory[entry + cells[kind, edge] + CELL_NEXT]
        chosen[kind] = memory[entry + ITEM]
        if not _is_tied(items, steps, checks, first, at, chosen, kind):
            continue
        if at < kinds - 2:
            at += 1
            cursor[at] = _first(memory, table, items, heads, steps, number, first, at, chosen)
            continue
        if end == len(out):
            return NONE
        for one in range(kinds):
            out[end, one] = chosen[one]
        end += 1
    return end


@kernel
def _first(
    memory: I32, table: I64, items: I32, heads: I64, steps: Any, number: Int, first: Int, at: Int, chosen: I32
) -> Int:
    """The first entry to choose from at a step."""
    kind, edge = steps[first, at, STEP_KIND], steps[first, at, STEP_EDGE]
    tie = items[chosen[steps[first, at, STEP_OTHER]], ITEM_TIES + edge]
    if tie == NONE:
        return NONE
    knot = find(memory, table, number, tie)
    return NONE if knot == NONE else memory[knot + heads[kind, edge]]


@kernel
def _is_tied(items: I32, steps: Any, checks: I64, first: Int, at: Int, chosen: I32, kind: Int) -> bool:
    """Whether the item chosen last is tied to others at all other edges as well."""
    for check in range(steps[first, at, STEP_CHECKS], steps[first, at, STEP_CHECKS_END]):
        edge = ITEM_TIES + checks[check, 0]
        tie = items[chosen[kind], edge]
        if tie == NONE or tie != items[chosen[checks[check, 1]], edge]:
            return False
    return True


@kernel
def number_distinct(rows: I32, count: Int) -> tuple[I32, I32]:
    """(numbers, distinct): the first rows are distinct[numbers], each of which is there once."""
    kinds = rows.shape[1]
    numbers, size = np.empty(count, np.int32), 0
    distinct, index = np.empty((256, kinds), np.int32), np.full(512, NONE, np.int32)
    for i in range(count):
        mask = len(index) - 1
        at = _hash(rows, i) & mask
        while index[at] != NONE and not _is_equal(rows, i, distinct, index[at]):
            at = (at + 1) & mask
        number = index[at]
        if number == NONE:
            number = index[at] = size
            if size == len(distinct):
                distinct = grown(distinct, 0)
            for kind in range(kinds):
                distinct[size, kind] = rows[i, kind]
            size += 1
            if 2 * size > len(index):
                index = _index(distinct, size, 2 * len(index))
        numbers[i] = number
    return numbers, distinct[:size].copy()


@kernel
def _index(distinct: I32, size: Int, length: Int) -> I32:
    """Where the distinct rows are, by their hashes."""
    index, mask = np.full(length, NONE, np.int32), length - 1
    for number in range(size):
        at = _hash(distinct, number) & mask
        while index[at] != NONE:
            at = (at + 1) & mask
        index[at] = number
    return index


@kernel
def _hash(rows: I32, at: Int) -> Int:
    mixed = _SEED
    for kind in range(rows.shape[1]):
        mixed = (mixed ^ np.uint64(rows[at, kind])) * _FACTOR
        mixed ^= mixed >> _SHIFT
    return np.int64(mixed >> np.uint64(1))


@kernel
def _is_equal(rows: I32, at: Int, others: I32, other: Int) -> bool:
    kind = 0
    while kind < rows.shape[1] and rows[at, kind] == others[other, kind]:
        kind += 1
    return bool(kind == rows.shape[1])
