"""Points that come and go. Those with the same box of the same set are one point, which is counted."""

from __future__ import annotations

import numpy as np

from tidings.kernels.holdings_arrays import BLOCK, I64, INT64_MAX, NOBODY, ROOT, SET, Int, Tree, Y, find
from tidings.kernels.holdings_best import HEAP_TIE, HEAP_Y, best_of, new_heap
from tidings.kernels.holdings_build import read_below, rebuilt
from tidings.kernels.holdings_search import UPWARDS, next_key, search_in
from tidings.kernels.holdings_update import put, take
from tidings.kernels.jit import kernel


@kernel
def add(k: Int, entries: Tree, points: Tree, known: I64, of: I64, boxes: I64, stack: I64) -> Tree:
    """The tree of points with some more."""
    y = points.head[Y]
    item, heap = np.zeros(y + 4, np.int64), new_heap(k)
    s = search_in(entries, known, boxes, stack)
    for i in range(len(of)):
        item[SET] = of[i]
        item[1:y] = boxes[i]
        leaf, place = find(points, item)
        if place != NOBODY:
            points.pool[points.links[leaf, BLOCK], y + 3, place] += 1
            continue
        held = best_of(s, of[i], i * (y - 1), heap)
        item[y], item[y + 1] = (heap[0, HEAP_Y], heap[0, HEAP_TIE]) if held == k else (INT64_MAX, INT64_MAX)
        item[y + 2], item[y + 3] = held, 1
        points = put(points, item)
    return points


@kernel
def remove(points: Tree, of: I64, boxes: I64) -> Int:
    """Remove points, each of them once; returns how many there were, which is the number of the first that is not there."""
    y = points.head[Y]
    item = np.zeros(y + 4, np.int64)
    for i in range(len(of)):
        item[SET] = of[i]
        item[1:y] = boxes[i]
        leaf, place = find(points, item)
        if place == NOBODY:
            return i
        block = points.links[leaf, BLOCK]
        points.pool[block, y + 3, place] -= 1
        if points.pool[block, y + 3, place] == 0:
            take(points, leaf, place)
    return len(of)


@kernel
def items_of(t: Tree) -> I64:
    """All items of a tree."""
    if t.head[ROOT] == NOBODY:
        return np.empty((0, t.pool.shape[1]), np.int64)
    items: I64 = read_below(t, t.head[ROOT])
    return items


@kernel
def retie(
    k: Int, entries: Tree, points: Tree, known: I64, changed: I64, ties: I64, boxes: I64, stack: I64
) -> tuple[Tree, Tree]:
    """Give entries other ties, which leave those of every set in the same order; `boxes` are those of `items_of(points)`."""
    items, holders = items_of(entries), items_of(points)
    key, y = entries.head[Y], points.head[Y]
    s = search_in(entries, known, boxes, stack)
    # Whose key is a point's greatest is found by the old ties, before any has a new one.
    last = np.empty(len(holders), np.int64)
    for i in range(len(holders)):
        last[i] = NOBODY
        if holders[i, y + 2] == k:
            of, last_y, last_tie = holders[i, SET], holders[i, y], holders[i, y + 1]
            _, _, last[i] = next_key(s, of, i * (y - 1), UPWARDS, last_y, last_tie, last_y, last_tie, NOBODY, NOBODY)
    for i in range(len(changed)):
        known[changed[i], key + 1] = ties[i]
    for i in range(len(items)):
        items[i, key + 1] = known[items[i, key + 2], key + 1]
    for i in range(len(holders)):
        if last[i] != NOBODY:
            holders[i, y + 1] = known[last[i], key + 1]
    if len(items):
        entries = rebuilt(entries, items)
    if len(holders):
        points = rebuilt(points, holders)
    return entries, points
