"""Searching a tree of entries by key: the next entry of a box above a key, or below one.

A walk goes down to the lower keys first, and leaves out every node that is beside the box, or has no key in the span from
where the search starts to the best found so far. Searching downwards is searching upwards with all bits of all keys flipped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.kernels.arrays import pointer
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
    RIGHT,
    Int,
    Tree,
    Walk,
    is_less,
    walk_in,
)
from tidings.kernels.jit import kernel

UPWARDS, DOWNWARDS = 0, -1
"""What keys are combined with, by exclusive or."""


class Search(NamedTuple):
    """Entries, and boxes to search them for; see `Walk`."""

    walk: Walk
    known: Any
    """Entries by number, with the same columns as in the tree."""
    boxes: Any
    """Ends of boxes [lo_1, hi_1 .. lo_d, hi_d], end to end; a box is known by its place."""


@kernel
def search_in(t: Tree, known: I64, boxes: I64, stack: I64) -> Search:
    """For searches in a tree as it is now."""
    return Search(walk_in(t, stack), pointer(known), pointer(boxes))


@kernel
def may_have(s: Search, node: Int, of: Int, box: Int, flip: Int, y: Int, tie: Int, last_y: Int, last_tie: Int) -> bool:
    """True if below a node there may be entries of a set in a box with keys from the first to the last, all flipped."""
    w = s.walk
    low = node * w.bounds_width
    high = low + w.y + 2
    near, far = (low + w.y, high + w.y) if flip == UPWARDS else (high + w.y, low + w.y)
    if is_less(last_y, last_tie, w.bounds[near] ^ flip, w.bounds[near + 1] ^ flip):
        return False
    if is_less(w.bounds[far] ^ flip, w.bounds[far + 1] ^ flip, y, tie):
        return False
    if w.bounds[low] > of or w.bounds[high] < of:
        return False
    for c in range(1, w.y):
        if w.bounds[low + c] > s.boxes[box + 2 * c - 1] or w.bounds[high + c] < s.boxes[box + 2 * c - 2]:
            return False
    return True


@kernel
def push_children(w: Walk, node: Int, depth: Int, flip: Int) -> Int:
    """Have the children of an inner node looked at next, the one with the lower key first; returns the new depth."""
    first, second = w.links[node * LINK_FIELDS + LEFT], w.links[node * LINK_FIELDS + RIGHT]
    near = w.y if flip == UPWARDS else w.y + w.y + 2
    a, b = first * w.bounds_width + near, second * w.bounds_width + near
    if is_less(w.bounds[b] ^ flip, w.bounds[b + 1] ^ flip, w.bounds[a] ^ flip, w.bounds[a + 1] ^ flip):
        first, second = second, first
    w.stack[depth], w.stack[depth + 1] = second, first
    return depth + 2


@kernel
def is_inside(s: Search, at: Int, i: Int, of: Int, box: Int) -> bool:
    """True if the i-th entry of the block at a place of the pool is of a set, and in a box."""
    w = s.walk
    if w.pool[at + i] != of:
        return False
    for c in range(1, w.y):
        x = w.pool[at + c * BLOCK_MAX + i]
        if x < s.boxes[box + 2 * c - 2] or x > s.boxes[box + 2 * c - 1]:
            return False
    return True


@kernel
def is_between(s: Search, entry: Int, box: Int, flip: Int, y: Int, tie: Int, last_y: Int, last_tie: Int) -> bool:
    """True if an entry, of the right set, is in a box and has a key from the first to the last."""
    width = s.walk.y + 2
    at = entry * width
    entry_y, entry_tie = s.known[at + width - 2] ^ flip, s.known[at + width - 1] ^ flip
    if is_less(entry_y, entry_tie, y, tie) or is_less(last_y, last_tie, entry_y, entry_tie):
        return False
    for c in range(1, width - 2):
        if s.known[at + c] < s.boxes[box + 2 * c - 2] or s.known[at + c] > s.boxes[box + 2 * c - 1]:
            return False
    return True


@kernel
def next_key(
    s: Search, of: Int, box: Int, flip: Int, y: Int, tie: Int, last_y: Int, last_tie: Int, last: Int, guess: Int
) -> tuple[Int, Int, Int]:
    """The first key from (y, tie) up to the last, all flipped, of an entry of a set in a box; and the entry.

    If there is none, that is the last key, with whoever the caller says has it. `guess` may be any entry of the set, or
    NOBODY: one with a key not far from the one looked for makes the search shorter.
    """
    w = s.walk
    if guess != NOBODY and is_between(s, guess, box, flip, y, tie, last_y, last_tie):
        at = guess * (w.y + 2) + w.y
        last_y, last_tie, last = s.known[at] ^ flip, s.known[at + 1] ^ flip, guess
    w.stack[0] = w.root
    depth = 0 if w.root == NOBODY else 1
    while depth:
        depth -= 1
        node = w.stack[depth]
        if not may_have(s, node, of, box, flip, y, tie, last_y, last_tie):
            continue
        if w.links[node * LINK_FIELDS + LEFT] != IS_LEAF:
            depth = push_children(w, node, depth, flip)
            continue
        at = w.links[node * LINK_FIELDS + BLOCK] * w.block_width
        keys = at + w.y * BLOCK_MAX
        for i in range(w.links[node * LINK_FIELDS + COUNT]):
            entry_y = w.pool[keys + i] ^ flip
            if entry_y < y or entry_y > last_y:
                continue
            entry_tie = w.pool[keys + BLOCK_MAX + i] ^ flip
            if is_less(entry_y, entry_tie, y, tie) or is_less(last_y, last_tie, entry_y, entry_tie):
                continue
            if is_inside(s, at, i, of, box):
                last_y, last_tie, last = entry_y, entry_tie, w.pool[keys + 2 * BLOCK_MAX + i]
    return last_y, last_tie, last


@kernel
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
