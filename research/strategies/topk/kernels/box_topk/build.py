"""Building a tree, or a part of one, from its items; and single items put into a tree and taken out.

Balanced cuts are found first, then nodes are made. Full leaves are cut in two, nodes with few items become leaves again. A
node whose parts have become too uneven since it was made is built again when the next item comes. That takes time in
proportion to its items, but not before half as many have come or gone; so it is cheap on average, also where items cannot
be cut evenly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from research.strategies.topk.kernels.box_topk.layout import (
    BLOCK,
    BLOCK_MAX,
    BLOCK_TOP,
    COLUMN,
    COUNT,
    HEIGHT_MAX,
    I32,
    I64,
    IS_LEAF,
    LEFT,
    LINK_FIELDS,
    NOBODY,
    NODE_TOP,
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
    TreePointers,
    bound_leaf,
    bound_node,
    include_keys,
    leaf_new,
    slot_free,
    slot_new,
    tree_pointers,
    with_room,
)
from tidings.kernels.jit import kernel
from tidings.kernels.point_index.point_build import best_cut, divide

BLOCK_FILL = 3 * BLOCK_MAX // 4
"""Most items of a leaf when a tree is built: there is room for some to come."""

# A row of a plan is a node to be made: first item and end, column to cut or IS_LEAF, value, row of the parent, axis whose turn
# it is.
CUT_COLUMN, CUT_VALUE, PLAN_FIELDS = 2, 3, 6


@kernel
def read_leaf(t: TreePointers, leaf: Int, items: I64, at: Int) -> Int:
    """Writes the items of a leaf from place `at` on; returns their end."""
    block, n = t.links[leaf * LINK_FIELDS + BLOCK] * t.block_width, t.links[leaf * LINK_FIELDS + COUNT]
    for i in range(n):
        for c in range(items.shape[1]):
            items[at + i, c] = t.pool[block + c * BLOCK_MAX + i]
    return at + n


@kernel
def write_leaf(t: TreePointers, leaf: Int, items: I64, rows: I32, start: Int, end: Int) -> None:
    """Gives a leaf the items of rows[start:end]."""
    block = t.links[leaf * LINK_FIELDS + BLOCK] * t.block_width
    for i in range(end - start):
        for c in range(items.shape[1]):
            t.pool[block + c * BLOCK_MAX + i] = items[rows[start + i], c]
    t.links[leaf * LINK_FIELDS + COUNT] = end - start
    bound_leaf(t, leaf)


@kernel
def read_below(t: TreePointers, node: Int, frees: bool) -> I64:
    """The items below a node. If it `frees`, all nodes below it and all blocks are given back; the node itself stays."""
    items = np.empty((t.links[node * LINK_FIELDS + COUNT], t.head[WIDTH]), np.int64)
    t.stack[0] = node
    depth, n = 1, 0
    while depth:
        depth -= 1
        other = t.stack[depth]
        at = other * LINK_FIELDS
        if t.links[at + LEFT] == IS_LEAF:
            n = read_leaf(t, other, items, n)
            if frees:
                slot_free(t.pool, t.block_width, t.head, BLOCK_TOP, t.links[at + BLOCK])
        else:
            t.stack[depth], t.stack[depth + 1] = t.links[at + LEFT], t.links[at + RIGHT]
            depth += 2
        if frees and other != node:
            slot_free(t.links, LINK_FIELDS, t.head, NODE_TOP, other)
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
    t: TreePointers, items: I64, rows: I32, start: Int, end: Int, turn: Int, keys: I64, scratch: I64
) -> tuple[Int, Int, Int]:
    """Column and value to cut rows[start:end] at, and the axis whose turn is next.

    Sets come first; then the axes, where one that leaves less than a quarter on one side is taken only if no other does
    better. No two items are the same, so there always is a cut.
    """
    # Turn -1 is that of sets, and then an axis whose y are all the same has a second turn, by tie.
    best, best_column, best_value, best_turn = 0, t.y, np.int64(0), turn
    step, column = -1, np.int64(SET)
    while True:
        value, smaller = cut_by(items, rows, start, end, column, keys, scratch)
        if step < 0 and smaller:
            return column, value, turn
        if smaller == 0 and column == t.y:
            column += 1
            continue
        if smaller > best:
            best, best_column, best_value, best_turn = smaller, column, value, (turn + step + 1) % t.axis_count
            if 4 * smaller >= end - start:
                break
        step += 1
        if step == t.axis_count:
            break
        column = t.axes[(turn + step) % t.axis_count]
    return best_column, best_value, best_turn


@kernel
def plan(t: TreePointers, items: I64, turn: Int) -> tuple[I32, I64]:
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
def rebuilt(t: Tree, node: Int, items: I64) -> Tree:
    """The tree with these items below a node that has none; all of the node is written but its parent."""
    rows, planned = plan(tree_pointers(t), items, t.links[node, TURN])
    t = with_room(t, len(planned), len(planned))
    p = tree_pointers(t)
    nodes = np.empty(len(planned), np.int64)
    for s in range(len(planned)):
        start, end, column, value, parent, turn = planned[s]
        above = nodes[parent] if s else t.links[node, PARENT]
        nodes[s] = slot_new(p.links, LINK_FIELDS, p.head, NODE_TOP) if s else node
        t.links[nodes[s]] = (above, IS_LEAF, NOBODY, column, value, end - start, 0, turn)
        if s:
            t.links[above, LEFT if s == parent + 1 else RIGHT] = nodes[s]
        if column == IS_LEAF:
            t.links[nodes[s], BLOCK] = slot_new(p.pool, p.block_width, p.head, BLOCK_TOP)
            write_leaf(p, nodes[s], items, rows, start, end)
    for s in range(len(planned) - 1, -1, -1):
        if planned[s, CUT_COLUMN] != IS_LEAF:
            bound_node(p, nodes[s])
    return t


@kernel
def cut_leaf(t: TreePointers, leaf: Int) -> None:
    """Makes two leaves below a leaf and divides its items among them."""
    at = leaf * LINK_FIELDS
    n = t.links[at + COUNT]
    items = np.empty((n, t.head[WIDTH]), np.int64)
    read_leaf(t, leaf, items, 0)
    rows = np.arange(n).astype(np.int32)
    keys, scratch = np.empty(n, np.int64), np.empty(n, np.int64)
    column, value, turn = choose_cut(t, items, rows, 0, n, t.links[at + TURN], keys, scratch)
    middle = divide(items, rows, 0, n, column, value, np.empty(n, np.int32))
    slot_free(t.pool, t.block_width, t.head, BLOCK_TOP, t.links[at + BLOCK])
    left, right = leaf_new(t, leaf, turn), leaf_new(t, leaf, turn)
    write_leaf(t, left, items, rows, 0, middle)
    write_leaf(t, right, items, rows, middle, n)
    t.links[at + LEFT], t.links[at + RIGHT] = left, right
    t.links[at + COLUMN], t.links[at + VALUE], t.links[at + STALE] = column, value, 0


@kernel
def is_worn(t: TreePointers, node: Int) -> bool:
    """Whether an inner node should be built again."""
    at = node * LINK_FIELDS
    n, left, right = t.links[at + COUNT], t.links[at + LEFT], t.links[at + RIGHT]
    most = max(t.links[left * LINK_FIELDS + COUNT], t.links[right * LINK_FIELDS + COUNT])
    return bool(n > 4 * BLOCK_MAX and 4 * most > 3 * n and 2 * t.links[at + STALE] > n)


@kernel
def insert(t: TreePointers, item: Any) -> None:
    """Writes one more item to the leaf it belongs to; there is room for three nodes and blocks."""
    if t.head[ROOT] == NOBODY:
        t.head[ROOT] = leaf_new(t, NOBODY, 0)
        bound_leaf(t, t.head[ROOT])
    node = t.head[ROOT]
    height = 0
    while True:
        at, low = node * LINK_FIELDS, 2 * node * t.half
        for c in range(t.y):
            t.bounds[low + c] = min(t.bounds[low + c], item[c])
            t.bounds[low + t.half + c] = max(t.bounds[low + t.half + c], item[c])
        include_keys(t, node, item[t.y], item[t.y + 1], item[t.y], item[t.y + 1])
        if t.links[at + LEFT] == IS_LEAF:
            if t.links[at + COUNT] < BLOCK_MAX:
                break
            cut_leaf(t, node)
        t.links[at + COUNT] += 1
        t.links[at + STALE] += 1
        if t.head[WORN] == NOBODY and is_worn(t, node):
            t.head[WORN] = node
        node = t.links[at + (LEFT if item[t.links[at + COLUMN]] <= t.links[at + VALUE] else RIGHT)]
        height += 1
    block, n = t.links[at + BLOCK] * t.block_width, t.links[at + COUNT]
    for c in range(t.head[WIDTH]):
        t.pool[block + c * BLOCK_MAX + n] = item[c]
    t.links[at + COUNT] = n + 1
    if height >= HEIGHT_MAX:
        t.head[WORN] = t.head[ROOT]


@kernel
def put(t: Tree, item: Any) -> Tree:
    """The tree with one more item, which must differ from all others; a worn node is built again."""
    t = with_room(t, 3, 3)
    p = tree_pointers(t)
    insert(p, item)
    node = t.head[WORN]
    if node != NOBODY:
        t.head[WORN] = NOBODY
        t = rebuilt(t, node, read_below(p, node, True))
    return t


@kernel
def take(t: TreePointers, leaf: Int, place: Int) -> None:
    """Takes out the item at a place of a leaf; a node with few items left becomes a leaf."""
    at = leaf * LINK_FIELDS
    block, last, width = t.links[at + BLOCK] * t.block_width, t.links[at + COUNT] - 1, t.head[WIDTH]
    for c in range(width):
        t.pool[block + c * BLOCK_MAX + place] = t.pool[block + c * BLOCK_MAX + last]
    t.links[at + COUNT] = last
    bound_leaf(t, leaf)
    node = t.links[at + PARENT]
    while node != NOBODY:
        at = node * LINK_FIELDS
        t.links[at + COUNT] -= 1
        t.links[at + STALE] += 1
        bound_node(t, node)
        if 2 * t.links[at + COUNT] <= BLOCK_MAX:
            # Its children have no more items, so they have become leaves before.
            left, right = t.links[at + LEFT], t.links[at + RIGHT]
            block, other = t.links[left * LINK_FIELDS + BLOCK], t.links[right * LINK_FIELDS + BLOCK]
            n = t.links[left * LINK_FIELDS + COUNT]
            for i in range(t.links[right * LINK_FIELDS + COUNT]):
                for c in range(width):
                    moved = t.pool[other * t.block_width + c * BLOCK_MAX + i]
                    t.pool[block * t.block_width + c * BLOCK_MAX + n + i] = moved
            t.links[at + LEFT], t.links[at + BLOCK] = IS_LEAF, block
            slot_free(t.pool, t.block_width, t.head, BLOCK_TOP, other)
            slot_free(t.links, LINK_FIELDS, t.head, NODE_TOP, left)
            slot_free(t.links, LINK_FIELDS, t.head, NODE_TOP, right)
        node = t.links[at + PARENT]
