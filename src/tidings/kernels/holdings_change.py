"""Changes of entries in batches: whom each concerns, what they hold then, and what has to be told."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import pointer
from tidings.kernels.holdings_arrays import (
    BLOCK,
    BLOCK_MAX,
    I64,
    NOBODY,
    SET,
    U8,
    WIDTH,
    Int,
    Tree,
    find,
    walk_in,
)
from tidings.kernels.holdings_bounds import bound_greatest
from tidings.kernels.holdings_meet import HIT_FIELDS, HIT_LEAF, Course, meet
from tidings.kernels.holdings_search import search_in
from tidings.kernels.holdings_settle import settle
from tidings.kernels.holdings_tell import Output, new_output, tell
from tidings.kernels.holdings_update import put, take
from tidings.kernels.jit import kernel

# What is wrong with a change: nothing; the entry is in another set; another has its place and key.
DONE, BAD_ENTRY, BAD_TIE = range(3)


@kernel
def fault_of(t: Tree, known: I64, of: Int, entry: Int, new: I64, has: bool) -> Int:
    """What is wrong with a change."""
    if known[entry, SET] and known[entry, SET] != of + 1:
        return BAD_ENTRY
    if has:
        leaf, place = find(t, new)
        if place != NOBODY and t.pool[t.links[leaf, BLOCK], t.head[WIDTH] - 1, place] != entry:
            return BAD_TIE
    return DONE


@kernel
def replace(t: Tree, old: I64, new: I64, had: bool, has: bool) -> Tree:
    """The tree of entries with an item for another."""
    if had and has and (old[:-1] == new[:-1]).all():
        return t
    if had:
        leaf, place = find(t, old)
        take(t, leaf, place)
    return put(t, new) if has else t


@kernel
def bound_hit(points: Tree, hits: I64, n: Int) -> None:
    """Find the greatest keys of the leaves that were hit, and of nodes above."""
    for h in range(n):
        if h == 0 or hits[h, HIT_LEAF] != hits[h - 1, HIT_LEAF]:
            bound_greatest(points, hits[h, HIT_LEAF])


@kernel
def change(
    k: Int,
    entries: Tree,
    points: Tree,
    known: I64,
    told_as: I64,
    of: I64,
    changed: I64,
    xs: I64,
    ys: I64,
    ties: I64,
    is_present: U8,
    send_starts: I64,
    stack: I64,
) -> tuple[Int, Int, Tree, Output]:
    """Make changes one after the other; the sends of change i are from send_starts[i] on.

    known [entries, dims + 3] has the set plus 1 of every entry, or 0, and its numbers; told_as [entries] and stack are
    scratch. Returns DONE or what is wrong, the number of the change that it is wrong with, the tree of entries, the sends.
    """
    dims = xs.shape[1]
    key = 1 + dims
    old, new = np.zeros(dims + 4, np.int64), np.zeros(dims + 4, np.int64)
    out = new_output(2 * len(of) + 64, 2 * dims)
    hits = np.empty((4 * BLOCK_MAX, HIT_FIELDS), np.int64)
    boxes = np.empty((0, 2 * dims), np.int64)
    for i in range(len(of)):
        entry, had, has = changed[i], known[changed[i], SET] > 0, is_present[i] != 0
        old[: key + 2] = known[entry]
        old[SET] = new[SET] = of[i]
        new[1:key] = xs[i]
        new[key], new[key + 1], new[key + 2] = ys[i], ties[i], entry
        status = fault_of(entries, known, of[i], entry, new, has)
        if status != DONE:
            return status, i, entries, out
        course = Course(walk_in(points, stack), key, pointer(old), pointer(new), had, has)
        hits, n = meet(course, hits)
        entries = replace(entries, old, new, had, has)
        known[entry] = new[: key + 2]
        known[entry, SET] = of[i] + 1 if has else 0
        if n:
            if n > len(boxes):
                boxes = np.empty((2 * n, 2 * dims), np.int64)
            settle(points, search_in(entries, known, boxes, stack), k, old, new, entry, hits, n, boxes)
            bound_hit(points, hits, n)
            out = tell(out, told_as, entry, hits, n, boxes)
        send_starts[i + 1] = out.ends[0]
    return DONE, len(of), entries, out
