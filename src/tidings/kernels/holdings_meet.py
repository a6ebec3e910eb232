"""Whom a change concerns: the points that hold an entry as it was, and those that should hold it as it is now."""

from __future__ import annotations

import numpy as np
from numba import njit

from tidings.kernels.holdings_arrays import (
    BLOCK,
    BLOCK_MAX,
    COUNT,
    I64,
    IS_LEAF,
    LEFT,
    RIGHT,
    ROOT,
    SET,
    Int,
    Tree,
    Y,
    is_less,
)

LOSES, GAINS = 1, 2
"""Kinds of hits: a point loses the entry, which is no longer in its box; or gains it. Both: it holds an entry that stays."""

# Fields of a hit: leaf, place in the block, which of the above, and the entry that takes the place of the changed one.
HIT_LEAF, HIT_PLACE, HIT_KIND, HIT_HEIR, HIT_FIELDS = range(5)


@njit(cache=True)
def may_hold(t: Tree, node: Int, item: I64, key: Int) -> bool:
    """True if points below a node may have an entry in their boxes, with a key up to their own; `key` is where it has y."""
    y, b = t.head[Y], t.bounds
    if is_less(b[node, 1, y], b[node, 1, y + 1], item[key], item[key + 1]):
        return False
    c = 1
    while c < key and b[node, 0, 2 * c - 1] <= item[c] <= b[node, 1, 2 * c]:
        c += 1
    return bool(c == key)


@njit(cache=True)
def has_inside(t: Tree, block: Int, i: Int, item: I64, key: Int) -> bool:
    """True if the box of the i-th point of a block has an entry inside."""
    c = 1
    while c < key and t.pool[block, 2 * c - 1, i] <= item[c] <= t.pool[block, 2 * c, i]:
        c += 1
    return bool(c == key)


@njit(cache=True)
def meet_leaf(t: Tree, leaf: Int, old: I64, new: I64, had: bool, has: bool, hits: I64, n: Int) -> Int:
    """Write the hits in a leaf behind n others; returns how many there are then."""
    y, key, pool = t.head[Y], len(old) - 3, t.pool
    block = t.links[leaf, BLOCK]
    for i in range(t.links[leaf, COUNT]):
        if pool[block, SET, i] != new[SET]:
            continue
        holds = had and not is_less(pool[block, y, i], pool[block, y + 1, i], old[key], old[key + 1])
        wants = has and not is_less(pool[block, y, i], pool[block, y + 1, i], new[key], new[key + 1])
        holds = holds and has_inside(t, block, i, old, key)
        if holds or wants:
            comes = has and has_inside(t, block, i, new, key)
            if holds or comes:
                hits[n, HIT_LEAF], hits[n, HIT_PLACE] = leaf, i
                hits[n, HIT_KIND] = (LOSES if holds else 0) | (GAINS if comes else 0)
                n += 1
    return n


@njit(cache=True)
def meet(t: Tree, stack: I64, old: I64, new: I64, had: bool, has: bool, hits: I64) -> tuple[I64, Int]:
    """All points that a change of an entry from an item to another concerns, leaf by leaf, and how many they are.

    `had` and `has` tell whether there was, and is, such an entry; the set is that of the new item. The hits may be put
    to a longer array.
    """
    key, n, depth = len(old) - 3, 0, 0
    if t.head[ROOT] >= 0:
        stack[0] = t.head[ROOT]
        depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        if t.bounds[node, 0, SET] > new[SET] or t.bounds[node, 1, SET] < new[SET]:
            continue
        if not ((had and may_hold(t, node, old, key)) or (has and may_hold(t, node, new, key))):
            continue
        if t.links[node, LEFT] != IS_LEAF:
            stack[depth], stack[depth + 1] = t.links[node, RIGHT], t.links[node, LEFT]
            depth += 2
            continue
        if n + BLOCK_MAX > len(hits):
            hits = np.concatenate((hits, np.empty((len(hits) + BLOCK_MAX, HIT_FIELDS), np.int64)))
        n = meet_leaf(t, node, old, new, had, has, hits, n)
    return hits, n
