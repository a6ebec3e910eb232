"""The trees of a box top-k index: what is in their arrays, how nodes and blocks are given out, and the bounds of nodes.

There is a tree of entries and one of points. Both have *items*, which are rows of numbers: the set, the coordinates, a key
(y, tie), which is 0 for points, and what is carried along.

    entry   [set, x_1 .. x_d, y, tie | entry]         point   [set, lo_1, hi_1 .. lo_d, hi_d, 0, 0 | copies]

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
    """The arrays of a tree. Functions that may need longer arrays return a tree with those."""

    head: I64
    axes: I64
    """Columns in the order in which they are cut, again and again; y stands for tie where all y are the same."""
    links: I64
    """[nodes, LINK_FIELDS]. Items with a number up to VALUE in COLUMN are on the left, others on the right."""
    bounds: I64
    """[nodes, 2, columns up to tie] lowest and highest; of no items: the highest and the lowest integer."""
    pool: I64
    """[blocks, columns, BLOCK_MAX]"""
    stack: I64
    """Scratch: the nodes that a walk is still to look at. No walk outgrows it."""


def entry_tree(dims: int) -> Tree:
    """A tree for entries. Every other cut is by key, for it is searched by key, mostly, and in wide boxes."""
    y = 1 + dims
    return _empty_tree(y, y + 3, y + 2, [axis for x in range(1, y) for axis in (x, y)])


def point_tree(dims: int) -> Tree:
    """A tree for points; all keys are the same."""
    y = 1 + 2 * dims
    return _empty_tree(y, y + 3, y, list(range(1, y)))


def _empty_tree(y: int, width: int, identity: int, axes: list[int]) -> Tree:
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[ROOT] = head[NODE_FREE] = head[BLOCK_FREE] = head[WORN] = NOBODY
    head[Y], head[WIDTH], head[IDENTITY] = y, width, identity
    links, bounds = np.zeros((0, LINK_FIELDS), np.int64), np.zeros((0, 2, y + 2), np.int64)
    pool, stack = np.zeros((0, width, BLOCK_MAX), np.int64), np.empty(2 * HEIGHT_MAX, np.int64)
    return Tree(head, np.array(axes, np.int64), links, bounds, pool, stack)


class TreePointers(NamedTuple):
    """Pointers to the arrays of a tree (see tidings.kernels.intrinsics.pointer), rows laid end to end; and sizes of rows.

    The arrays must be kept alive: compiled code forgets those that are not named any more, unless they are arguments of
    the kernel that was called from Python.
    """

    head: Any
    axes: Any
    axis_count: Int
    links: Any
    bounds: Any
    pool: Any
    stack: Any
    y: Int
    """The column of y."""
    half: Int
    """Words of the lowest, or of the highest numbers of a node."""
    block_width: Int
    """Words of a block."""


@kernel
def tree_pointers(t: Tree) -> TreePointers:
    """Pointers to a tree as it is now."""
    y = t.head[Y]
    axes, links, bounds = pointer(t.axes), pointer(t.links), pointer(t.bounds)
    pool, stack = pointer(t.pool), pointer(t.stack)
    return TreePointers(
        pointer(t.head), axes, t.axes.shape[0], links, bounds, pool, stack, y, y + 2, t.head[WIDTH] * BLOCK_MAX
    )


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
    return Tree(t.head, t.axes, links, bounds, pool, t.stack)


@kernel
def slot_new(m: Any, width: Int, head: Any, top: Int) -> Int:
    """Number of a node (top = NODE_TOP) or of a block (BLOCK_TOP), of `width` words; the caller has made room."""
    slot = head[top + 1]
    if slot >= 0:
        head[top + 1] = m[slot * width]
    else:
        slot = head[top]
        head[top] += 1
    head[top + 2] += 1
    return slot


@kernel
def slot_free(m: Any, width: Int, head: Any, top: Int, slot: Int) -> None:
    """Gives back a node or a block; its first word is then the next free one."""
    m[slot * width] = head[top + 1]
    head[top + 1] = slot
    head[top + 2] -= 1


@kernel
def leaf_new(t: TreePointers, parent: Int, turn: Int) -> Int:
    """A leaf without items, and without bounds yet."""
    leaf = slot_new(t.links, LINK_FIELDS, t.head, NODE_TOP)
    at = leaf * LINK_FIELDS
    for field in range(LINK_FIELDS):
        t.links[at + field] = 0
    t.links[at + PARENT], t.links[at + LEFT], t.links[at + TURN] = parent, IS_LEAF, turn
    t.links[at + BLOCK] = slot_new(t.pool, t.block_width, t.head, BLOCK_TOP)
    return leaf


@kernel
def find(t: TreePointers, item: Any) -> tuple[Int, Int]:
    """Leaf where an item belongs, and its place in the block; NOBODY where there is none."""
    node = t.head[ROOT]
    if node < 0:
        return node, NOBODY
    at = node * LINK_FIELDS
    while t.links[at + LEFT] != IS_LEAF:
        is_left = item[t.links[at + COLUMN]] <= t.links[at + VALUE]
        node = t.links[at + (LEFT if is_left else RIGHT)]
        at = node * LINK_FIELDS
    block = t.links[at + BLOCK] * t.block_width
    identity = t.head[IDENTITY]
    for i in range(t.links[at + COUNT]):
        c = 0
        while c < identity and t.pool[block + c * BLOCK_MAX + i] == item[c]:
            c += 1
        if c == identity:
            return node, i
    return node, NOBODY


@kernel
def is_less(y: Int, tie: Int, other_y: Int, other_tie: Int) -> bool:
    """Whether a key comes before another."""
    return bool(y < other_y or (y == other_y and tie < other_tie))


@kernel
def include_keys(t: TreePointers, node: Int, low_y: Int, low_tie: Int, high_y: Int, high_tie: Int) -> None:
    """Makes a node's bounds include the keys from the low one to the high one."""
    low = 2 * node * t.half + t.y
    high = low + t.half
    if is_less(low_y, low_tie, t.bounds[low], t.bounds[low + 1]):
        t.bounds[low], t.bounds[low + 1] = low_y, low_tie
    if is_less(t.bounds[high], t.bounds[high + 1], high_y, high_tie):
        t.bounds[high], t.bounds[high + 1] = high_y, high_tie


