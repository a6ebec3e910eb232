"""Whom a change concerns: the points that hold an entry as it was, and those that should hold it as it is now."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.kernels.holdings_arrays import (
    BLOCK,
    BLOCK_MAX,
    COUNT,
    I64,
    IS_LEAF,
    LEFT,
    LINK_FIELDS,
    NOBODY,
    RIGHT,
    SET,
    Int,
    Walk,
    is_less,
)
from tidings.kernels.jit import kernel

LOSES, GAINS = 1, 2
"""Kinds of hits: a point loses the entry, which is no longer in its box; or gains it. Both: it holds an entry that stays."""

# Fields of a hit: leaf, place in the block, which of the above, and the entry that takes the place of the changed one.
HIT_LEAF, HIT_PLACE, HIT_KIND, HIT_HEIR, HIT_FIELDS = range(5)


class Course(NamedTuple):
    """A change of an entry, and the points it may concern; see `Walk`. Items have the columns of the tree of entries."""

    walk: Walk
    y: Int
    """The column of y of the items."""
    old: Any
    new: Any
    had: bool
    """Whether there was an entry like the old item; `has`: whether there now is one like the new item."""
    has: bool


@kernel
def may_hold(w: Walk, node: Int, item: Any, y: Int) -> bool:
    """True if points below a node may have an item in their boxes, with a key up to their own."""
    low = node * w.bounds_width
    high = low + w.y + 2
    if is_less(w.bounds[high + w.y], w.bounds[high + w.y + 1], item[y], item[y + 1]):
        return False
    if w.bounds[low] > item[SET] or w.bounds[high] < item[SET]:
        return False
    c = 1
    while c < y and w.bounds[low + 2 * c - 1] <= item[c] <= w.bounds[high + 2 * c]:
        c += 1
    return bool(c == y)


@kernel
def has_inside(w: Walk, at: Int, i: Int, item: Any, y: Int) -> bool:
    """True if the box of the i-th point of the block at a place of the pool has an item inside."""
    c = 1
    while c < y and w.pool[at + (2 * c - 1) * BLOCK_MAX + i] <= item[c] <= w.pool[at + 2 * c * BLOCK_MAX + i]:
        c += 1
    return bool(c == y and w.pool[at + i] == item[SET])


@kernel
def kind_of(a: Course, at: Int, i: Int) -> Int:
    """How a change hits the i-th point of the block at a place of the pool; 0 if it does not."""
    w, y = a.walk, a.y
    keys = at + w.y * BLOCK_MAX + i
    last_y, last_tie = w.pool[keys], w.pool[keys + BLOCK_MAX]
    loses = a.had and not is_less(last_y, last_tie, a.old[y], a.old[y + 1])
    gains = a.has and not is_less(last_y, last_tie, a.new[y], a.new[y + 1])
    if not loses and not gains:
        return 0
    loses = loses and has_inside(w, at, i, a.old, y)
    if not loses and not gains:
        return 0
    stays = a.has and has_inside(w, at, i, a.new, y)
    return (LOSES if loses else 0) | (GAINS if stays else 0)


@kernel
def meet(a: Course, hits: I64) -> tuple[I64, Int]:
    """All points that a change concerns, leaf by leaf, and how many they are; the hits may be put to a longer array."""
    w, n = a.walk, 0
    w.stack[0] = w.root
    depth = 0 if w.root == NOBODY else 1
    while depth:
        depth -= 1
        node = w.stack[depth]
        if not ((a.had and may_hold(w, node, a.old, a.y)) or (a.has and may_hold(w, node, a.new, a.y))):
            continue
        if w.links[node * LINK_FIELDS + LEFT] != IS_LEAF:
            w.stack[depth] = w.links[node * LINK_FIELDS + RIGHT]
            w.stack[depth + 1] = w.links[node * LINK_FIELDS + LEFT]
            depth += 2
            continue
        if n + BLOCK_MAX > len(hits):
            hits = np.concatenate((hits, np.empty((len(hits) + BLOCK_MAX, HIT_FIELDS), np.int64)))
        at = w.links[node * LINK_FIELDS + BLOCK] * w.block_width
        for i in range(w.links[node * LINK_FIELDS + COUNT]):
            kind = kind_of(a, at, i)
            if kind:
                hits[n, HIT_LEAF], hits[n, HIT_PLACE], hits[n, HIT_KIND] = node, i, kind
                n += 1
    return hits, n
