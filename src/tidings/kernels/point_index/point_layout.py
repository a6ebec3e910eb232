"""Where a point index lies in memory, and the allocator of nodes and of blocks of points.

A leaf keeps its points in one *block* of the pool:

    block at `offset`, `capacity` 4, D = 2:   pool      [x0 x1 x2 x3 | y0 y1 y2 y3]   from offset * D
                                              pool_slot [s0 s1 s2 s3]                 from offset

Blocks come in size classes of about 1.5 times each other. A freed block is chained through `pool_slot`; a block too
large for a request is cut, and its rest is freed again. Freed nodes are chained through their PARENT field.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.arrays import I32, I64, INT64_MAX, INT64_MIN, Int
from tidings.kernels.jit import kernel

LEAF_MAX = 64
"""Most points in a leaf, unless all its points are the same."""
CHUNK = 32
"""Points tested together by a query; the pool is padded by as many, so that a test may run past the end of a block."""

# Fields of a row of `nodes`. A leaf has LEFT == IS_LEAF and gives RIGHT and DIM another meaning.
PARENT, LEFT, RIGHT, DIM, COUNT, NODE_FIELDS = 0, 1, 2, 3, 4, 5
OFFSET, CAPACITY = RIGHT, DIM
IS_LEAF, IS_FREE = -1, -2

# Fields of a row of `channels`.
ROOT, REMOVED = 0, 1

# Fields of `head`; the last is the first of the free lists, one a size class.
NODE_TOP, NODE_FREE, POOL_TOP, POOL_FREE, POINTS, PROGRESS, TARGET, ROOM, FREE_LISTS = 0, 1, 2, 3, 4, 5, 6, 7, 8

# What an update kernel reports. Where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, NEEDS_REBUILD, BAD_SLOT = 0, 1, 2, 3

CLASS_SIZES = np.array([1, 2, 4, 6] + [base << k for k in range(27) for base in (8, 12)], np.int64)
CLASSES = len(CLASS_SIZES)
HEAD_FIELDS = FREE_LISTS + CLASSES

SPARE_NODES = 4
"""Nodes that must be left before an insertion starts."""
SPARE_POINTS = 4 * LEAF_MAX
"""Pool entries that must be left before an insertion or a removal starts."""


class Arrays(NamedTuple):
    """All state of an index over D dimensions; every kernel that changes it gets exactly these, in this order."""

    head: I64
    """[HEAD_FIELDS] tops, totals, free lists and the answer of the last update kernel."""
    channels: I32
    """[channels, 2] root node (-1: no points) and points removed since the channel was last built."""
    nodes: I32
    """[nodes, NODE_FIELDS] tree links; a root's PARENT is -1 - channel."""
    split: I64
    """[nodes] of an inner node: points with coordinate DIM <= split are on the left, the others on the right."""
    bounds: I64
    """[nodes, 2, D] lowest and highest coordinates below the node; loose after removals, never too small."""
    pool: I64
    """[capacity * D + CHUNK] coordinates, block by block."""
    pool_slot: I32
    """[capacity] slots, block by block."""
    slot_map: I32
    """[slots, 2] leaf (-1: not held) and position in the leaf's block."""


@kernel
def class_of(points: Int) -> Int:
    """The smallest size class that holds so many points."""
    k = 0
    while CLASS_SIZES[k] < points:
        k += 1
    return k


@kernel
def block_free(f: Arrays, offset: Int, size: Int) -> None:
    """Give back a run of the pool of any size, as one or more blocks."""
    f.head[POOL_FREE] += size
    while size > 0:
        k = class_of(size)
        if CLASS_SIZES[k] > size:
            k -= 1
        f.pool_slot[offset] = f.head[FREE_LISTS + k]
        f.head[FREE_LISTS + k] = offset
        offset += CLASS_SIZES[k]
        size -= CLASS_SIZES[k]


@kernel
def block_new(f: Arrays, k: Int) -> Int:
    """Offset of a block of size class `k`, or -1 if the pool must grow first."""
    size = CLASS_SIZES[k]
    for larger in range(k, CLASSES):
        offset = f.head[FREE_LISTS + larger]
        if offset >= 0:
            f.head[FREE_LISTS + larger] = f.pool_slot[offset]
            f.head[POOL_FREE] -= CLASS_SIZES[larger]
            block_free(f, offset + size, CLASS_SIZES[larger] - size)
            return offset
    offset = f.head[POOL_TOP]
    if offset + size > f.pool_slot.shape[0]:
        return -1
    f.head[POOL_TOP] = offset + size
    return offset


@kernel
def node_free(f: Arrays, node: Int) -> None:
    """Give back a node, and its block if it is a leaf."""
    if f.nodes[node, LEFT] == IS_LEAF:
        block_free(f, f.nodes[node, OFFSET], f.nodes[node, CAPACITY])
    f.nodes[node, LEFT] = IS_FREE
    f.nodes[node, PARENT] = f.head[NODE_FREE]
    f.head[NODE_FREE] = node


@kernel
def clear_bounds(f: Arrays, node: Int) -> None:
    """Invert a node's bounds, as those of no points."""
    for d in range(f.bounds.shape[2]):
        f.bounds[node, 0, d] = INT64_MAX
        f.bounds[node, 1, d] = INT64_MIN


@kernel
def node_new(f: Arrays) -> Int:
    """A node with no points and inverted bounds, or -1 if there must be room made first."""
    node = f.head[NODE_FREE]
    if node >= 0:
        f.head[NODE_FREE] = f.nodes[node, PARENT]
    else:
        node = f.head[NODE_TOP]
        if node >= f.nodes.shape[0]:
            return -1
        f.head[NODE_TOP] = node + 1
    f.nodes[node, LEFT] = 0
    f.nodes[node, COUNT] = 0
    clear_bounds(f, node)
    return node


