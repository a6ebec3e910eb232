"""Building a tree, or a part of one, from its items; and single items put into a tree and taken out.

Balanced cuts are found first, then nodes are made. Full leaves are cut in two, nodes with few items become leaves again. A
node whose parts have become too uneven since it was made is built again when the next item comes. That takes time in
proportion to its items, but not before half as many have come or gone; so it is cheap on average, also where items cannot
be cut evenly.
"""

from __future__ import annotations

import numpy as np

from tidings.families.topk.kernels.box_topk.layout import (
    BLOCK,
    BLOCK_MAX,
    COLUMN,
    COUNT,
    HEIGHT_MAX,
    I32,
    I64,
    IS_LEAF,
    LEFT,
    NOBODY,
    PARENT,
    RIGHT,
    ROOT,
    SET,
    STALE,
    TURN,
    VALUE,
    WIDTH,
    WORN,
    Int,
    Tree,
    Y,
    block_free,
    block_new,
    bound_leaf,
    bound_node,
    child_for,
    clear_bounds,
    extend,
    leaf_new,
    node_free,
    node_new,
    with_room,
)
from tidings.kernels.forest_plan import best_cut, divide
from tidings.kernels.jit import kernel

BLOCK_FILL = 3 * BLOCK_MAX // 4
"""Most items of a leaf when a tree is built: there is room for some to come."""

# A row of a plan is a node to be made: first item and end, column to cut or IS_LEAF, value, row of the parent, axis whose turn
# it is.
CUT_COLUMN, CUT_VALUE, PLAN_FIELDS = 2, 3, 6


@kernel
def read_leaf(t: Tree, leaf: Int, items: I64, at: Int) -> Int:
    """Writes the items of a leaf from place `at` on; returns their end."""
    block, n = t.links[leaf, BLOCK], t.links[leaf, COUNT]
    for i in range(n):
        for c in range(t.head[WIDTH]):
            items[at + i, c] = t.pool[block, c, i]
    return at + n


@kernel
def write_leaf(t: Tree, leaf: Int, items: I64, rows: I32, start: Int, end: Int) -> None:
    """Gives a leaf the items of rows[start:end]."""
    block = t.links[leaf, BLOCK]
    for i in range(end - start):
        for c in range(t.head[WIDTH]):
            t.pool[block, c, i] = items[rows[start + i], c]
    t.links[leaf, COUNT] = end - start
    bound_leaf(t, leaf)


@kernel
def read_below(t: Tree, node: Int) -> I64:
    """The items below a node."""
    items = np.empty((t.links[node, COUNT], t.head[WIDTH]), np.int64)
    stack = np.empty(2 * HEIGHT_MAX, np.int64)
    stack[0] = node
    depth, at = 1, 0
    while depth:
        depth -= 1
        node = stack[depth]
        if t.links[node, LEFT] == IS_LEAF:
            at = read_leaf(t, node, items, at)
        else:
            stack[depth], stack[depth + 1] = t.links[node, LEFT], t.links[node, RIGHT]
            depth += 2
    return items


@kernel
def cut_by(items: I64, rows: I32, start: Int, end: Int, column: Int, keys: I64, scratch: I64) -> tuple[Int, Int]:
    """Value that cuts a column of rows[start:end] best, and how many the smaller part has: 0 if all are the same."""
    first = items[rows[start], column]
    is_same = True
    for i in range(end - start):
        keys[i] = items[rows[start + i], column]
        is_same = is_same and keys[i] == first
    if is_same:
        return first, 0
    value, smaller = best_cut(keys, scratch, end - start)
    return value, smaller


@kernel
def choose_cut(
    t: Tree, items: I64, rows: I32, start: Int, end: Int, turn: Int, keys: I64, scratch: I64
) -> tuple[Int, Int, Int]:
    """Column and value to cut rows[start:end] at, and the axis whose turn is next.

    Sets come first; then the axes, where one that leaves less than a quarter on one side is taken only if no other does
    better. No two items are the same, so there always is a cut.
    """
    y, axes = t.head[Y], len(t.axes)
    value, smaller = cut_by(items, rows, start, end, SET, keys, scratch)
    if smaller:
        return np.int64(SET), value, turn
    best, best_column, best_value, best_turn = 0, y, value, turn
    for step in range(axes):
        column = t.axes[(turn + step) % axes]
        value, smaller = cut_by(items, rows, start, end, column, keys, scratch)
        if smaller == 0 and column == y:
            column += 1
            value, smaller = cut_by(items, rows, start, end, column, keys, scratch)
        if smaller > best:
            best, best_column, best_value, best_turn = smaller, column, value, (turn + step + 1) % axes
            if 4 * smaller >= end - start:
                break
    return best_column, best_value, best_turn


