"""Searching a tree of entries for the k best entries of a box.

A walk goes down to the lower keys first, and leaves out every node that is beside the box, or has no key up to the greatest
of the best found so far. The k lowest keys seen so far are kept in a binary heap, the greatest of them on top.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from research.strategies.topk.kernels.box_topk.layout import (
    BLOCK,
    BLOCK_MAX,
    COUNT,
    I64,
    INT64_MAX,
    IS_LEAF,
    LEFT,
    LINK_FIELDS,
    NOBODY,
    RIGHT,
    ROOT,
    Int,
    Tree,
    TreePointers,
    is_less,
    tree_pointers,
)
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel

# Fields of a row of a heap.
HEAP_Y, HEAP_TIE, HEAP_ENTRY, HEAP_FIELDS = range(4)


class Search(NamedTuple):
    """A tree of entries, and boxes to search it for, as pointers."""

    tree: TreePointers
    boxes: Any
    """Ends of boxes [lo_1, hi_1 .. lo_d, hi_d], end to end; a box is known by its place."""


@kernel
def may_have(s: Search, node: Int, of: Int, box: Int, last_y: Int, last_tie: Int) -> bool:
    """Whether below a node there may be entries of a set in a box with keys up to the last."""
    w = s.tree
    low = 2 * node * w.half
    high = low + w.half
    if is_less(last_y, last_tie, w.bounds[low + w.y], w.bounds[low + w.y + 1]):
        return False
    if w.bounds[low] > of or w.bounds[high] < of:
        return False
    for c in range(1, w.y):
        if w.bounds[low + c] > s.boxes[box + 2 * c - 1] or w.bounds[high + c] < s.boxes[box + 2 * c - 2]:
            return False
    return True


@kernel
def push_children(w: TreePointers, node: Int, depth: Int) -> Int:
    """Puts the children of an inner node on the stack, the one with the lower key on top; returns the new depth."""
    first, second = w.links[node * LINK_FIELDS + LEFT], w.links[node * LINK_FIELDS + RIGHT]
    a, b = 2 * first * w.half + w.y, 2 * second * w.half + w.y
    if is_less(w.bounds[b], w.bounds[b + 1], w.bounds[a], w.bounds[a + 1]):
        first, second = second, first
    w.stack[depth], w.stack[depth + 1] = second, first
    return depth + 2


@kernel
def is_inside(s: Search, at: Int, i: Int, of: Int, box: Int) -> bool:
    """Whether the i-th entry of the block at a place of the pool is of a set, and in a box."""
    w = s.tree
    if w.pool[at + i] != of:
        return False
    for c in range(1, w.y):
        x = w.pool[at + c * BLOCK_MAX + i]
        if x < s.boxes[box + 2 * c - 2] or x > s.boxes[box + 2 * c - 1]:
            return False
    return True


@kernel
def is_above(heap: I64, a: Int, b: Int) -> bool:
    """Whether the key at one place of a heap is greater than that at another."""
    return bool(is_less(heap[b, HEAP_Y], heap[b, HEAP_TIE], heap[a, HEAP_Y], heap[a, HEAP_TIE]))


@kernel
def swap(heap: I64, a: Int, b: Int) -> None:
    for field in range(HEAP_FIELDS):
        heap[a, field], heap[b, field] = heap[b, field], heap[a, field]


@kernel
def rise(heap: I64, at: Int) -> None:
    """Moves the last entry up to where it belongs."""
    while at and is_above(heap, at, (at - 1) // 2):
        swap(heap, at, (at - 1) // 2)
        at = (at - 1) // 2


@kernel
def sink(heap: I64, n: Int) -> None:
    """Moves the top one of n entries down to where it belongs."""
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
    """Puts an entry into a heap of n, in place of the top one if it is full; returns how many there are then."""
    at = n if n < len(heap) else 0
    heap[at, HEAP_Y], heap[at, HEAP_TIE], heap[at, HEAP_ENTRY] = y, tie, entry
    if n == len(heap):
        sink(heap, n)
        return n
    rise(heap, n)
    return n + 1


@kernel
def best_of(s: Search, of: Int, box: Int, heap: I64) -> Int:
    """Fills a heap with as many of the best entries of a box as it has room for; returns how many they are."""
    w, n = s.tree, 0
    last_y, last_tie = INT64_MAX, INT64_MAX
    w.stack[0] = w.head[ROOT]
    depth = 0 if w.stack[0] == NOBODY else 1
    while depth:
        depth -= 1
        node = w.stack[depth]
        if not may_have(s, node, of, box, last_y, last_tie):
            continue
        if w.links[node * LINK_FIELDS + LEFT] != IS_LEAF:
            depth = push_children(w, node, depth)
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
def best(k: Int, entries: Tree, of: I64, boxes: I64, starts: I64) -> I64:
    """The best entries of each box, lowest key first, at starts[i]:starts[i + 1]."""
    heap = np.empty((k, HEAP_FIELDS), np.int64)
    s = Search(tree_pointers(entries), pointer(boxes))
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
