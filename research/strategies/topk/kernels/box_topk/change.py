"""Changes of entries: the regions that each has to be sent to. And points that come and go.

The points that hold an entry are those of its set whose boxes it is in, with fewer than k entries of lower keys. When its key
gets lower, all that hold it then get it. When it gets greater, or the entry is gone, those who held it get that first; then
come the entries that take its place, lowest key first: each goes to the points that contain both, and k - 1 lower ones.
"""

from __future__ import annotations

import numpy as np

from research.strategies.topk.kernels.box_topk.build import put, read_below, rebuilt, take
from research.strategies.topk.kernels.box_topk.layout import (
    BLOCK,
    BLOCK_MAX,
    COUNT,
    I64,
    INT64_MAX,
    INT64_MIN,
    LINK_FIELDS,
    NOBODY,
    ROOT,
    SET,
    U8,
    Int,
    Tree,
    TreePointers,
    find,
    is_less,
    tree_pointers,
)
from research.strategies.topk.kernels.box_topk.output import Output, end_send, new_output
from research.strategies.topk.kernels.box_topk.tiles import Crowd, Region, find_rivals, write_region
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel

# What is wrong with a change: nothing; the entry is in another set; another has its place and key.
DONE, BAD_ENTRY, BAD_TIE = range(3)


@kernel
def ends_of(one: I64, other: I64, dims: Int) -> tuple[I64, I64]:
    """The box of all points that contain two places [dims ..]."""
    low, high = np.full(2 * dims, INT64_MIN), np.full(2 * dims, INT64_MAX)
    for c in range(dims):
        high[2 * c], low[2 * c + 1] = min(one[c], other[c]), max(one[c], other[c])
    return low, high


@kernel
def send_rising(out: Output, e: TreePointers, c: Crowd, item: I64, k: Int, slack: Int) -> Output:
    """Sends an entry to all that hold it; it need not be in the tree."""
    y = e.y
    key = pointer(item[y:])
    rivals = find_rivals(e, c.of, pointer(item), item[y + 2], key, key, True, k)
    low, high = ends_of(item[1:], item[1:], y - 1)
    out = write_region(out, c, Region(low, high, rivals, len(rivals), 0, k - 1, slack))
    end_send(out, item[y + 2], False)
    return out


@kernel
def send_falling(
    out: Output, e: TreePointers, c: Crowd, item: I64, new_y: Int, new_tie: Int, is_gone: bool, k: Int, slack: Int
) -> Output:
    """Sends an entry whose key grows, or that is gone, to those who held it; and who takes its place."""
    y, dims = e.y, e.y - 1
    top = np.array([new_y, new_tie])
    rivals = find_rivals(e, c.of, pointer(item), item[y + 2], pointer(item[y:]), pointer(top), not is_gone, k)
    lows = 0
    while lows < len(rivals) and is_less(rivals[lows, dims], rivals[lows, dims + 1], item[y], item[y + 1]):
        lows += 1
    low, high = ends_of(item[1:], item[1:], dims)
    first = out.ends[1]
    out = write_region(out, c, Region(low, high, rivals, lows, 0, k - 1, slack))
    last = out.ends[1]
    end_send(out, item[y + 2], is_gone)
    if first == last:
        return out
    # Nobody who held it has a range that reaches beyond.
    low, high = out.box_lo[first].copy(), out.box_hi[first].copy()
    for i in range(first + 1, last):
        low, high = np.minimum(low, out.box_lo[i]), np.maximum(high, out.box_hi[i])
    for j in range(lows, len(rivals)):
        d = 0
        while d < dims and low[2 * d] <= rivals[j, d] <= high[2 * d + 1]:
            d += 1
        if d == dims:
            both_low, both_high = ends_of(item[1:], rivals[j], dims)
            out = write_region(out, c, Region(both_low, both_high, rivals, j, k - 1, k - 1, slack))
            end_send(out, rivals[j, dims + 2], False)
    return out


