"""Searching a tree of entries by key: the next entry of a box above a key, or below one.

A walk goes down to the lower keys first, and leaves out every node that is beside the box, or has no key in the span from
where the search starts to the best found so far. Searching downwards is searching upwards with all bits of all keys flipped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tidings.kernels.anchors_arrays import pointer
from tidings.kernels.holdings_arrays import (
    BLOCK,
    BLOCK_MAX,
    COUNT,
    HEIGHT_MAX,
    I64,
    INT64_MAX,
    INT64_MIN,
    IS_LEAF,
    LEFT,
    LINK_FIELDS,
    NOBODY,
    RIGHT,
    ROOT,
    Int,
    Tree,
    Y,
    is_less,
)

UPWARDS, DOWNWARDS = 0, -1
"""What keys are combined with, by exclusive or."""


class Search(NamedTuple):
    """Entries and boxes without sizes and reference counts, for compiled code only (see anchors_arrays.Pointers)."""

    root: Int
    y: Int
    links: Any
    bounds: Any
    pool: Any
    known: Any
    """Entries by number, with the same columns as in the tree."""
    boxes: Any
    """Ends of boxes [lo_1, hi_1 .. lo_d, hi_d], end to end; a box is known by its place."""
    stack: Any
    """Scratch."""


def new_stack() -> I64:
    """A stack that no walk outgrows."""
    return np.empty(2 * HEIGHT_MAX, np.int64)


@njit(cache=True)
def search_in(t: Tree, known: I64, boxes: I64, stack: I64) -> Search:
    """To search a tree as it is now.

    Compiled code forgets arrays as soon as they are not named any more: so they must be arguments of the kernel that was
    called from Python, or named once more when the search is over.
    """
    links, bounds, pool = pointer(t.links), pointer(t.bounds), pointer(t.pool)
    return Search(t.head[ROOT], t.head[Y], links, bounds, pool, pointer(known), pointer(boxes), pointer(stack))


@njit(cache=True)
def may_have(s: Search, node: Int, of: Int, box: Int, flip: Int, y: Int, tie: Int, last_y: Int, last_tie: Int) -> bool:
    """True if below a node there may be entries of a set in a box with keys from the first to the last, all flipped."""
    low = node * 2 * (s.y + 2)
    high = low + s.y + 2
    near, far = (low + s.y, high + s.y) if flip == UPWARDS else (high + s.y, low + s.y)
    if is_less(last_y, last_tie, s.bounds[near] ^ flip, s.bounds[near + 1] ^ flip):
        return False
    if is_less(s.bounds[far] ^ flip, s.bounds[far + 1] ^ flip, y, tie):
        return False
    if s.bounds[low] > of or s.bounds[high] < of:
        return False
    for c in range(1, s.y):
        if s.bounds[low + c] > s.boxes[box + 2 * c - 1] or s.bounds[high + c] < s.boxes[box + 2 * c - 2]:
            return False
    return True


@njit(cache=True)
def comes_first(s: Search, node: Int, other: Int, flip: Int) -> bool:
    """True if the first key of a node is less than that of another."""
    width = s.y + 2
    y = s.y if flip == UPWARDS else s.y + width
    a, b = node * 2 * width + y, other * 2 * width + y
    return bool(is_less(s.bounds[a] ^ flip, s.bounds[a + 1] ^ flip, s.bounds[b] ^ flip, s.bounds[b + 1] ^ flip))


@njit(cache=True)
def is_inside(s: Search, at: Int, i: Int, of: Int, box: Int) -> bool:
    """True if the i-th entry of the block at a place of the pool is of a set, and in a box."""
    if s.pool[at + i] != of:
        return False
    for c in range(1, s.y):
        x = s.pool[at + c * BLOCK_MAX + i]
        if x < s.boxes[box + 2 * c - 2] or x > s.boxes[box + 2 * c - 1]:
            return False
    return True


@njit(cache=True)
def is_between(s: Search, entry: Int, box: Int, flip: Int, y: Int, tie: Int, last_y: Int, last_tie: Int) -> bool:
    """True if an entry, of the right set, is in a box and has a key from the first to the last."""
    at = entry * (s.y + 2)
    entry_y, entry_tie = s.known[at + s.y] ^ flip, s.known[at + s.y + 1] ^ flip
    if is_less(entry_y, entry_tie, y, tie) or is_less(last_y, last_tie, entry_y, entry_tie):
        return False
    for c in range(1, s.y):
        if s.known[at + c] < s.boxes[box + 2 * c - 2] or s.known[at + c] > s.boxes[box + 2 * c - 1]:
            return False
    return True


@njit(cache=True)
def next_key(
    s: Search, of: Int, box: Int, flip: Int, y: Int, tie: Int, last_y: Int, last_tie: Int, last: Int, guess: Int
) -> tuple[Int, Int, Int]:
    """The first key from (y, tie) up to the last, all flipped, of an entry of a set in a box; and the entry.

    If there is none, that is the last key, with whoever the caller says has it. `guess` may be any entry of the set, or
    NOBODY: one with a key not far from the one looked for makes the search shorter.
    """
    if guess != NOBODY and is_between(s, guess, box, flip, y, tie, last_y, last_tie):
        at = guess * (s.y + 2) + s.y
        last_y, last_tie, last = s.known[at] ^ flip, s.known[at + 1] ^ flip, guess
    depth = 0
    if s.root != NOBODY:
        s.stack[0] = s.root
        depth = 1
    while depth:
        depth -= 1
        node = s.stack[depth]
        if not may_have(s, node, of, box, flip, y, tie, last_y, last_tie):
            continue
        first = s.links[node * LINK_FIELDS + LEFT]
        if first != IS_LEAF:
            second = s.links[node * LINK_FIELDS + RIGHT]
            if comes_first(s, second, first, flip):
                first, second = second, first
            s.stack[depth], s.stack[depth + 1] = second, first
            depth += 2
            continue
        at = s.links[node * LINK_FIELDS + BLOCK] * (s.y + 3) * BLOCK_MAX
        keys = at + s.y * BLOCK_MAX
        for i in range(s.links[node * LINK_FIELDS + COUNT]):
            entry_y = s.pool[keys + i] ^ flip
            if entry_y < y or entry_y > last_y:
                continue
            entry_tie = s.pool[keys + BLOCK_MAX + i] ^ flip
            if is_less(entry_y, entry_tie, y, tie) or is_less(last_y, last_tie, entry_y, entry_tie):
                continue
            if is_inside(s, at, i, of, box):
                last_y, last_tie, last = entry_y, entry_tie, s.pool[keys + 2 * BLOCK_MAX + i]
    return last_y, last_tie, last


@njit(cache=True)
def next_above(
    s: Search, of: Int, box: Int, y: Int, tie: Int, last_y: Int, last_tie: Int, last: Int, guess: Int
) -> tuple[Int, Int, Int]:
    """The first key above (y, tie), up to the last, which are not flipped; see `next_key`."""
    if tie < INT64_MAX:
        tie += 1
    elif y < INT64_MAX:
        y, tie = y + 1, INT64_MIN
    else:
        return last_y, last_tie, last
    last_y, last_tie, last = next_key(s, of, box, UPWARDS, y, tie, last_y, last_tie, last, guess)
    return last_y, last_tie, last
