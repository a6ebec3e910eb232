"""Bounds of nodes: the lowest and highest number in every column, and the lowest and greatest key, below each."""

from __future__ import annotations

from tidings.kernels.holdings_arrays import (
    BLOCK,
    COUNT,
    I64,
    INT64_MAX,
    INT64_MIN,
    LEFT,
    NOBODY,
    PARENT,
    RIGHT,
    Int,
    Tree,
    Y,
    is_less,
)
from tidings.kernels.jit import kernel


@kernel
def clear_bounds(t: Tree, node: Int) -> None:
    for c in range(t.head[Y] + 2):
        t.bounds[node, 0, c], t.bounds[node, 1, c] = INT64_MAX, INT64_MIN


@kernel
def extend_keys(t: Tree, node: Int, low_y: Int, low_tie: Int, high_y: Int, high_tie: Int) -> None:
    """Have a node's bounds include the keys from the low one to the high one."""
    y, b = t.head[Y], t.bounds
    if is_less(low_y, low_tie, b[node, 0, y], b[node, 0, y + 1]):
        b[node, 0, y], b[node, 0, y + 1] = low_y, low_tie
    if is_less(b[node, 1, y], b[node, 1, y + 1], high_y, high_tie):
        b[node, 1, y], b[node, 1, y + 1] = high_y, high_tie


@kernel
def extend(t: Tree, node: Int, item: I64) -> None:
    """Have a node's bounds include an item."""
    y, b = t.head[Y], t.bounds
    for c in range(y):
        b[node, 0, c], b[node, 1, c] = min(b[node, 0, c], item[c]), max(b[node, 1, c], item[c])
    extend_keys(t, node, item[y], item[y + 1], item[y], item[y + 1])


@kernel
def bound_leaf(t: Tree, leaf: Int) -> None:
    """Find the bounds of a leaf from its items."""
    clear_bounds(t, leaf)
    y, b, pool = t.head[Y], t.bounds, t.pool
    block, n = t.links[leaf, BLOCK], t.links[leaf, COUNT]
    for c in range(y):
        low, high = INT64_MAX, INT64_MIN
        for i in range(n):
            low, high = min(low, pool[block, c, i]), max(high, pool[block, c, i])
        b[leaf, 0, c], b[leaf, 1, c] = low, high
    for i in range(n):
        extend_keys(t, leaf, pool[block, y, i], pool[block, y + 1, i], pool[block, y, i], pool[block, y + 1, i])


@kernel
def bound_node(t: Tree, node: Int) -> None:
    """Find the bounds of an inner node from its children's."""
    y, b = t.head[Y], t.bounds
    left, right = t.links[node, LEFT], t.links[node, RIGHT]
    b[node] = b[left]
    for c in range(y):
        b[node, 0, c], b[node, 1, c] = min(b[node, 0, c], b[right, 0, c]), max(b[node, 1, c], b[right, 1, c])
    extend_keys(t, node, b[right, 0, y], b[right, 0, y + 1], b[right, 1, y], b[right, 1, y + 1])


@kernel
def bound_greatest(t: Tree, leaf: Int) -> None:
    """Find the greatest key of a leaf some of whose keys have changed, and of the nodes above."""
    y, b, pool = t.head[Y], t.bounds, t.pool
    block = t.links[leaf, BLOCK]
    high_y, high_tie = INT64_MIN, INT64_MIN
    for i in range(t.links[leaf, COUNT]):
        if is_less(high_y, high_tie, pool[block, y, i], pool[block, y + 1, i]):
            high_y, high_tie = pool[block, y, i], pool[block, y + 1, i]
    node = leaf
    while node != NOBODY and (b[node, 1, y] != high_y or b[node, 1, y + 1] != high_tie):
        b[node, 1, y], b[node, 1, y + 1] = high_y, high_tie
        node = t.links[node, PARENT]
        if node != NOBODY:
            most, other = t.links[node, LEFT], t.links[node, RIGHT]
            if is_less(b[most, 1, y], b[most, 1, y + 1], b[other, 1, y], b[other, 1, y + 1]):
                most = other
            high_y, high_tie = b[most, 1, y], b[most, 1, y + 1]
