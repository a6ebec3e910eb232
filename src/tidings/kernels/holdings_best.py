"""The best entries of boxes: a walk that keeps the k lowest keys seen so far in a heap, the greatest of them on top."""

from __future__ import annotations

import numpy as np

from tidings.kernels.holdings_arrays import (
    BLOCK,
    BLOCK_MAX,
    COUNT,
    I64,
    INT64_MAX,
    INT64_MIN,
    IS_LEAF,
    LEFT,
    LINK_FIELDS,
    NOBODY,
    Int,
    Tree,
    is_less,
)
from tidings.kernels.holdings_search import UPWARDS, Search, is_inside, may_have, push_children, search_in
from tidings.kernels.jit import kernel

# Fields of a row of a heap.
HEAP_Y, HEAP_TIE, HEAP_ENTRY, HEAP_FIELDS = range(4)


@kernel
def new_heap(k: Int) -> I64:
    """Room for k entries."""
    return np.empty((k, HEAP_FIELDS), np.int64)


@kernel
def is_above(heap: I64, a: Int, b: Int) -> bool:
    """True if the key at one place of a heap is greater than that at another."""
    return bool(is_less(heap[b, HEAP_Y], heap[b, HEAP_TIE], heap[a, HEAP_Y], heap[a, HEAP_TIE]))


@kernel
def swap(heap: I64, a: Int, b: Int) -> None:
    for field in range(HEAP_FIELDS):
        heap[a, field], heap[b, field] = heap[b, field], heap[a, field]


@kernel
def rise(heap: I64, at: Int) -> None:
    """Move the last entry up to where it belongs."""
    while at and is_above(heap, at, (at - 1) // 2):
        swap(heap, at, (at - 1) // 2)
        at = (at - 1) // 2


@kernel
def sink(heap: I64, n: Int) -> None:
    """Move the top one of n entries down to where it belongs."""
    at = 0
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and is_above(heap, child + 1, child):
            child += 1
        if not is_above(heap, child, at):
            break
        swap(heap, at, child)
        at = child


@kernel
def offer(heap: I64, n: Int, y: Int, tie: Int, entry: Int) -> Int:
    """Put an entry into a heap of n, in place of the top one if it is full; returns how many there are then."""
    at = n if n < len(heap) else 0
    heap[at, HEAP_Y], heap[at, HEAP_TIE], heap[at, HEAP_ENTRY] = y, tie, entry
    if n == len(heap):
        sink(heap, n)
        return n
    rise(heap, n)
    return n + 1


@kernel
def best_of(s: Search, of: Int, box: Int, heap: I64) -> Int:
    """Have as many of the best entries of a box in a heap as it has room for; returns how many they are."""
    w, n = s.walk, 0
    last_y, last_tie = INT64_MAX, INT64_MAX
    w.stack[0] = w.root
    depth = 0 if w.root == NOBODY else 1
    while depth:
        depth -= 1
        node = w.stack[depth]
        if not may_have(s, node, of, box, UPWARDS, INT64_MIN, INT64_MIN, last_y, last_tie):
            continue
        if w.links[node * LINK_FIELDS + LEFT] != IS_LEAF:
            depth = push_children(w, node, depth, UPWARDS)
            continue
        at = w.links[node * LINK_FIELDS + BLOCK] * w.block_width
        keys = at + w.y * BLOCK_MAX
        for i in range(w.links[node * LINK_FIELDS + COUNT]):
            y, tie = w.pool[keys + i], w.pool[keys + BLOCK_MAX + i]
            if not is_less(last_y, last_tie, y, tie) and is_inside(s, at, i, of, box):
                n = offer(heap, n, y, tie, w.pool[keys + 2 * BLOCK_MAX + i])
                if n == len(heap):
                    last_y, last_tie = heap[0, HEAP_Y], heap[0, HEAP_TIE]
    return n


@kernel
def best(k: Int, entries: Tree, known: I64, of: I64, boxes: I64, starts: I64, stack: I64) -> I64:
    """The best entries of each box, lowest key first, at starts[i]:starts[i + 1]."""
    heap = new_heap(k)
    s = search_in(entries, known, boxes, stack)
    found = np.empty(k + 8 * len(of), np.int64)
    for i in range(len(of)):
        n = best_of(s, of[i], i * boxes.shape[1], heap)
        if starts[i] + n > len(found):
            found = np.concatenate((found, np.empty(len(found) + n, np.int64)))
        for left in range(n, 0, -1):
            found[starts[i] + left - 1] = heap[0, HEAP_ENTRY]
            swap(heap, 0, left - 1)
            sink(heap, left - 1)
        starts[i + 1] = starts[i] + n
    return found[: starts[-1]]