@kernel
def change(
    k: Int,
    slack: Int,
    is_sparse: bool,
    is_told: bool,
    entries: Tree,
    points: Tree,
    known: I64,
    of: I64,
    changed: I64,
    xs: I64,
    ys: I64,
    ties: I64,
    is_present: U8,
    send_starts: I64,
) -> tuple[Int, Int, Tree, Output]:
    """Makes changes one after the other; the sends of change i are from send_starts[i] on.

    known [entries, dims + 3] has the set plus 1 of every entry, or 0, and its numbers. is_sparse: whether sends are to points
    of the tree alone; is_told: whether there are any. Returns DONE or what is wrong, the number of the change that it is wrong
    with, the tree of entries, and the sends.
    """
    dims = xs.shape[1]
    key = 1 + dims
    old, new = np.zeros(dims + 4, np.int64), np.zeros(dims + 4, np.int64)
    out = new_output(2 * len(of) + 64, 2 * dims)
    p = tree_pointers(points)
    for i in range(len(of)):
        entry, had, has = changed[i], known[changed[i], SET] > 0, is_present[i] != 0
        if had and known[entry, SET] != of[i] + 1:
            return BAD_ENTRY, i, entries, out
        old[: key + 2], old[key + 2] = known[entry], entry
        old[SET] = new[SET] = of[i]
        new[1:key] = xs[i]
        new[key], new[key + 1], new[key + 2] = ys[i], ties[i], entry
        e = tree_pointers(entries)
        if has:
            leaf, place = find(e, pointer(new))
            if place != NOBODY:
                last = e.links[leaf * LINK_FIELDS + BLOCK] * e.block_width + (key + 2) * BLOCK_MAX
                if e.pool[last + place] != entry:
                    return BAD_TIE, i, entries, out
        c = Crowd(p, of[i], is_sparse)
        stays = had and has and (old[1:key] == new[1:key]).all() and old[key + 1] == new[key + 1]
        if is_told and had and (not stays or old[key] < new[key]):
            out = send_falling(out, e, c, old, new[key], new[key + 1], not stays, k, slack)
        if is_told and has and (not stays or old[key] >= new[key]):
            out = send_rising(out, e, c, new, k, slack)
        if not (stays and old[key] == new[key]):
            if had:
                leaf, place = find(e, pointer(old))
                take(e, leaf, place)
            if has:
                entries = put(entries, pointer(new))
        known[entry] = new[: key + 2]
        known[entry, SET] = of[i] + 1 if has else 0
        send_starts[i + 1] = out.ends[0]
    return DONE, len(of), entries, out


@kernel
def add(points: Tree, of: I64, boxes: I64) -> Tree:
    """The tree of points with some more. Points with the same box of the same set are one point, which is counted."""
    y = 1 + boxes.shape[1]
    item = np.zeros(y + 3, np.int64)
    for i in range(len(of)):
        item[SET] = of[i]
        item[1:y] = boxes[i]
        leaf, place = find(tree_pointers(points), pointer(item))
        if place != NOBODY:
            points.pool[points.links[leaf, BLOCK], y + 2, place] += 1
            continue
        item[y + 2] = 1
        points = put(points, pointer(item))
    return points


@kernel
def remove(points: Tree, of: I64, boxes: I64) -> Int:
    """Removes points, each of them once; returns how many there were, which is the number of the first that is not there."""
    y = 1 + boxes.shape[1]
    item = np.zeros(y + 3, np.int64)
    p = tree_pointers(points)
    for i in range(len(of)):
        item[SET] = of[i]
        item[1:y] = boxes[i]
        leaf, place = find(p, pointer(item))
        if place == NOBODY:
            return i
        block = points.links[leaf, BLOCK]
        points.pool[block, y + 2, place] -= 1
        if points.pool[block, y + 2, place] == 0:
            take(p, leaf, place)
    return len(of)


@kernel
def items_of(t: Tree, frees: bool) -> I64:
    """All items of a tree; `frees`: as `read_below`."""
    if t.head[ROOT] == NOBODY or t.links[t.head[ROOT], COUNT] == 0:
        return np.empty((0, t.pool.shape[1]), np.int64)
    items: I64 = read_below(tree_pointers(t), t.head[ROOT], frees)
    return items


@kernel
def retie(entries: Tree, known: I64, changed: I64, ties: I64) -> Tree:
    """Gives entries other ties, which leave those of every set in the same order."""
    key = known.shape[1] - 2
    items = items_of(entries, True)
    for i in range(len(changed)):
        known[changed[i], key + 1] = ties[i]
    for i in range(len(items)):
        items[i, key + 1] = known[items[i, key + 2], key + 1]
    return rebuilt(entries, entries.head[ROOT], items) if len(items) else entries
