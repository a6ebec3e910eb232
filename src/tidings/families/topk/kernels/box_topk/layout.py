"""The trees of a box top-k index: what is in their arrays, how nodes and blocks are given out, and the bounds of nodes.

There is a tree of entries and one of points. Both have *items*, which are rows of numbers: the set, the coordinates, a key
(y, tie), and what is carried along. A point's key is the greatest that it holds, or the greatest of all if it has room.

    entry   [set, x_1 .. x_d, y, tie | entry]         point   [set, lo_1, hi_1 .. lo_d, hi_d, y, tie | held, copies]

The trees are kd-trees with the items in the leaves, each leaf with a block of its own:

    block, BLOCK_MAX = 4:   [set set set set | x x x x | .. | y y y y | tie tie tie tie | entry entry entry entry]

All sets share a tree: items of different sets are cut apart before anything else is. Every node knows the bounds of all
items below it, by column; those of the key are the lowest and the greatest key, compared by y and then by tie.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

INT64_MIN = np.iinfo(np.int64).min
INT64_MAX = np.iinfo(np.int64).max

BLOCK_MAX = 32
"""Most items in a leaf."""
HEIGHT_MAX = 512
"""A tree that has become higher is built again; one just built is not nearly as high (see `build.plan`)."""

SET = 0
"""The first column of all items; coordinates begin behind it."""

# Fields of a row of `links`. A leaf has LEFT == IS_LEAF and gives RIGHT another meaning. COUNT is the number of items below,
# STALE that of those put in or taken out since the node was made, TURN the axis whose turn it is to be cut.
PARENT, LEFT, RIGHT, COLUMN, VALUE, COUNT, STALE, TURN, LINK_FIELDS = range(9)
BLOCK = RIGHT
IS_LEAF = NOBODY = -1

# Fields of `head`: the root; first unused node, first of the free ones and how many are used, and the same for blocks; number
# of the column of y; number of columns; number of columns by which items differ; node to be built again, or NOBODY.
ROOT, NODE_TOP, NODE_FREE, NODES, BLOCK_TOP, BLOCK_FREE, BLOCKS, Y, WIDTH, IDENTITY, WORN, HEAD_FIELDS = range(12)


class Tree(NamedTuple):
    """All of a tree. Functions that may need longer arrays return a tree with those."""

    head: I64
    axes: I64
    """Columns in the order in which they are cut, again and again; y stands for tie where all y are the same."""
    links: I64
    """[nodes, LINK_FIELDS]. Items with a number up to VALUE in COLUMN are on the left, others on the right."""
    bounds: I64
    """[nodes, 2, columns up to tie] lowest and highest; of no items: the highest and the lowest integer."""
    pool: I64
    """[blocks, columns, BLOCK_MAX]"""


def entry_tree(dims: int) -> Tree:
    """A tree for entries. Every other cut is by key, for it is searched by key, mostly, and in wide boxes."""
    y = 1 + dims
    return _empty_tree(y, y + 3, y + 2, [axis for x in range(1, y) for axis in (x, y)])


def point_tree(dims: int) -> Tree:
    """A tree for points; their keys change too often to be cut by."""
    y = 1 + 2 * dims
    return _empty_tree(y, y + 4, y, list(range(1, y)))


def _empty_tree(y: int, width: int, identity: int, axes: list[int]) -> Tree:
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[ROOT] = head[NODE_FREE] = head[BLOCK_FREE] = head[WORN] = NOBODY
    head[Y], head[WIDTH], head[IDENTITY] = y, width, identity
    links, bounds = np.zeros((0, LINK_FIELDS), np.int64), np.zeros((0, 2, y + 2), np.int64)
    return Tree(head, np.array(axes, np.int64), links, bounds, np.zeros((0, width, BLOCK_MAX), np.int64))


class Walk(NamedTuple):
    """What walks down a tree look at, as pointers (see tidings.kernels.intrinsics.pointer); rows are laid end to end.

    The arrays must be kept alive: compiled code forgets those that are not named any more, unless they are arguments of
    the kernel that was called from Python.
    """

    root: Int
    y: Int
    bounds_width: Int
    block_width: Int
    links: Any
    bounds: Any
    pool: Any
    stack: Any
    """Scratch: the nodes still to be looked at."""


def new_stack() -> I64:
    """A stack that no walk outgrows."""
    return np.empty(2 * HEIGHT_MAX, np.int64)


@kernel
def walk_in(t: Tree, stack: I64) -> Walk:
    """A walk in a tree as it is now."""
    y = t.head[Y]
    links, bounds, pool = pointer(t.links), pointer(t.bounds), pointer(t.pool)
    return Walk(t.head[ROOT], y, 2 * (y + 2), t.head[WIDTH] * BLOCK_MAX, links, bounds, pool, pointer(stack))


@kernel
def is_less(y: Int, tie: Int, other_y: Int, other_tie: Int) -> bool:
    """Whether a key comes before another."""
    return bool(y < other_y or (y == other_y and tie < other_tie))


@kernel
def with_room(t: Tree, nodes: Int, blocks: Int) -> Tree:
    """The tree with room for so many more nodes and blocks."""
    top, end = max(t.head[NODE_TOP], t.head[NODES] + nodes), max(t.head[BLOCK_TOP], t.head[BLOCKS] + blocks)
    if top <= t.links.shape[0] and end <= t.pool.shape[0]:
        return t
    top, end = max(top, t.links.shape[0] * 3 // 2), max(end, t.pool.shape[0] * 3 // 2)
    links = np.empty((top, LINK_FIELDS), np.int64)
    bounds = np.empty((top, 2, t.bounds.shape[2]), np.int64)
    pool = np.empty((end, t.head[WIDTH], BLOCK_MAX), np.int64)
    links[: t.head[NODE_TOP]] = t.links[: t.head[NODE_TOP]]
    bounds[: t.head[NODE_TOP]] = t.bounds[: t.head[NODE_TOP]]
    pool[: t.head[BLOCK_TOP]] = t.pool[: t.head[BLOCK_TOP]]
    return Tree(t.head, t.axes, links, bounds, pool)


@kernel
def node_new(t: Tree) -> Int:
    """A node; the caller has made room."""
    node = t.head[NODE_FREE]
    if node >= 0:
        t.head[NODE_FREE] = t.links[node, PARENT]
    else:
        node = t.head[NODE_TOP]
        t.head[NODE_TOP] += 1
    t.head[NODES] += 1
    return node


@kernel
def node_free(t: Tree, node: Int) -> None:
    t.links[node, PARENT] = t.head[NODE_FREE]
    t.head[NODE_FREE] = node
    t.head[NODES] -= 1


@kernel
def block_new(t: Tree) -> Int:
    """A block; the caller has made room."""
    block = t.head[BLOCK_FREE]
    if block >= 0:
        t.head[BLOCK_FREE] = t.pool[block, 0, 0]
    else:
        block = t.head[BLOCK_TOP]
        t.head[BLOCK_TOP] += 1
    t.head[BLOCKS] += 1
    return block


@kernel
def block_free(t: Tree, block: Int) -> None:
    t.pool[block, 0, 0] = t.head[BLOCK_FREE]
    t.head[BLOCK_FREE] = block
    t.head[BLOCKS] -= 1


@kernel
def leaf_new(t: Tree, parent: Int, turn: Int) -> Int:
    """A leaf without items, and without bounds yet."""
    leaf = node_new(t)
    t.links[leaf] = 0
    t.links[leaf, PARENT], t.links[leaf, LEFT], t.links[leaf, TURN] = parent, IS_LEAF, turn
    t.links[leaf, BLOCK] = block_new(t)
    return leaf


@kernel
def child_for(t: Tree, node: Int, item: I64) -> Int:
    """The child of a node that an item belongs below."""
    is_left = item[t.links[node, COLUMN]] <= t.links[node, VALUE]
    return t.links[node, LEFT] if is_left else t.links[node, RIGHT]


@kernel
def find(t: Tree, item: I64) -> tuple[Int, Int]:
    """Leaf where an item belongs, and its place in the block; NOBODY where there is none."""
    node = t.head[ROOT]
    if node < 0:
        return node, NOBODY
    while t.links[node, LEFT] != IS_LEAF:
        node = child_for(t, node, item)
    block = t.links[node, BLOCK]
    for i in range(t.links[node, COUNT]):
        c = 0
        while c < t.head[IDENTITY] and t.pool[block, c, i] == item[c]:
            c += 1
        if c == t.head[IDENTITY]:
            return node, i
    return node, NOBODY


@kernel
def clear_bounds(t: Tree, node: Int) -> None:
    """Lets a node have the bounds of no items."""
    for c in range(t.head[Y] + 2):
        t.bounds[node, 0, c], t.bounds[node, 1, c] = INT64_MAX, INT64_MIN


@kernel
def extend_keys(t: Tree, node: Int, low_y: Int, low_tie: Int, high_y: Int, high_tie: Int) -> None:
    """Makes a node's bounds include the keys from the low one to the high one."""
    y, b = t.head[Y], t.bounds
    if is_less(low_y, low_tie, b[node, 0, y], b[node, 0, y + 1]):
        b[node, 0, y], b[node, 0, y + 1] = low_y, low_tie
    if is_less(b[node, 1, y], b[node, 1, y + 1], high_y, high_tie):
        b[node, 1, y], b[node, 1, y + 1] = high_y, high_tie


@kernel
def extend(t: Tree, node: Int, item: I64) -> None:
    """Makes a node's bounds include an item."""
    y, b = t.head[Y], t.bounds
    for c in range(y):
        b[node, 0, c], b[node, 1, c] = min(b[node, 0, c], item[c]), max(b[node, 1, c], item[c])
    extend_keys(t, node, item[y], item[y + 1], item[y], item[y + 1])


@kernel
def bound_leaf(t: Tree, leaf: Int) -> None:
    """Finds the bounds of a leaf from its items."""
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
    """Finds the bounds of an inner node from its children's."""
    y, b = t.head[Y], t.bounds
    left, right = t.links[node, LEFT], t.links[node, RIGHT]
    b[node] = b[left]
    for c in range(y):
        b[node, 0, c], b[node, 1, c] = min(b[node, 0, c], b[right, 0, c]), max(b[node, 1, c], b[right, 1, c])
    extend_keys(t, node, b[right, 0, y], b[right, 0, y + 1], b[right, 1, y], b[right, 1, y + 1])


@kernel
def bound_greatest(t: Tree, leaf: Int) -> None:
    """Finds the greatest key of a leaf some of whose keys have changed, and of the nodes above."""
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
