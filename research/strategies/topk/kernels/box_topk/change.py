"""Changes of entries: whom each concerns, what these hold then, and what has to be sent. And points that come and go.

A change concerns the points that hold an entry as it was, and those that should hold it as it is now. Of all that a point
holds, only the number and the greatest key are known. That is enough: a point gains or loses one entry at a time, and its
greatest key is then the next one of its box, below or above.

First the changed entry is sent as gone to those who lose it, then as it is now to all others who hold it or should, and then
come the entries that take its place. An entry may be sent to any point whose box it is in, without harm, and all points in a
box around such points are such points. So one box would do; but a box has many points in it that need no send, and a few have
far fewer. Points are divided among boxes like those of a kd-tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from research.strategies.topk.kernels.box_topk.build import put, read_below, rebuilt, take
from research.strategies.topk.kernels.box_topk.layout import (
    BLOCK,
    BLOCK_MAX,
    COUNT,
    I32,
    I64,
    INT64_MAX,
    INT64_MIN,
    IS_LEAF,
    LEFT,
    LINK_FIELDS,
    NOBODY,
    RIGHT,
    ROOT,
    SET,
    U8,
    Int,
    Tree,
    TreePointers,
    bound_greatest,
    find,
    is_less,
    tree_pointers,
)
from research.strategies.topk.kernels.box_topk.query import (
    DOWNWARDS,
    HEAP_FIELDS,
    HEAP_TIE,
    HEAP_Y,
    UPWARDS,
    Search,
    best_of,
    next_above,
    next_key,
)
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel
from tidings.kernels.point_index.point_build import choose_cut, divide

# What is wrong with a change: nothing; the entry is in another set; another has its place and key.
DONE, BAD_ENTRY, BAD_TIE = range(3)
LOSES, GAINS = 1, 2
"""Kinds of hits: a point loses the entry, which is no longer in its box; or gains it. Both: it holds an entry that stays."""

# Fields of a hit: leaf, place in the block, which of the above, and the entry that takes the place of the changed one.
HIT_LEAF, HIT_PLACE, HIT_KIND, HIT_HEIR, HIT_FIELDS = range(5)

PARTS_MAX = 8
"""Most boxes of a send."""
PART_MIN = 4
"""Points for which a box of their own is worth its bytes."""


class Course(NamedTuple):
    """A change of an entry, and the points it may concern, as pointers. Items have the columns of the tree of entries."""

    tree: TreePointers
    y: Int
    """The column of y of the items."""
    old: Any
    new: Any
    had: bool
    """Whether there was an entry like the old item; `has`: whether there now is one like the new item."""
    has: bool


@kernel
def may_hold(w: TreePointers, node: Int, item: Any, y: Int) -> bool:
    """Whether points below a node may have an item in their boxes, with a key up to their own."""
    low = 2 * node * w.half
    high = low + w.half
    if is_less(w.bounds[high + w.y], w.bounds[high + w.y + 1], item[y], item[y + 1]):
        return False
    if w.bounds[low] > item[SET] or w.bounds[high] < item[SET]:
        return False
    c = 1
    while c < y and w.bounds[low + 2 * c - 1] <= item[c] <= w.bounds[high + 2 * c]:
        c += 1
    return bool(c == y)


@kernel
def has_inside(w: TreePointers, at: Int, i: Int, item: Any, y: Int) -> bool:
    """Whether the box of the i-th point of the block at a place of the pool has an item inside."""
    c = 1
    while c < y and w.pool[at + (2 * c - 1) * BLOCK_MAX + i] <= item[c] <= w.pool[at + 2 * c * BLOCK_MAX + i]:
        c += 1
    return bool(c == y and w.pool[at + i] == item[SET])


@kernel
def kind_of(a: Course, at: Int, i: Int) -> Int:
    """How a change concerns the i-th point of the block at a place of the pool; 0 if it does not."""
    w, y = a.tree, a.y
    keys = at + w.y * BLOCK_MAX + i
    last_y, last_tie = w.pool[keys], w.pool[keys + BLOCK_MAX]
    loses = a.had and not is_less(last_y, last_tie, a.old[y], a.old[y + 1])
    gains = a.has and not is_less(last_y, last_tie, a.new[y], a.new[y + 1])
    if not loses and not gains:
        return 0
    loses = loses and has_inside(w, at, i, a.old, y)
    if not loses and not gains:
        return 0
    stays = a.has and has_inside(w, at, i, a.new, y)
    return (LOSES if loses else 0) | (GAINS if stays else 0)


@kernel
def meet(a: Course, hits: I64) -> tuple[I64, Int]:
    """Finds all points that a change concerns, leaf by leaf; returns the hits, maybe in a longer array, and how many."""
    w, n = a.tree, 0
    w.stack[0] = w.head[ROOT]
    depth = 0 if w.stack[0] == NOBODY else 1
    while depth:
        depth -= 1
        node = w.stack[depth]
        if not ((a.had and may_hold(w, node, a.old, a.y)) or (a.has and may_hold(w, node, a.new, a.y))):
            continue
        if w.links[node * LINK_FIELDS + LEFT] != IS_LEAF:
            w.stack[depth] = w.links[node * LINK_FIELDS + RIGHT]
            w.stack[depth + 1] = w.links[node * LINK_FIELDS + LEFT]
            depth += 2
            continue
        if n + BLOCK_MAX > len(hits):
            hits = np.concatenate((hits, np.empty((len(hits) + BLOCK_MAX, HIT_FIELDS), np.int64)))
        at = w.links[node * LINK_FIELDS + BLOCK] * w.block_width
        for i in range(w.links[node * LINK_FIELDS + COUNT]):
            kind = kind_of(a, at, i)
            if kind:
                hits[n, HIT_LEAF], hits[n, HIT_PLACE], hits[n, HIT_KIND] = node, i, kind
                n += 1
    return hits, n


@kernel
def lose(s: Search, of: Int, box: Int, k: Int, y: Int, tie: Int, held: Int, guess: Int) -> tuple[Int, Int, Int, Int]:
    """Greatest key and number of what is held without one of them, and the entry that takes its place, or NOBODY."""
    heir = NOBODY
    if held == k:
        y, tie, heir = next_above(s, of, box, y, tie, INT64_MAX, INT64_MAX, NOBODY, guess)
    return y, tie, held - (heir == NOBODY), heir


@kernel
def gain(
    s: Search, of: Int, box: Int, k: Int, y: Int, tie: Int, held: Int, new_y: Int, new_tie: Int, entry: Int, guess: Int
) -> tuple[Int, Int, Int, Int]:
    """Greatest key and number of what is held with an entry more; and the entry that has this key, or NOBODY."""
    last = NOBODY
    if held == k:
        # The last one before is not held any more.
        y, tie = (y, tie - 1) if tie > INT64_MIN else (y - 1, INT64_MAX)
    else:
        held += 1
    if held == k:
        y, tie, last = next_key(s, of, box, DOWNWARDS, ~y, ~tie, ~new_y, ~new_tie, entry, guess)
        y, tie = ~y, ~tie
    return y, tie, held, last


@kernel
def settle(t: TreePointers, s: Search, k: Int, old: I64, new: I64, entry: Int, hits: I64, n: Int, boxes: I64) -> None:
    """Updates what the points that were hit hold, and writes who takes the place of the changed entry.

    The entries are searched as they are after the change. The coordinates of the points are written to `boxes`.
    """
    key, guess, width = len(old) - 3, NOBODY, boxes.shape[1]
    for h in range(n):
        block = t.links[hits[h, HIT_LEAF] * LINK_FIELDS + BLOCK] * t.block_width + hits[h, HIT_PLACE]
        kind = hits[h, HIT_KIND]
        for c in range(width):
            boxes[h, c] = t.pool[block + (1 + c) * BLOCK_MAX]
        at = block + t.y * BLOCK_MAX
        last_y, last_tie, held = t.pool[at], t.pool[at + BLOCK_MAX], t.pool[at + 2 * BLOCK_MAX]
        heir, box = NOBODY, h * width
        if kind == LOSES:
            last_y, last_tie, held, heir = lose(s, new[SET], box, k, last_y, last_tie, held, guess)
        elif kind == GAINS:
            last_y, last_tie, held, guess = gain(
                s, new[SET], box, k, last_y, last_tie, held, new[key], new[key + 1], entry, guess
            )
        elif held == k and is_less(last_y, last_tie, new[key], new[key + 1]):
            last_y, last_tie, heir = next_above(
                s, new[SET], box, last_y, last_tie, new[key], new[key + 1], entry, guess
            )
        elif held == k and last_y == old[key] and last_tie == old[key + 1]:
            last_y, last_tie, guess = next_key(
                s, new[SET], box, DOWNWARDS, ~last_y, ~last_tie, ~new[key], ~new[key + 1], entry, guess
            )
            last_y, last_tie = ~last_y, ~last_tie
        if heir != NOBODY:
            guess = heir
        hits[h, HIT_HEIR] = NOBODY if heir == entry else heir
        t.pool[at], t.pool[at + BLOCK_MAX], t.pool[at + 2 * BLOCK_MAX] = last_y, last_tie, held


class Output(NamedTuple):
    """Room for sends and their boxes; `ends` are the numbers of sends and of boxes written."""

    ends: I64
    sent: I64
    is_gone: U8
    box_starts: I64
    box_lo: I64
    """[boxes, 2 * dims]"""
    box_hi: I64
    """[boxes, 2 * dims]"""


@kernel
def new_output(room: Int, width: Int) -> Output:
    sent, is_gone, box_starts = np.empty(room, np.int64), np.empty(room, np.uint8), np.zeros(room + 1, np.int64)
    return Output(
        np.zeros(2, np.int64),
        sent,
        is_gone,
        box_starts,
        np.empty((room, width), np.int64),
        np.empty((room, width), np.int64),
    )


@kernel
def with_room_for(out: Output, more: Int) -> Output:
    """The output with room for so many more sends and boxes."""
    sends, boxes = out.ends[0], out.ends[1]
    if max(sends, boxes) + more <= len(out.sent):
        return out
    longer: Output = new_output(2 * len(out.sent) + more, out.box_lo.shape[1])
    longer.ends[:] = out.ends
    longer.sent[:sends], longer.is_gone[:sends] = out.sent[:sends], out.is_gone[:sends]
    longer.box_starts[: sends + 1] = out.box_starts[: sends + 1]
    longer.box_lo[:boxes], longer.box_hi[:boxes] = out.box_lo[:boxes], out.box_hi[:boxes]
    return longer


@kernel
def add_box(out: Output, points: I64, rows: I32, start: Int, end: Int) -> None:
    """Writes the box around the points of rows[start:end]."""
    at = out.ends[1]
    for c in range(points.shape[1]):
        low = high = points[rows[start], c]
        for i in range(start + 1, end):
            low, high = min(low, points[rows[i], c]), max(high, points[rows[i], c])
        out.box_lo[at, c], out.box_hi[at, c] = low, high
    out.ends[1] = at + 1


@kernel
def add_parts(out: Output, points: I64, rows: I32, start: Int, end: Int) -> None:
    """Writes a few boxes around the points of rows[start:end], which are reordered."""
    keys, scratch = np.empty(end - start, np.int64), np.empty(end - start, np.int64)
    held = np.empty(end - start, np.int32)
    every = (np.int64(1) << points.shape[1]) - 1
    stack = np.empty((PARTS_MAX, 4), np.int64)
    stack[0] = (start, end, 0, PARTS_MAX)
    depth = 1
    while depth:
        depth -= 1
        first, last, turn, parts = stack[depth]
        d = np.int64(-1)
        if parts > 1 and last - first >= 2 * PART_MIN:
            d, value, _ = choose_cut(points, rows, first, last, turn, every, keys, scratch)
        if d < 0:
            add_box(out, points, rows, first, last)
            continue
        middle = divide(points, rows, first, last, d, value, held)
        stack[depth] = (middle, last, d + 1, parts // 2)
        stack[depth + 1] = (first, middle, d + 1, parts - parts // 2)
        depth += 2


@kernel
def add_send(out: Output, entry: Int, is_gone: bool, points: I64, rows: I32, start: Int, end: Int) -> None:
    """Writes a send to the points of rows[start:end], which are reordered."""
    if end - start < 2 * PART_MIN:
        add_box(out, points, rows, start, end)
    else:
        add_parts(out, points, rows, start, end)
    at = out.ends[0]
    out.sent[at], out.is_gone[at] = entry, is_gone
    out.box_starts[at + 1] = out.ends[1]
    out.ends[0] = at + 1


@kernel
def number_heirs(numbers: I64, hits: I64, n: Int, group: I64, heirs: I64) -> Int:
    """Writes the number of the heir of each hit, or NOBODY, and the heirs by number; returns how many they are.

    `numbers` [entries] is scratch.
    """
    count = 0
    for h in range(n):
        heir = hits[h, HIT_HEIR]
        group[h] = NOBODY
        if heir != NOBODY:
            at = numbers[heir]
            if not (0 <= at < count and heirs[at] == heir):
                at = numbers[heir] = count
                heirs[count] = heir
                count += 1
            group[h] = at
    return count


@kernel
def send_all(out: Output, numbers: I64, entry: Int, hits: I64, n: Int, points: I64) -> Output:
    """Writes the sends of a change with some hits, at least one, at these points."""
    # Every hit is in at most two groups, and every group has no more boxes than hits.
    out = with_room_for(out, 2 * n)
    rows = np.empty(n, np.int32)
    losers, end = 0, n
    for h in range(n):
        if hits[h, HIT_KIND] == LOSES:
            rows[losers] = h
            losers += 1
        else:
            end -= 1
            rows[end] = h
    if losers:
        add_send(out, entry, True, points, rows, 0, losers)
    if losers < n:
        add_send(out, entry, False, points, rows, losers, n)
    group, heirs = np.empty(n, np.int64), np.empty(n, np.int64)
    count = number_heirs(numbers, hits, n, group, heirs)
    ends = np.zeros(count + 1, np.int64)
    for h in range(n):
        if group[h] != NOBODY:
            ends[group[h] + 1] += 1
    for g in range(count):
        ends[g + 1] += ends[g]
    starts = ends.copy()
    for h in range(n):
        if group[h] != NOBODY:
            rows[ends[group[h]]] = h
            ends[group[h]] += 1
    for g in range(count):
        add_send(out, heirs[g], False, points, rows, starts[g], starts[g + 1])
    return out


@kernel
def change(
    k: Int,
    entries: Tree,
    points: Tree,
    known: I64,
    numbers: I64,
    of: I64,
    changed: I64,
    xs: I64,
    ys: I64,
    ties: I64,
    is_present: U8,
    send_starts: I64,
) -> tuple[Int, Int, Tree, Output]:
    """Makes changes one after the other; the sends of change i are from send_starts[i] on.

    known [entries, dims + 3] has the set plus 1 of every entry, or 0, and its numbers; `numbers` [entries] is scratch.
    Returns DONE or what is wrong, the number of the change that it is wrong with, the tree of entries, and the sends.
    """
    dims = xs.shape[1]
    key = 1 + dims
    old, new = np.zeros(dims + 4, np.int64), np.zeros(dims + 4, np.int64)
    out = new_output(2 * len(of) + 64, 2 * dims)
    hits = np.empty((4 * BLOCK_MAX, HIT_FIELDS), np.int64)
    boxes = np.empty((0, 2 * dims), np.int64)
    p = tree_pointers(points)
    for i in range(len(of)):
        entry, had, has = changed[i], known[changed[i], SET] > 0, is_present[i] != 0
        if had and known[entry, SET] != of[i] + 1:
            return BAD_ENTRY, i, entries, out
        old[: key + 2] = known[entry]
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
        hits, n = meet(Course(p, key, pointer(old), pointer(new), had, has), hits)
        if not (had and has and (old[:-1] == new[:-1]).all()):
            if had:
                leaf, place = find(e, pointer(old))
                take(e, leaf, place)
            if has:
                entries = put(entries, pointer(new))
        known[entry] = new[: key + 2]
        known[entry, SET] = of[i] + 1 if has else 0
        if n:
            if n > len(boxes):
                boxes = np.empty((2 * n, 2 * dims), np.int64)
            search = Search(tree_pointers(entries), pointer(known), pointer(boxes))
            settle(p, search, k, old, new, entry, hits, n, boxes)
            for h in range(n):
                if h == 0 or hits[h, HIT_LEAF] != hits[h - 1, HIT_LEAF]:
                    bound_greatest(p, hits[h, HIT_LEAF])
            out = send_all(out, numbers, entry, hits, n, boxes)
        send_starts[i + 1] = out.ends[0]
    return DONE, len(of), entries, out


@kernel
def add(k: Int, entries: Tree, points: Tree, known: I64, of: I64, boxes: I64) -> Tree:
    """The tree of points with some more. Points with the same box of the same set are one point, which is counted."""
    y = 1 + boxes.shape[1]
    item, heap = np.zeros(y + 4, np.int64), np.empty((k, HEAP_FIELDS), np.int64)
    s = Search(tree_pointers(entries), pointer(known), pointer(boxes))
    for i in range(len(of)):
        item[SET] = of[i]
        item[1:y] = boxes[i]
        leaf, place = find(tree_pointers(points), pointer(item))
        if place != NOBODY:
            points.pool[points.links[leaf, BLOCK], y + 3, place] += 1
            continue
        held = best_of(s, of[i], i * (y - 1), heap)
        item[y], item[y + 1] = (heap[0, HEAP_Y], heap[0, HEAP_TIE]) if held == k else (INT64_MAX, INT64_MAX)
        item[y + 2], item[y + 3] = held, 1
        points = put(points, pointer(item))
    return points


@kernel
def remove(points: Tree, of: I64, boxes: I64) -> Int:
    """Removes points, each of them once; returns how many there were, which is the number of the first that is not there."""
    y = 1 + boxes.shape[1]
    item = np.zeros(y + 4, np.int64)
    p = tree_pointers(points)
    for i in range(len(of)):
        item[SET] = of[i]
        item[1:y] = boxes[i]
        leaf, place = find(p, pointer(item))
        if place == NOBODY:
            return i
        block = points.links[leaf, BLOCK]
        points.pool[block, y + 3, place] -= 1
        if points.pool[block, y + 3, place] == 0:
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
def retie(k: Int, entries: Tree, points: Tree, known: I64, changed: I64, ties: I64, boxes: I64) -> tuple[Tree, Tree]:
    """Gives entries other ties, which leave those of every set in the same order; `boxes` are those of `items_of(points)`."""
    holders = items_of(points, True)
    key, y = known.shape[1] - 2, 1 + boxes.shape[1]
    s = Search(tree_pointers(entries), pointer(known), pointer(boxes))
    # Whose key is a point's greatest is found by the old ties, before any has a new one.
    last = np.empty(len(holders), np.int64)
    for i in range(len(holders)):
        last[i] = NOBODY
        if holders[i, y + 2] == k:
            of, last_y, last_tie = holders[i, SET], holders[i, y], holders[i, y + 1]
            _, _, last[i] = next_key(s, of, i * (y - 1), UPWARDS, last_y, last_tie, last_y, last_tie, NOBODY, NOBODY)
    items = items_of(entries, True)
    for i in range(len(changed)):
        known[changed[i], key + 1] = ties[i]
    for i in range(len(items)):
        items[i, key + 1] = known[items[i, key + 2], key + 1]
    for i in range(len(holders)):
        if last[i] != NOBODY:
            holders[i, y + 1] = known[last[i], key + 1]
    if len(items):
        entries = rebuilt(entries, entries.head[ROOT], items)
    if len(holders):
        points = rebuilt(points, points.head[ROOT], holders)
    return entries, points
