"""All combinations of rows of a view that are joined: one row of every relation, with equal join values at all edges.

Depth first, as a pipelined index nested loop join: from one row, a relation after another is added, in an order in which
each has an edge with one before it. The rows chosen, and where to go on at each step, are a small stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from research.views.join.join_state.layout import (
    LINK_NEXT,
    LINKS,
    NEXT,
    RELATION,
    ROW,
    STEP_CHECKS,
    STEP_CHECKS_END,
    STEP_EDGE,
    STEP_OTHER,
    STEP_RELATION,
    VALUES,
    find,
)
from tidings.kernels.arrays import grown
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I32, I64, NONE, Int

_SEED, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(32)


@kernel
def combine(
    memory: I32,
    table: I64,
    rows: I32,
    layout: I64,
    steps: Any,
    checks: I64,
    view: Int,
    row: Int,
    stack: I64,
    out: I32,
    end: Int,
) -> Int:
    """Writes all combinations of a view in which a row is to out[end:]; gives the end there, NONE if there is no room.

    A joined row is a combination by itself. `stack`: [2, relations], of any values.
    """
    relations = stack.shape[1]
    edges = (layout.shape[1] - LINKS) // 2
    first = rows[row, RELATION]
    if first == relations:
        if end == len(out):
            return NONE
        for relation in range(relations):
            out[end, relation] = rows[row, VALUES + relation]
        return end + 1
    chosen, cursor = stack[0], stack[1]
    chosen[first] = row
    at, is_new = 0, True
    while at >= 0:
        relation, edge = steps[first, at, STEP_RELATION], steps[first, at, STEP_EDGE]
        if is_new:
            value = rows[chosen[steps[first, at, STEP_OTHER]], VALUES + edge]
            bucket = NONE if value == NONE else find(memory, table, view, value)
            cursor[at] = NONE if bucket == NONE else memory[bucket + layout[relation, LINKS + edges + edge]]
            is_new = False
        entry = cursor[at]
        if entry == NONE:
            at -= 1
            continue
        cursor[at] = memory[entry + layout[relation, LINKS + edge] + LINK_NEXT]
        chosen[relation] = memory[entry + ROW]
        is_joined = True
        for check in range(steps[first, at, STEP_CHECKS], steps[first, at, STEP_CHECKS_END]):
            field = VALUES + checks[check, 0]
            value = rows[chosen[relation], field]
            if value == NONE or value != rows[chosen[checks[check, 1]], field]:
                is_joined = False
                break
        if not is_joined:
            continue
        if at < relations - 2:
            at += 1
            is_new = True
            continue
        if end == len(out):
            return NONE
        for one in range(relations):
            out[end, one] = chosen[one]
        end += 1
    return end


@kernel
def number_distinct(rows: I32, count: Int) -> tuple[I32, I32]:
    """(numbers, distinct): the first `count` rows are distinct[numbers], each of which is there once."""
    width = rows.shape[1]
    numbers, hashes, size = np.empty(count, np.int32), np.empty(count, np.int64), 0
    distinct, index = np.empty((256, width), np.int32), np.full(512, NONE, np.int32)
    for i in range(count):
        mixed = _SEED
        for j in range(width):
            mixed = (mixed ^ np.uint64(rows[i, j])) * _FACTOR
            mixed ^= mixed >> _SHIFT
        hashed = np.int64(mixed >> np.uint64(1))
        mask = len(index) - 1
        at = hashed & mask
        while index[at] != NONE:
            j = 0
            while j < width and rows[i, j] == distinct[index[at], j]:
                j += 1
            if j == width:
                break
            at = (at + 1) & mask
        if index[at] == NONE:
            if size == len(distinct):
                distinct = grown(distinct, 0)
            index[at], hashes[size] = size, hashed
            for j in range(width):
                distinct[size, j] = rows[i, j]
            size += 1
        numbers[i] = index[at]
        if 2 * size > len(index):
            index = np.full(2 * len(index), NONE, np.int32)
            mask = len(index) - 1
            for number in range(size):
                at = hashes[number] & mask
                while index[at] != NONE:
                    at = (at + 1) & mask
                index[at] = number
    return numbers, distinct[:size].copy()


@kernel
def combine_all(
    firsts: I32, memory: I32, table: I64, rows: I32, layout: I64, steps: Any, checks: I64, views: I64
) -> tuple[I64, I32, I32]:
    """(starts, found, combinations): views[i] has combinations[found[starts[i]:starts[i + 1]]]."""
    relations = layout.shape[0] - 2
    stack, out, end = np.empty((2, relations), np.int64), np.empty((1024, relations), np.int32), 0
    starts = np.zeros(len(views) + 1, np.int64)
    for i in range(len(views)):
        entry = firsts[views[i]]
        while entry != NONE:
            row = memory[entry + ROW]
            if rows[row, RELATION] == 0 or rows[row, RELATION] == relations:
                start, end = end, NONE
                while end == NONE:
                    end = combine(memory, table, rows, layout, steps, checks, views[i], row, stack, out, start)
                    if end == NONE:
                        out = grown(out, 0)
            entry = memory[entry + NEXT]
        starts[i + 1] = end
    found, combinations = number_distinct(out, end)
    return starts, found, combinations
