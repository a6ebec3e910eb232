"""Inserting and removing single points, in time logarithmic in the size of the channel.

A full leaf is cut in two. A leaf whose points are all the same cannot be cut: its block grows instead, and a different point
that arrives there gets a leaf of its own beside it, in constant time. Of a removed point, the last one of the leaf takes the
place. Empty leaves vanish and small subtrees become leaves; bounds stay as they are.

What takes longer is left to the caller: making room (`NEEDS_ROOM`), and rebuilding a subtree on a path that has become too
deep, or a channel with many removals (`NEEDS_REBUILD`).
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import I32, I64, ZERO, Int
from tidings.kernels.jit import kernel
from tidings.kernels.point_index.point_build import choose_cut, copy_points, subtree
from tidings.kernels.point_index.point_layout import (
    BAD_SLOT,
    CAPACITY,
    COUNT,
    DIM,
    DONE,
    IS_LEAF,
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
    bounds_add,
    bounds_join,
    bounds_tighten,
    class_of,
    leaf_move,
    leaf_new,
    leaf_put,
    leaf_take,
    node_free,
    node_new,
    replace_child,
)

COLLAPSE_AT = LEAF_MAX // 4
"""A subtree with so few points becomes a leaf."""
REBUILD_SLACK = 128
"""Removals from a channel, beyond as many as points are left, before it is rebuilt."""


# --- Insertion ---


@kernel
def height_limit(points: Int, dims: Int) -> Int:
    """Height that a tree built in bulk never reaches (see `build`), with some slack."""
    bits = 0
    while points >> bits:
        bits += 1
    return (5 * bits) // 2 + 2 * dims + 8


@kernel
def fork(f: Arrays, leaf: Int, other: Int, dim: Int, value: Int) -> None:
    """Put an inner node where `leaf` is, with `leaf` and the new leaf `other` below."""
    node = node_new(f)
    replace_child(f, f.nodes[leaf, PARENT], leaf, node)
    leaf_is_left = f.bounds[leaf, 0, dim] <= value
    f.nodes[node, LEFT] = leaf if leaf_is_left else other
    f.nodes[node, RIGHT] = other if leaf_is_left else leaf
    f.nodes[node, DIM] = dim
    f.split[node] = value
    for child in (leaf, other):
        f.nodes[child, PARENT] = node
        f.nodes[node, COUNT] += f.nodes[child, COUNT]
        bounds_join(f, node, child)


@kernel
def cut_leaf(f: Arrays, leaf: Int, point: I64) -> Int:
    """Cut a leaf whose points are not all the same; returns the part where `point` belongs."""
    n = np.int64(f.nodes[leaf, COUNT])
    dims = point.shape[0]
    slots = np.empty(n, np.int32)
    coords = np.empty((n, dims), np.int64)
    copy_points(f, leaf, slots, coords, ZERO)
    link = f.nodes[leaf, PARENT]
    first = np.int64(f.nodes[link, DIM] + 1 if link >= 0 else 0)
    rows = np.empty(n, np.int32)
    for i in range(n):
        rows[i] = i
    keys = np.empty(n, np.int64)
    dim, value, _ = choose_cut(coords, rows, ZERO, n, first, (np.int64(1) << dims) - 1, keys, np.empty(n, np.int64))
    right = 0
    for i in range(n):
        right += coords[i, dim] > value
    other = leaf_new(f, class_of(right + 1))
    f.nodes[leaf, COUNT] = 0
    for i in range(n):
        part = other if coords[i, dim] > value else leaf
        leaf_put(f, part, slots[i], coords[i])
        f.nodes[part, COUNT] += 1
    scratch = np.empty(dims, np.int64)
    bounds_tighten(f, leaf, scratch)
    bounds_tighten(f, other, scratch)
    leaf_move(f, leaf, class_of(n - right + 1))
    fork(f, leaf, other, dim, value)
    return other if point[dim] > value else leaf


@kernel
def leaf_for(f: Arrays, leaf: Int, point: I64) -> Int:
    """The leaf to append `point` to, given the one it belongs to; -1, and nothing done, if room must be made first."""
    count = f.nodes[leaf, COUNT]
    if count == LEAF_MAX:
        scratch = np.empty(point.shape[0], np.int64)
        bounds_tighten(f, leaf, scratch)
    if count >= LEAF_MAX:
        apart = -1
        for d in range(point.shape[0]):
            if f.bounds[leaf, 0, d] != f.bounds[leaf, 1, d]:
                leaf = cut_leaf(f, leaf, point)
                apart = -1
                break
            if point[d] != f.bounds[leaf, 0, d]:
                apart = d
        if apart >= 0:
            held = f.bounds[leaf, 0, apart]
            other = leaf_new(f, ZERO)
            fork(f, leaf, other, apart, min(held, point[apart]))
            return other
    count = f.nodes[leaf, COUNT]
    if count == f.nodes[leaf, CAPACITY] and not leaf_move(f, leaf, class_of(count + 1)):
        f.head[ROOM] = 2 * count
        return -1
    return leaf


@kernel
def insert_point(f: Arrays, channel: Int, slot: Int, point: I64) -> Int:
    """Insert one point; DONE, NEEDS_ROOM (nothing done yet) or NEEDS_REBUILD (inserted; below node head[TARGET])."""
    head, nodes = f.head, f.nodes
    if head[NODE_TOP] + SPARE_NODES > nodes.shape[0] or head[POOL_TOP] + SPARE_POINTS > f.pool_slot.shape[0]:
        head[ROOM] = 0
        return NEEDS_ROOM
    depth = 0
    leaf = np.int64(f.channels[channel, ROOT])
    if leaf < 0:
        leaf = leaf_new(f, ZERO)
        replace_child(f, -1 - channel, leaf, leaf)
        f.channels[channel, REMOVED] = 0
    else:
        while nodes[leaf, LEFT] != IS_LEAF:
            leaf = np.int64(nodes[leaf, LEFT if point[nodes[leaf, DIM]] <= f.split[leaf] else RIGHT])
            depth += 1
        leaf = leaf_for(f, leaf, point)
        if leaf < 0:
            return NEEDS_ROOM
    leaf_put(f, leaf, slot, point)
    head[POINTS] += 1
    node = root = leaf
    grows = True
    while node >= 0:
        nodes[node, COUNT] += 1
        grows = grows and bounds_add(f, node, point)
        root = node
        node = np.int64(nodes[node, PARENT])
    if depth <= height_limit(nodes[root, COUNT], point.shape[0]):
        return DONE
    height = 0
    node = leaf
    while height <= height_limit(nodes[node, COUNT], point.shape[0]) and node != root:
        node = np.int64(nodes[node, PARENT])
        height += 1
    head[TARGET] = node
    return NEEDS_REBUILD


@kernel
def insert_points(
    head: I64,
    channels: I32,
    nodes: I32,
    split: I64,
    bounds: I64,
    pool: I64,
    pool_slot: I32,
    slot_map: I32,
    point_channels: I64,
    slots: I32,
    coords: I64,
    start: Int,
) -> Int:
    """Insert points start.. of the given; unless DONE, go on with head[PROGRESS] after doing what is reported."""
    f = Arrays(head, channels, nodes, split, bounds, pool, pool_slot, slot_map)
    for i in range(start, slots.shape[0]):
        head[PROGRESS] = i
        if slot_map[slots[i], 0] >= 0:
            return BAD_SLOT
        status = insert_point(f, point_channels[i], slots[i], coords[i])
        if status != DONE:
            head[PROGRESS] = i + (status == NEEDS_REBUILD)
            return status
    return DONE


# --- Removal ---


@kernel
def collapse(f: Arrays, node: Int) -> None:
    """Turn the few points below a node into one leaf in its place."""
    n = np.int64(f.nodes[node, COUNT])
    link = f.nodes[node, PARENT]
    slots = np.empty(n, np.int32)
    coords = np.empty((n, f.bounds.shape[2]), np.int64)
    copy_points(f, node, slots, coords, ZERO)
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