@kernel
def plan(t: Tree, items: I64, turn: Int) -> tuple[I32, I64]:
    """The order of items by leaves, and nodes [n, PLAN_FIELDS]: parents first, a left child directly behind its parent."""
    n = len(items)
    rows = np.arange(n).astype(np.int32)
    keys, scratch, held = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32)
    planned = np.empty((n // 8 + 16, PLAN_FIELDS), np.int64)
    stack = np.empty((2 * HEIGHT_MAX, 4), np.int64)
    stack[0] = (0, n, NOBODY, turn)
    depth, made = 1, 0
    while depth:
        depth -= 1
        start, end, parent, turn = stack[depth]
        if made == len(planned):
            planned = np.concatenate((planned, np.empty_like(planned)))
        planned[made] = (start, end, IS_LEAF, 0, parent, turn)
        if end - start > BLOCK_FILL:
            column, value, turn = choose_cut(t, items, rows, start, end, turn, keys, scratch)
            planned[made, CUT_COLUMN], planned[made, CUT_VALUE] = column, value
            middle = divide(items, rows, start, end, column, value, held)
            stack[depth] = (middle, end, made, turn)
            stack[depth + 1] = (start, middle, made, turn)
            depth += 2
        made += 1
    return rows, planned[:made]


@kernel
def free_below(t: Tree, node: Int) -> None:
    """Gives back all nodes below a node, and all blocks; the node itself is left without anything."""
    stack = np.empty(2 * HEIGHT_MAX, np.int64)
    stack[0] = node
    depth = 1
    while depth:
        depth -= 1
        at = stack[depth]
        if t.links[at, LEFT] == IS_LEAF:
            block_free(t, t.links[at, BLOCK])
        else:
            stack[depth], stack[depth + 1] = t.links[at, LEFT], t.links[at, RIGHT]
            depth += 2
        if at != node:
            node_free(t, at)


@kernel
def build_at(t: Tree, node: Int, items: I64) -> Tree:
    """Makes the nodes for items below a node that has none, and fill it in but for its parent."""
    rows, planned = plan(t, items, t.links[node, TURN])
    t = with_room(t, len(planned), len(planned))
    nodes = np.empty(len(planned), np.int64)
    for s in range(len(planned)):
        start, end, column, value, parent, turn = planned[s]
        above = nodes[parent] if s else t.links[node, PARENT]
        nodes[s] = node_new(t) if s else node
        t.links[nodes[s]] = (above, IS_LEAF, NOBODY, column, value, end - start, 0, turn)
        if s:
            t.links[above, LEFT if s == parent + 1 else RIGHT] = nodes[s]
        if column == IS_LEAF:
            t.links[nodes[s], BLOCK] = block_new(t)
            write_leaf(t, nodes[s], items, rows, start, end)
    for s in range(len(planned) - 1, -1, -1):
        if planned[s, CUT_COLUMN] != IS_LEAF:
            bound_node(t, nodes[s])
    return t


@kernel
def renew(t: Tree) -> Tree:
    """Builds again below the worn node, if there is one."""
    node = t.head[WORN]
    if node == NOBODY:
        return t
    t.head[WORN] = NOBODY
    items = read_below(t, node)
    free_below(t, node)
    renewed: Tree = build_at(t, node, items)
    return renewed


@kernel
def rebuilt(t: Tree, items: I64) -> Tree:
    """The tree with these items instead of those it has, which must be some."""
    free_below(t, t.head[ROOT])
    other: Tree = build_at(t, t.head[ROOT], items)
    return other


@kernel
def is_worn(t: Tree, node: Int) -> bool:
    """Whether an inner node should be built again."""
    n = t.links[node, COUNT]
    most = max(t.links[t.links[node, LEFT], COUNT], t.links[t.links[node, RIGHT], COUNT])
    return bool(n > 4 * BLOCK_MAX and 4 * most > 3 * n and 2 * t.links[node, STALE] > n)


@kernel
def cut_leaf(t: Tree, leaf: Int) -> None:
    """Makes two leaves below a leaf and divide its items among them."""
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
    """Makes a node a leaf with the items of its children, which are leaves."""
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
    """Takes out the item at a place of a leaf."""
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
