"""Insertion of single points, in time logarithmic in the size of the channel.

A full leaf is cut in two. A leaf whose points are all the same cannot be cut: its block grows instead, and a different
point that arrives there gets a leaf of its own beside it, in constant time. What takes longer, making room and
rebuilding a subtree on a path that got too deep, is left to the caller; see `NEEDS_ROOM` and `NEEDS_REBUILD`.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.forest_arrays import (
    BAD_SLOT,
    CAPACITY,
    COUNT,
    DIM,
    DONE,
    I32,
    I64,
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
    Int,
    bounds_add,
    bounds_join,
    bounds_tighten,
    class_of,
    leaf_move,
    leaf_new,
    leaf_put,
    node_new,
    replace_child,
)
from tidings.kernels.forest_build import copy_points
from tidings.kernels.forest_plan import choose_cut
from tidings.kernels.jit import kernel


@kernel
def height_limit(points: Int, dims: Int) -> Int:
    """Height that a tree built in bulk never reaches (see forest_plan), with some slack."""
    bits = 0
    while points >> bits:
        bits += 1
    return (5 * bits) // 2 + 2 * dims + 8


@kernel
def fork(f: Arrays, leaf: Int, other: Int, dim: Int, value: Int, leaf_is_left: bool) -> None:
    """Put an inner node where `leaf` is, with `leaf` and the new leaf `other` below."""
    node = node_new(f)
    replace_child(f, f.nodes[leaf, PARENT], leaf, node)
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
    copy_points(f, leaf, slots, coords, 0)
    link = f.nodes[leaf, PARENT]
    first = f.nodes[link, DIM] + 1 if link >= 0 else 0
    rows = np.arange(n).astype(np.int32)
    keys = np.empty(n, np.int64)
    dim, value, _ = choose_cut(coords, rows, 0, n, first, (np.int64(1) << dims) - 1, keys, np.empty_like(keys))
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
    fork(f, leaf, other, dim, value, True)
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
            other = leaf_new(f, 0)
            fork(f, leaf, other, apart, min(held, point[apart]), held < point[apart])
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
        leaf = leaf_new(f, 0)
        replace_child(f, -1 - channel, -1, leaf)
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