@kernel
def leaf_new(f: Arrays, k: Int) -> Int:
    """An empty leaf with a block of size class `k`, or -1 if there must be room made first."""
    offset = block_new(f, k)
    if offset < 0:
        return -1
    node = node_new(f)
    if node < 0:
        block_free(f, offset, CLASS_SIZES[k])
        return -1
    f.nodes[node, LEFT] = IS_LEAF
    f.nodes[node, OFFSET] = offset
    f.nodes[node, CAPACITY] = CLASS_SIZES[k]
    return node


@kernel
def leaf_put(f: Arrays, leaf: Int, slot: Int, point: I64) -> None:
    """Append a point to a leaf with room for it; counts and bounds are the caller's business."""
    at = f.nodes[leaf, COUNT]
    capacity = f.nodes[leaf, CAPACITY]
    base = f.nodes[leaf, OFFSET] * np.int64(point.shape[0]) + at
    for d in range(point.shape[0]):
        f.pool[base + d * capacity] = point[d]
    f.pool_slot[f.nodes[leaf, OFFSET] + at] = slot
    f.slot_map[slot, 0] = leaf
    f.slot_map[slot, 1] = at


@kernel
def leaf_take(f: Arrays, leaf: Int, at: Int, point: I64) -> Int:
    """Copy the coordinates of a leaf's point into `point`; returns its slot."""
    base = f.nodes[leaf, OFFSET] * np.int64(point.shape[0]) + at
    for d in range(point.shape[0]):
        point[d] = f.pool[base + d * f.nodes[leaf, CAPACITY]]
    return f.pool_slot[f.nodes[leaf, OFFSET] + at]


@kernel
def leaf_move(f: Arrays, leaf: Int, k: Int) -> bool:
    """Move a leaf's points into a block of size class `k`; False, and nothing done, if the pool must grow first."""
    offset = block_new(f, k)
    if offset < 0:
        return False
    old = f.nodes[leaf, OFFSET]
    old_capacity = f.nodes[leaf, CAPACITY]
    dims = f.bounds.shape[2]
    for d in range(dims):
        source = np.int64(old) * dims + d * old_capacity
        target = offset * dims + d * CLASS_SIZES[k]
        for i in range(f.nodes[leaf, COUNT]):
            f.pool[target + i] = f.pool[source + i]
    for i in range(f.nodes[leaf, COUNT]):
        f.pool_slot[offset + i] = f.pool_slot[old + i]
    f.nodes[leaf, OFFSET] = offset
    f.nodes[leaf, CAPACITY] = CLASS_SIZES[k]
    block_free(f, old, old_capacity)
    return True


@kernel
def bounds_add(f: Arrays, node: Int, point: I64) -> bool:
    """Make a node's bounds contain a point; True if they did not before."""
    grew = False
    for d in range(point.shape[0]):
        if point[d] < f.bounds[node, 0, d]:
            f.bounds[node, 0, d] = point[d]
            grew = True
        if point[d] > f.bounds[node, 1, d]:
            f.bounds[node, 1, d] = point[d]
            grew = True
    return grew


@kernel
def bounds_join(f: Arrays, node: Int, child: Int) -> None:
    """Make a node's bounds contain those of a child."""
    for d in range(f.bounds.shape[2]):
        f.bounds[node, 0, d] = min(f.bounds[node, 0, d], f.bounds[child, 0, d])
        f.bounds[node, 1, d] = max(f.bounds[node, 1, d], f.bounds[child, 1, d])


@kernel
def bounds_tighten(f: Arrays, leaf: Int, point: I64) -> None:
    """Recompute a leaf's bounds from its points; `point` is scratch of D values."""
    clear_bounds(f, leaf)
    for at in range(f.nodes[leaf, COUNT]):
        leaf_take(f, leaf, at, point)
        bounds_add(f, leaf, point)


@kernel
def replace_child(f: Arrays, link: Int, old: Int, new: Int) -> None:
    """Hang `new` where `old` hung: below node `link`, or as the root of channel -1 - link."""
    f.nodes[new, PARENT] = link
    if link < 0:
        f.channels[-1 - link, ROOT] = new
    elif f.nodes[link, LEFT] == old:
        f.nodes[link, LEFT] = new
    else:
        f.nodes[link, RIGHT] = new


@kernel
def find_misfit(slot_map: I32, slots: I32, held: bool) -> Int:
    """Index of the first slot that is listed twice or whose being held differs from `held`; -1 if there is none."""
    # A slot seen has its leaf complemented, which makes it look the other way round; then all is put back.
    misfit = -1
    seen = 0
    for i in range(slots.shape[0]):
        if slots[i] < 0 or slots[i] >= slot_map.shape[0] or (slot_map[slots[i], 0] >= 0) != held:
            misfit = i
            break
        slot_map[slots[i], 0] = ~slot_map[slots[i], 0]
        seen += 1
    for i in range(seen):
        slot_map[slots[i], 0] = ~slot_map[slots[i], 0]
    return misfit


def empty_arrays(dims: int) -> Arrays:
    """The arrays of an index without points."""
    head = np.full(HEAD_FIELDS, -1, np.int64)
    head[:FREE_LISTS] = 0
    head[NODE_FREE] = -1

    def empty(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        return np.empty(shape, dtype)

    return Arrays(
        head=head,
        channels=empty((0, 2), np.int32),
        nodes=empty((0, NODE_FIELDS), np.int32),
        split=empty((0,), np.int64),
        bounds=empty((0, 2, dims), np.int64),
        pool=empty((CHUNK,), np.int64),
        pool_slot=empty((0,), np.int32),
        slot_map=empty((0, 2), np.int32),
    )
