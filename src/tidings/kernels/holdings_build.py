"""Building a tree, or a part of one, from its items: balanced cuts are found first, then nodes are made."""

from __future__ import annotations

import numpy as np

from tidings.kernels.holdings_arrays import (
    BLOCK,
    BLOCK_MAX,
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
    TURN,
    WIDTH,
    WORN,
    Int,
    Tree,
    Y,
    block_free,
    block_new,
    node_free,
    node_new,
    with_room,
)
from tidings.kernels.holdings_bounds import bound_leaf, bound_node
from tidings.kernels.jit import kernel
from tidings.kernels.point_index.build import best_cut, divide

BLOCK_FILL = 3 * BLOCK_MAX // 4
"""Most items of a leaf when a tree is built: there is room for some to come."""

# Fields of a step of a plan: first item and end, column to cut or IS_LEAF, value, step of the parent, axis whose turn it is.
START, END, CUT_COLUMN, CUT_VALUE, PARENT_STEP, STEP_TURN, STEP_FIELDS = range(7)


@kernel
def read_leaf(t: Tree, leaf: Int, items: I64, at: Int) -> Int:
    """Write the items of a leaf from place `at` on; returns their end."""
    block, n = t.links[leaf, BLOCK], t.links[leaf, COUNT]
    for i in range(n):
        for c in range(t.head[WIDTH]):
            items[at + i, c] = t.pool[block, c, i]
    return at + n


@kernel
def write_leaf(t: Tree, leaf: Int, items: I64, rows: I32, start: Int, end: Int) -> None:
    """Give a leaf the items of rows[start:end]."""
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
    """The order of items by leaves, and nodes [n, STEP_FIELDS]: parents first, a left child directly behind its parent."""
    n = len(items)
    rows = np.arange(n).astype(np.int32)
    keys, scratch, held = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32)
    steps = np.empty((n // 8 + 16, STEP_FIELDS), np.int64)
    stack = np.empty((2 * HEIGHT_MAX, 4), np.int64)
    stack[0] = (0, n, NOBODY, turn)
    depth, made = 1, 0
    while depth:
        depth -= 1
        start, end, parent, turn = stack[depth]
        if made == len(steps):
            steps = np.concatenate((steps, np.empty_like(steps)))
        steps[made] = (start, end, IS_LEAF, 0, parent, turn)
        if end - start > BLOCK_FILL:
            column, value, turn = choose_cut(t, items, rows, start, end, turn, keys, scratch)
            steps[made, CUT_COLUMN], steps[made, CUT_VALUE] = column, value
            middle = divide(items, rows, start, end, column, value, held)
            stack[depth] = (middle, end, made, turn)
            stack[depth + 1] = (start, middle, made, turn)
            depth += 2
        made += 1
    return rows, steps[:made]


@kernel
def free_below(t: Tree, node: Int) -> None:
    """Give back all nodes below a node, and all blocks; the node itself is left without anything."""
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
    """Make the nodes for items below a node that has none, and fill it in but for its parent."""
    rows, steps = plan(t, items, t.links[node, TURN])
    t = with_room(t, len(steps), len(steps))
    nodes = np.empty(len(steps), np.int64)
    for s in range(len(steps)):
        start, end, column, value, parent, turn = steps[s]
        above = nodes[parent] if s else t.links[node, PARENT]
        nodes[s] = node_new(t) if s else node
        t.links[nodes[s]] = (above, IS_LEAF, NOBODY, column, value, end - start, 0, turn)
        if s:
            t.links[above, LEFT if s == parent + 1 else RIGHT] = nodes[s]
        if column == IS_LEAF:
            t.links[nodes[s], BLOCK] = block_new(t)
            write_leaf(t, nodes[s], items, rows, start, end)
    for s in range(len(steps) - 1, -1, -1):
        if steps[s, CUT_COLUMN] != IS_LEAF:
            bound_node(t, nodes[s])
    return t


@kernel
def renew(t: Tree) -> Tree:
    """Build again below the worn node, if there is one."""
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
