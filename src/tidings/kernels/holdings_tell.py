"""What a change has to tell: sends of entries, each to a few boxes around the points that must get it.

First the changed entry goes to those who lose it, then as it is now to all others who hold it or should, and then come the
entries that take its place. An entry may go to any point whose box it is in, without harm, and all points in a box around
such points are such points. So one box would do; but a box has many points in it that need not be told, and a few have far
fewer. Points are divided among boxes like those of a kd-tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kernels.holdings_arrays import I32, I64, NOBODY, U8, Int
from tidings.kernels.holdings_meet import HIT_HEIR, HIT_KIND, LOSES
from tidings.kernels.jit import kernel
from tidings.kernels.point_index.build import choose_cut, divide

PARTS_MAX = 8
"""Most boxes of a send."""
PART_MIN = 4
"""Points for which a box of their own is worth its bytes."""


class Output(NamedTuple):
    """Room for sends and their boxes; `ends` are the numbers of sends and boxes told, and of hits they were told for."""

    ends: I64
    sent: I64
    is_gone: U8
    box_starts: I64
    box_lo: I64
    """[boxes, 2 * dims]"""
    box_hi: I64
    """[boxes, 2 * dims]"""


@kernel
def new_output(room: Int, width: Int) -> Output:
    sent, is_gone, box_starts = np.empty(room, np.int64), np.empty(room, np.uint8), np.zeros(room + 1, np.int64)
    return Output(
        np.zeros(3, np.int64),
        sent,
        is_gone,
        box_starts,
        np.empty((room, width), np.int64),
        np.empty((room, width), np.int64),
    )


@kernel
def with_room_for(out: Output, more: Int) -> Output:
    """The output with room for so many more sends and boxes."""
    sends, boxes = out.ends[0], out.ends[1]
    if max(sends, boxes) + more <= len(out.sent):
        return out
    longer: Output = new_output(2 * len(out.sent) + more, out.box_lo.shape[1])
    longer.ends[:] = out.ends
    longer.sent[:sends], longer.is_gone[:sends] = out.sent[:sends], out.is_gone[:sends]
    longer.box_starts[: sends + 1] = out.box_starts[: sends + 1]
    longer.box_lo[:boxes], longer.box_hi[:boxes] = out.box_lo[:boxes], out.box_hi[:boxes]
    return longer


@kernel
def add_box(out: Output, points: I64, rows: I32, start: Int, end: Int) -> None:
    """Tell the box around the points of rows[start:end]."""
    at = out.ends[1]
    for c in range(points.shape[1]):
        low = high = points[rows[start], c]
        for i in range(start + 1, end):
            low, high = min(low, points[rows[i], c]), max(high, points[rows[i], c])
        out.box_lo[at, c], out.box_hi[at, c] = low, high
    out.ends[1] = at + 1


@kernel
def add_parts(out: Output, points: I64, rows: I32, start: Int, end: Int) -> None:
    """Tell a few boxes around the points of rows[start:end], which are reordered."""
    keys, scratch = np.empty(end - start, np.int64), np.empty(end - start, np.int64)
    held = np.empty(end - start, np.int32)
    every = (np.int64(1) << points.shape[1]) - 1
    stack = np.empty((PARTS_MAX, 4), np.int64)
    stack[0] = (start, end, 0, PARTS_MAX)
    depth = 1
    while depth:
        depth -= 1
        first, last, turn, parts = stack[depth]
        d = np.int64(-1)
        if parts > 1 and last - first >= 2 * PART_MIN:
            d, value, _ = choose_cut(points, rows, first, last, turn, every, keys, scratch)
        if d < 0:
            add_box(out, points, rows, first, last)
            continue
        middle = divide(points, rows, first, last, d, value, held)
        stack[depth] = (middle, last, d + 1, parts // 2)
        stack[depth + 1] = (first, middle, d + 1, parts - parts // 2)
        depth += 2


@kernel
def add_send(out: Output, entry: Int, is_gone: bool, points: I64, rows: I32, start: Int, end: Int) -> None:
    """Tell a send to the points of rows[start:end], which are reordered."""
    if end - start < 2 * PART_MIN:
        add_box(out, points, rows, start, end)
    else:
        add_parts(out, points, rows, start, end)
    at = out.ends[0]
    out.sent[at], out.is_gone[at] = entry, is_gone
    out.box_starts[at + 1] = out.ends[1]
    out.ends[0] = at + 1


@kernel
def number_heirs(told_as: I64, hits: I64, n: Int, group: I64, heirs: I64) -> Int:
    """Write the number of the heir of each hit, or NOBODY, and the heirs by number; returns how many they are.

    told_as [entries] may be anything.
    """
    count = 0
    for h in range(n):
        heir = hits[h, HIT_HEIR]
        group[h] = NOBODY
        if heir != NOBODY:
            at = told_as[heir]
            if not (0 <= at < count and heirs[at] == heir):
                at = told_as[heir] = count
                heirs[count] = heir
                count += 1
            group[h] = at
    return count


@kernel
def tell(out: Output, told_as: I64, entry: Int, hits: I64, n: Int, points: I64) -> Output:
    """Tell a change with some hits, at least one, at these points."""
    # Every hit is in at most two groups, and every group has no more boxes than hits.
    out = with_room_for(out, 2 * n)
    out.ends[2] += n
    rows = np.empty(n, np.int32)
    losers, end = 0, n
    for h in range(n):
        if hits[h, HIT_KIND] == LOSES:
            rows[losers] = h
            losers += 1
        else:
            end -= 1
            rows[end] = h
    if losers:
        add_send(out, entry, True, points, rows, 0, losers)
    if losers < n:
        add_send(out, entry, False, points, rows, losers, n)
    group, heirs = np.empty(n, np.int64), np.empty(n, np.int64)
    count = number_heirs(told_as, hits, n, group, heirs)
    ends = np.zeros(count + 1, np.int64)
    for h in range(n):
        if group[h] != NOBODY:
            ends[group[h] + 1] += 1
    for g in range(count):
        ends[g + 1] += ends[g]
    starts = ends.copy()
    for h in range(n):
        if group[h] != NOBODY:
            rows[ends[group[h]]] = h
            ends[group[h]] += 1
    for g in range(count):
        add_send(out, heirs[g], False, points, rows, starts[g], starts[g + 1])
    return out
