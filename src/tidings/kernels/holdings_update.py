"""Single items put into a tree and taken out: full leaves are cut in two, nodes with few items become leaves again.

A node whose parts have become too uneven since it was made is built again when the next item comes. That takes time in
proportion to its items, but not before half as many have come or gone; so it is cheap on average, also where items cannot
be cut evenly.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.holdings_arrays import (
    BLOCK,
    BLOCK_MAX,
    COLUMN,
    COUNT,
    HEIGHT_MAX,
    I64,
    IS_LEAF,
    LEFT,
    NOBODY,
    PARENT,
    RIGHT,
    ROOT,
    STALE,
    TURN,
    VALUE,
    WIDTH,
    WORN,
    Int,
    Tree,
    block_free,
    child_for,
    leaf_new,
    node_free,
    with_room,
)
from tidings.kernels.holdings_bounds import bound_leaf, bound_node, clear_bounds, extend
from tidings.kernels.holdings_build import choose_cut, read_leaf, renew, write_leaf
from tidings.kernels.jit import kernel
from tidings.kernels.point_index.build import divide


@kernel
def is_worn(t: Tree, node: Int) -> bool:
    """True if an inner node should be built again."""
    n = t.links[node, COUNT]
    most = max(t.links[t.links[node, LEFT], COUNT], t.links[t.links[node, RIGHT], COUNT])
    return bool(n > 4 * BLOCK_MAX and 4 * most > 3 * n and 2 * t.links[node, STALE] > n)


@kernel
def cut_leaf(t: Tree, leaf: Int) -> None:
    """Make two leaves below a leaf and divide its items among them."""
    n = t.links[leaf, COUNT]
    items = np.empty((n, t.head[WIDTH]), np.int64)
    read_leaf(t, leaf, items, 0)
    rows = np.arange(n).astype(np.int32)
    keys, scratch = np.empty(n, np.int64), np.empty(n, np.int64)
    column, value, turn = choose_cut(t, items, rows, 0, n, t.links[leaf, TURN], keys, scratch)
    middle = divide(items, rows, 0, n, column, value, np.empty(n, np.int32))
    block_free(t, t.links[leaf, BLOCK])
    left, right = leaf_new(t, leaf, turn), leaf_new(t, leaf, turn)
    write_leaf(t, left, items, rows, 0, middle)
    write_leaf(t, right, items, rows, middle, n)
    t.links[leaf, LEFT], t.links[leaf, RIGHT] = left, right
    t.links[leaf, COLUMN], t.links[leaf, VALUE], t.links[leaf, STALE] = column, value, 0


@kernel
def put(t: Tree, item: I64) -> Tree:
    """The tree with one more item, which must differ from all others."""
    t = with_room(t, 3, 3)
    if t.head[ROOT] == NOBODY:
        t.head[ROOT] = leaf_new(t, NOBODY, 0)
        clear_bounds(t, t.head[ROOT])
    node = t.head[ROOT]
    height = 0
    while True:
        extend(t, node, item)
        if t.links[node, LEFT] == IS_LEAF:
            if t.links[node, COUNT] < BLOCK_MAX:
                break
            cut_leaf(t, node)
        t.links[node, COUNT] += 1
        t.links[node, STALE] += 1
        if t.head[WORN] == NOBODY and is_worn(t, node):
            t.head[WORN] = node
        node = child_for(t, node, item)
        height += 1
    block, n = t.links[node, BLOCK], t.links[node, COUNT]
    for c in range(t.head[WIDTH]):
        t.pool[block, c, n] = item[c]
    t.links[node, COUNT] = n + 1
    if height >= HEIGHT_MAX:
        t.head[WORN] = t.head[ROOT]
    renewed: Tree = renew(t)
    return renewed


@kernel
def unite(t: Tree, node: Int) -> None:
    """Make a node a leaf with the items of its children, which are leaves."""
    left, right = t.links[node, LEFT], t.links[node, RIGHT]
    block, other, n = t.links[left, BLOCK], t.links[right, BLOCK], t.links[left, COUNT]
    for i in range(t.links[right, COUNT]):
        for c in range(t.head[WIDTH]):
            t.pool[block, c, n + i] = t.pool[other, c, i]
    t.links[node, LEFT], t.links[node, BLOCK] = IS_LEAF, block
    block_free(t, other)
    node_free(t, left)
    node_free(t, right)


@kernel
def take(t: Tree, leaf: Int, place: Int) -> None:
    """Take out the item at a place of a leaf."""
    block, last = t.links[leaf, BLOCK], t.links[leaf, COUNT] - 1
    for c in range(t.head[WIDTH]):
        t.pool[block, c, place] = t.pool[block, c, last]
    t.links[leaf, COUNT] = last
    bound_leaf(t, leaf)
    node = t.links[leaf, PARENT]
    while node != NOBODY:
        t.links[node, COUNT] -= 1
        t.links[node, STALE] += 1
        bound_node(t, node)
        if 2 * t.links[node, COUNT] <= BLOCK_MAX:
            # Its children have no more items, so they have become leaves before.
            unite(t, node)
        node = t.links[node, PARENT]