@kernel
def bound_leaf(t: TreePointers, leaf: Int) -> None:
    """Finds the bounds of a leaf from its items."""
    low = 2 * leaf * t.half
    high = low + t.half
    block, n = t.links[leaf * LINK_FIELDS + BLOCK] * t.block_width, t.links[leaf * LINK_FIELDS + COUNT]
    for c in range(t.half):
        least, most = INT64_MAX, INT64_MIN
        for i in range(n if c < t.y else 0):
            number = t.pool[block + c * BLOCK_MAX + i]
            least, most = min(least, number), max(most, number)
        t.bounds[low + c], t.bounds[high + c] = least, most
    keys = block + t.y * BLOCK_MAX
    for i in range(n):
        y, tie = t.pool[keys + i], t.pool[keys + BLOCK_MAX + i]
        include_keys(t, leaf, y, tie, y, tie)


@kernel
def bound_node(t: TreePointers, node: Int) -> None:
    """Finds the bounds of an inner node from its children's."""
    left, right = t.links[node * LINK_FIELDS + LEFT], t.links[node * LINK_FIELDS + RIGHT]
    low, one, other = 2 * node * t.half, 2 * left * t.half, 2 * right * t.half
    for c in range(t.half):
        t.bounds[low + c], t.bounds[low + t.half + c] = t.bounds[one + c], t.bounds[one + t.half + c]
    for c in range(t.y):
        t.bounds[low + c] = min(t.bounds[low + c], t.bounds[other + c])
        t.bounds[low + t.half + c] = max(t.bounds[low + t.half + c], t.bounds[other + t.half + c])
    least, most = other + t.y, other + t.half + t.y
    include_keys(t, node, t.bounds[least], t.bounds[least + 1], t.bounds[most], t.bounds[most + 1])
