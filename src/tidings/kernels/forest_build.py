"""Bulk building: take points out of the trees they are in, add new ones, and turn a plan into nodes and blocks.

The order is gather -> plan (forest_plan) -> build. Gathering copies, so that building may free the old trees first and
reuse their room; building stops when room runs out and goes on from there once the caller has made some.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.forest_arrays import (
    CAPACITY,
    COUNT,
    DIM,
    DONE,
    I32,
    I64,
    IS_LEAF,
    LEFT,
    NEEDS_ROOM,
    OFFSET,
    PARENT,
    POINTS,
    PROGRESS,
    REMOVED,
    RIGHT,
    Arrays,
    Int,
    bounds_add,
    bounds_join,
    class_of,
    leaf_new,
    leaf_put,
    leaf_take,
    node_free,
    node_new,
    replace_child,
)
from tidings.kernels.jit import kernel


@kernel
def subtree(f: Arrays, node: Int) -> I64:
    """All nodes at and below a node, parents before children."""
    found = np.empty(64, np.int64)
    found[0] = node
    size = 1
    at = 0
    while at < size:
        node = found[at]
        at += 1
        if f.nodes[node, LEFT] != IS_LEAF:
            if size + 2 > found.shape[0]:
                found = np.concatenate((found, np.empty_like(found)))
            found[size] = f.nodes[node, LEFT]
            found[size + 1] = f.nodes[node, RIGHT]
            size += 2
    return found[:size]


@kernel
def copy_points(f: Arrays, node: Int, slots: I32, coords: I64, at: Int) -> Int:
    """Write the points below a node to slots[at:] and coords[at:]; returns the end."""
    for below in subtree(f, node):
        if f.nodes[below, LEFT] == IS_LEAF:
            for i in range(f.nodes[below, COUNT]):
                slots[at] = leaf_take(f, below, i, coords[at])
                at += 1
    return at


@kernel
def gather(
    head: I64,
    channels: I32,
    nodes: I32,
    split: I64,
    bounds: I64,
    pool: I64,
    pool_slot: I32,
    slot_map: I32,
    old_nodes: I64,
    new_starts: I64,
    new_order: I64,
    new_slots: I32,
    new_coords: I64,
) -> tuple[I64, I32, I64]:
    """Points of tree t: those below old_nodes[t] (-1: none), then the new points new_order[new_starts[t]:][...].

    Returns tree_starts int64[t + 1], slots int32[n] and coords int64[n, D].
    """
    f = Arrays(head, channels, nodes, split, bounds, pool, pool_slot, slot_map)
    trees = old_nodes.shape[0]
    tree_starts = np.zeros(trees + 1, np.int64)
    for t in range(trees):
        held = nodes[old_nodes[t], COUNT] if old_nodes[t] >= 0 else 0
        tree_starts[t + 1] = tree_starts[t] + held + new_starts[t + 1] - new_starts[t]
    slots = np.empty(tree_starts[trees], np.int32)
    coords = np.empty((tree_starts[trees], bounds.shape[2]), np.int64)
    for t in range(trees):
        at = tree_starts[t]
        if old_nodes[t] >= 0:
            at = copy_points(f, old_nodes[t], slots, coords, at)
        for i in range(new_starts[t], new_starts[t + 1]):
            slots[at] = new_slots[new_order[i]]
            for d in range(coords.shape[1]):
                coords[at, d] = new_coords[new_order[i], d]
            at += 1
    return tree_starts, slots, coords


@kernel
def build(
    head: I64,
    channels: I32,
    nodes: I32,
    split: I64,
    bounds: I64,
    pool: I64,
    pool_slot: I32,
    slot_map: I32,
    old_nodes: I64,
    links: I64,
    rows: I32,
    steps: I64,
    cuts: I64,
    slots: I32,
    coords: I64,
    made: I64,
    start: Int,
) -> Int:
    """Replace the trees below old_nodes[t] by the planned ones, each hung at links[t] (see `replace_child`).

    `made` int64[p] collects the node of each step. Call with start = -1. Returns DONE, or NEEDS_ROOM: then make room
    and call again with start = head[PROGRESS].
    """
    f = Arrays(head, channels, nodes, split, bounds, pool, pool_slot, slot_map)
    if start < 0:
        start = 0
        for t in range(old_nodes.shape[0]):
            if old_nodes[t] >= 0:
                head[POINTS] -= nodes[old_nodes[t], COUNT]
                for node in subtree(f, old_nodes[t]):
                    node_free(f, node)
    for step in range(start, steps.shape[0]):
        first, end, d = steps[step, 0], steps[step, 1], steps[step, 2]
        node = leaf_new(f, class_of(end - first)) if d < 0 else node_new(f)
        if node < 0:
            head[PROGRESS] = step
            return NEEDS_ROOM
        made[step] = node
        if d < 0:
            for i in range(first, end):
                leaf_put(f, node, slots[rows[i]], coords[rows[i]])
                bounds_add(f, node, coords[rows[i]])
                nodes[node, COUNT] += 1
        else:
            nodes[node, DIM] = d
            split[node] = cuts[step]
            nodes[node, COUNT] = end - first
    for step in range(steps.shape[0] - 1, -1, -1):
        node = made[step]
        parent = steps[step, 3]
        if parent >= 0:
            nodes[node, PARENT] = made[parent]
            nodes[made[parent], LEFT if step == parent + 1 else RIGHT] = node
            bounds_join(f, made[parent], node)
        else:
            link = links[-1 - parent]
            replace_child(f, link, old_nodes[-1 - parent], node)
            head[POINTS] += nodes[node, COUNT]
            if link < 0:
                channels[-1 - link, REMOVED] = 0
    return DONE


@kernel
def repack(nodes: I32, node_top: Int, dims: Int, pool: I64, pool_slot: I32, new_pool: I64, new_slot: I32) -> Int:
    """Copy all blocks next to each other into new arrays; returns the top of the new pool."""
    top: Int = 0
    for leaf in range(node_top):
        if nodes[leaf, LEFT] != IS_LEAF:
            continue
        old = np.int64(nodes[leaf, OFFSET])
        capacity = np.int64(nodes[leaf, CAPACITY])
        new_pool[top * dims : (top + capacity) * dims] = pool[old * dims : (old + capacity) * dims]
        new_slot[top : top + capacity] = pool_slot[old : old + capacity]
        nodes[leaf, OFFSET] = top
        top += capacity
    return top


@kernel
def dump(
    head: I64,
    channels: I32,
    nodes: I32,
    split: I64,
    bounds: I64,
    pool: I64,
    pool_slot: I32,
    slot_map: I32,
) -> tuple[I64, I32, I64]:
    """Channel, slot and coordinates of every point held, by channels."""
    f = Arrays(head, channels, nodes, split, bounds, pool, pool_slot, slot_map)
    point_channels = np.empty(head[POINTS], np.int64)
    slots = np.empty(head[POINTS], np.int32)
    coords = np.empty((head[POINTS], bounds.shape[2]), np.int64)
    at = 0
    for channel in range(channels.shape[0]):
        if channels[channel, 0] >= 0:
            end = copy_points(f, channels[channel, 0], slots, coords, at)
            point_channels[at:end] = channel
            at = end
    return point_channels, slots, coords
