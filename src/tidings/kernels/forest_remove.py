"""Removal of single points, in time logarithmic in the size of the channel.

The last point of the leaf takes the place of the removed one. Empty leaves vanish and small subtrees become leaves.
Bounds stay as they are; a channel with many removals is reported to the caller to be rebuilt (`NEEDS_REBUILD`).
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.forest_arrays import (
    BAD_SLOT,
    CAPACITY,
    COUNT,
    DONE,
    I32,
    I64,
    LEAF_MAX,
    LEFT,
    NEEDS_REBUILD,
    NEEDS_ROOM,
    NODE_TOP,
    PARENT,
    POINTS,
    POOL_TOP,
    PROGRESS,
    REMOVED,
    RIGHT,
    ROOM,
    ROOT,
    SPARE_NODES,
    SPARE_POINTS,
    TARGET,
    Arrays,
    Int,
    bounds_add,
    class_of,
    leaf_move,
    leaf_new,
    leaf_put,
    leaf_take,
    node_free,
    replace_child,
)
from tidings.kernels.forest_build import copy_points, subtree
from tidings.kernels.jit import kernel

COLLAPSE_AT = LEAF_MAX // 4
"""A subtree with so few points becomes a leaf."""
REBUILD_SLACK = 128
"""Removals from a channel, beyond as many as points are left, before it is rebuilt."""


@kernel
def collapse(f: Arrays, node: Int) -> None:
    """Turn the few points below a node into one leaf in its place."""
    n = np.int64(f.nodes[node, COUNT])
    link = f.nodes[node, PARENT]
    slots = np.empty(n, np.int32)
    coords = np.empty((n, f.bounds.shape[2]), np.int64)
    copy_points(f, node, slots, coords, 0)
    leaf = leaf_new(f, class_of(n))
    for i in range(n):
        leaf_put(f, leaf, slots[i], coords[i])
        bounds_add(f, leaf, coords[i])
        f.nodes[leaf, COUNT] += 1
    replace_child(f, link, node, leaf)
    for old in subtree(f, node):
        node_free(f, old)


@kernel
def unlink(f: Arrays, leaf: Int) -> None:
    """Take an empty leaf out of its tree; its sibling replaces their parent."""
    link = np.int64(f.nodes[leaf, PARENT])
    if link < 0:
        f.channels[-1 - link, ROOT] = -1
    else:
        sibling = f.nodes[link, LEFT] if f.nodes[link, RIGHT] == leaf else f.nodes[link, RIGHT]
        replace_child(f, f.nodes[link, PARENT], link, sibling)
        node_free(f, link)
    node_free(f, leaf)


@kernel
def remove_point(f: Arrays, slot: Int, point: I64) -> Int:
    """Remove one point; DONE or NEEDS_REBUILD (removed; below node head[TARGET]). `point` is scratch of D values."""
    nodes = f.nodes
    leaf = np.int64(f.slot_map[slot, 0])
    at = f.slot_map[slot, 1]
    last = nodes[leaf, COUNT] - 1
    if at != last:
        moved = leaf_take(f, leaf, last, point)
        nodes[leaf, COUNT] = at
        leaf_put(f, leaf, moved, point)
        nodes[leaf, COUNT] = last + 1
    f.slot_map[slot, 0] = -1
    f.head[POINTS] -= 1
    node = root = leaf
    small = np.int64(-1)
    while node >= 0:
        nodes[node, COUNT] -= 1
        if nodes[node, COUNT] <= COLLAPSE_AT and node != leaf:
            small = node
        root = node
        node = np.int64(nodes[node, PARENT])
    channel = -1 - node
    left = nodes[root, COUNT]
    if small >= 0:
        collapse(f, small)
    elif last == 0:
        unlink(f, leaf)
    elif nodes[leaf, CAPACITY] > COLLAPSE_AT and last * 4 <= nodes[leaf, CAPACITY]:
        leaf_move(f, leaf, class_of(2 * last))
    f.channels[channel, REMOVED] += 1
    if f.channels[channel, REMOVED] <= left + REBUILD_SLACK:
        return DONE
    f.channels[channel, REMOVED] = 0
    if left <= LEAF_MAX:
        return DONE
    f.head[TARGET] = f.channels[channel, ROOT]
    return NEEDS_REBUILD


@kernel
def remove_points(
    head: I64,
    channels: I32,
    nodes: I32,
    split: I64,
    bounds: I64,
    pool: I64,
    pool_slot: I32,
    slot_map: I32,
    slots: I32,
    start: Int,
) -> Int:
    """Remove the points in slots[start:]; unless DONE, go on with head[PROGRESS] after doing what is reported."""
    f = Arrays(head, channels, nodes, split, bounds, pool, pool_slot, slot_map)
    point = np.empty(bounds.shape[2], np.int64)
    for i in range(start, slots.shape[0]):
        head[PROGRESS] = i
        if slots[i] < 0 or slots[i] >= slot_map.shape[0] or slot_map[slots[i], 0] < 0:
            return BAD_SLOT
        if head[NODE_TOP] + SPARE_NODES > nodes.shape[0] or head[POOL_TOP] + SPARE_POINTS > pool_slot.shape[0]:
            head[ROOM] = 0
            return NEEDS_ROOM
        if remove_point(f, slots[i], point) == NEEDS_REBUILD:
            head[PROGRESS] = i + 1
            return NEEDS_REBUILD
    return DONE
