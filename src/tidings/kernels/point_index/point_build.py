"""Building balanced kd-trees: points are gathered, cuts are planned, then nodes and blocks are made.

Cuts go round the dimensions, so that no dimension's unit of measure matters and open ends (INT64_MIN, INT64_MAX) do no harm.
A cut is at the median, moved to an edge of the run of equal coordinates it falls into; a dimension where this leaves less
than a quarter on one side is taken only if no other does better. Such a run then is at an edge, and after one more cut fills
the dimension, so a path has at most 2 D uneven cuts: the height is below 2.5 log2(n) + 2 D.

Gathering copies points, so that building may free the old trees first and reuse their room. Building stops when room runs
out and goes on from there once the caller has made some.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import I32, I64, ZERO, Int
from tidings.kernels.jit import kernel
from tidings.kernels.point_index.point_layout import (
    CAPACITY,
    COUNT,
    DIM,
    DONE,
    IS_LEAF,
    LEAF_MAX,
    LEFT,
    NEEDS_ROOM,
    OFFSET,
    PARENT,
    POINTS,
    PROGRESS,
    REMOVED,
    RIGHT,
    ROOT,
    Arrays,
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

# --- The plan: where to cut, before any node exists ---


@kernel
def select(keys: I64, n: Int, k: Int) -> Int:
    """The k-th smallest of the first n keys, which are reordered (Hoare's quickselect, median of three)."""
    lo = 0
    hi = n - 1
    while lo < hi:
        a, b, c = keys[lo], keys[(lo + hi) >> 1], keys[hi]
        pivot = max(min(a, b), min(max(a, b), c))
        i = lo
        j = hi
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            break
    return keys[k]


@kernel
def best_cut(keys: I64, scratch: I64, n: Int) -> tuple[Int, Int]:
    """Value v for which {x <= v} and {x > v} are closest to halves, and the size of the smaller; 0 if all are equal."""
    for i in range(n):
        scratch[i] = keys[i]
    median = select(scratch, n, (n - 1) >> 1)
    below = 0
    upto = 0
    for i in range(n):
        below += keys[i] < median
        upto += keys[i] <= median
    if min(upto, n - upto) >= min(below, n - below):
        return median, min(upto, n - upto)
    value = scratch[0]
    found = False
    for i in range(n):
        if keys[i] < median and (not found or keys[i] > value):
            value = keys[i]
            found = True
    return value, min(below, n - below)


@kernel
def choose_cut(
    coords: I64, rows: I32, start: Int, end: Int, first: Int, live: Int, keys: I64, scratch: I64
) -> tuple[Int, Int, Int]:
    """Dimension (-1: all points are the same) and value to cut coords[rows[start:end]] at.

    Dimensions are tried from `first` on. `live` is the bit set of those not yet known to be constant; the third result
    is what is left of it. `keys` and `scratch` are for end - start values; `keys` is left with the last tried.
    """
    dims = coords.shape[1]
    n = end - start
    best = 0
    best_dim = -1
    best_value = np.int64(0)
    for turn in range(dims):
        d = (first + turn) % dims
        if not (live >> d) & 1:
            continue
        for i in range(n):
            keys[i] = coords[rows[start + i], d]
        value, smaller = best_cut(keys, scratch, n)
        if smaller == 0:
            live &= ~(np.int64(1) << d)
        elif smaller > best:
            best, best_dim, best_value = smaller, d, value
            if smaller * 4 >= n:
                break
    return best_dim, best_value, live


@kernel
def divide(coords: I64, rows: I32, start: Int, end: Int, d: Int, value: Int, held: I32) -> Int:
    """Stable partition of rows[start:end] by coordinate d <= value; returns where the right part starts."""
    middle = start
    right = 0
    for i in range(start, end):
        row = rows[i]
        if coords[row, d] <= value:
            rows[middle] = row
            middle += 1
        else:
            held[right] = row
            right += 1
    for i in range(right):
        rows[middle + i] = held[i]
    return middle


@kernel
def plan_trees(coords: I64, tree_starts: I64) -> tuple[I32, I64, I64]:
    """Plan one balanced tree over each coords[tree_starts[t]:tree_starts[t + 1]] (not empty).

    Returns rows int32[n], the order of the points by leaves; and nodes in preorder as steps int64[p, 4] with their cut
    values int64[p]. A step is (first row, end row, cut dimension or -1 for a leaf, parent step or -1 - t for a root);
    a left child directly follows its parent.
    """
    n, dims = coords.shape
    trees = tree_starts.shape[0] - 1
    rows = np.empty(n, np.int32)
    for i in range(n):
        rows[i] = i
    steps = np.empty((trees + n // 4 + 16, 4), np.int64)
    cuts = np.empty(steps.shape[0], np.int64)
    largest = 0
    for t in range(trees):
        largest = max(largest, tree_starts[t + 1] - tree_starts[t])
    keys = np.empty(largest, np.int64)
    scratch = np.empty(largest, np.int64)
    held = np.empty(largest, np.int32)
    stack = np.empty((4 * dims + 256, 5), np.int64)
    made = 0
    for t in range(trees):
        stack[0, 0], stack[0, 1], stack[0, 2] = tree_starts[t], tree_starts[t + 1], -1 - t
        stack[0, 3], stack[0, 4] = 0, (np.int64(1) << dims) - 1
        depth = 1
        while depth:
            depth -= 1
            start, end, parent = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            first, live = stack[depth, 3], stack[depth, 4]
            d = np.int64(-1)
            value = np.int64(0)
            if end - start > LEAF_MAX and live:
                d, value, live = choose_cut(coords, rows, start, end, first, live, keys, scratch)
            if made == steps.shape[0]:
                more_steps, more_cuts = np.empty((2 * made, 4), np.int64), np.empty(2 * made, np.int64)
                for i in range(made):
                    for j in range(4):
                        more_steps[i, j] = steps[i, j]
                    more_cuts[i] = cuts[i]
                steps, cuts = more_steps, more_cuts
            steps[made, 0], steps[made, 1], steps[made, 2], steps[made, 3] = start, end, d, parent
            cuts[made] = value
            if d >= 0:
                middle = divide(coords, rows, start, end, d, value, held)
                for begin, stop in ((middle, end), (start, middle)):
                    stack[depth, 0], stack[depth, 1], stack[depth, 2] = begin, stop, made
                    stack[depth, 3], stack[depth, 4] = d + 1, live
                    depth += 1
            made += 1
    return rows, steps[:made], cuts[:made]


# --- From points in trees to points in trees ---


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
                longer = np.empty(2 * size, np.int64)
                for i in range(size):
                    longer[i] = found[i]
                found = longer
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
    top: Int = np.int64(0)
    for leaf in range(node_top):
        if nodes[leaf, LEFT] != IS_LEAF:
            continue
        old = np.int64(nodes[leaf, OFFSET])
        capacity = np.int64(nodes[leaf, CAPACITY])
        for i in range(capacity * dims):
            new_pool[top * dims + i] = pool[old * dims + i]
        for i in range(capacity):
            new_slot[top + i] = pool_slot[old + i]
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
    at = ZERO
    for channel in range(channels.shape[0]):
        if channels[channel, ROOT] >= 0:
            end = copy_points(f, np.int64(channels[channel, ROOT]), slots, coords, at)
            for i in range(at, end):
                point_channels[i] = channel
            at = end
    return point_channels, slots, coords
