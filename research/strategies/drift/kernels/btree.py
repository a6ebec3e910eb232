"""A B-tree of (key, member) in ascending order: leaves of up to 128 entries, and above them one sorted list of leaves.

For the baselines that keep what moves in an index. Kernels get the tree as the tuple `BTree`; `room_for` comes before changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kernels.arrays import F64, I64, Float, Int
from tidings.kernels.jit import kernel

LEAF_MAX = 128
SPARSE = LEAF_MAX // 4
"""Leaves of so few entries are joined with a neighbour, if both then fill half of one at most."""
LEAVES, FREE, HEAD_FIELDS = 0, 1, 2
"""Fields of `head`: leaves in use, and free ones, whose numbers are at the end of `order`."""


class BTree(NamedTuple):
    head: I64
    order: I64
    """[leaves]: numbers of the leaves in the order of their keys; then those that are free."""
    size: I64
    """[leaves]"""
    key: F64
    """[leaves, LEAF_MAX]"""
    member: I64
    """[leaves, LEAF_MAX]"""


def empty_tree() -> BTree:
    head = np.zeros(HEAD_FIELDS, np.int64)
    head[FREE] = 8
    return BTree(head, np.arange(8), np.zeros(8, np.int64), np.empty((8, LEAF_MAX)), np.empty((8, LEAF_MAX), np.int64))


def room_for(tree: BTree, entries: int) -> BTree:
    """The tree with so many free leaves that this number of entries, of which all may move, does not need more."""
    leaves, free = tree.head.tolist()
    wanted = 2 * leaves + 8 * (entries // LEAF_MAX) + 8
    if free >= wanted:
        return tree
    more = 2 * wanted
    tree.head[FREE] += more
    return BTree(
        tree.head,
        np.append(tree.order, np.arange(len(tree.order), len(tree.order) + more)),
        np.append(tree.size, np.zeros(more, np.int64)),
        np.concatenate([tree.key, np.empty((more, LEAF_MAX))]),
        np.concatenate([tree.member, np.empty((more, LEAF_MAX), np.int64)]),
    )


def entries_of(tree: BTree) -> list[tuple[float, int]]:
    """All entries, in order."""
    return [
        (float(tree.key[leaf, i]), int(tree.member[leaf, i]))
        for leaf in tree.order[: tree.head[LEAVES]].tolist()
        for i in range(int(tree.size[leaf]))
    ]


@kernel
def find(t: BTree, key: Float, member: Int) -> tuple[Int, Int]:
    """Where the first entry from (key, member) on is, or would be inserted: place of its leaf in the order, and place in it."""
    lo, hi = np.int64(0), t.head[LEAVES] - 1
    while lo < hi:
        middle = (lo + hi + 1) >> 1
        leaf = t.order[middle]
        if t.key[leaf, 0] < key or (t.key[leaf, 0] == key and t.member[leaf, 0] < member):
            lo = middle
        else:
            hi = middle - 1
    at = lo
    if t.head[LEAVES] == 0:
        return at, np.int64(0)
    leaf = t.order[at]
    lo, hi = np.int64(0), t.size[leaf]
    while lo < hi:
        middle = (lo + hi) >> 1
        if t.key[leaf, middle] < key or (t.key[leaf, middle] == key and t.member[leaf, middle] < member):
            lo = middle + 1
        else:
            hi = middle
    return at, lo


@kernel
def new_leaf(t: BTree, at: Int) -> Int:
    """Puts an empty leaf at a place of the order."""
    leaves = t.head[LEAVES]
    leaf = t.order[leaves]
    for i in range(leaves, at, -1):
        t.order[i] = t.order[i - 1]
    t.order[at] = leaf
    t.size[leaf] = 0
    t.head[LEAVES] += 1
    t.head[FREE] -= 1
    return leaf


@kernel
def free_leaves(t: BTree, at: Int, stop: Int) -> None:
    """Takes leaves out of the order."""
    leaves, count = t.head[LEAVES], stop - at
    gone = t.order[at:stop].copy()
    for i in range(stop, leaves):
        t.order[i - count] = t.order[i]
    t.order[leaves - count : leaves] = gone
    t.head[LEAVES] -= count
    t.head[FREE] += count


@kernel
def shift(t: BTree, leaf: Int, start: Int, by: Int) -> None:
    """Moves the entries of a leaf from a place on."""
    if by > 0:
        for i in range(t.size[leaf] - 1, start - 1, -1):
            t.key[leaf, i + by] = t.key[leaf, i]
            t.member[leaf, i + by] = t.member[leaf, i]
    else:
        for i in range(start, t.size[leaf]):
            t.key[leaf, i + by] = t.key[leaf, i]
            t.member[leaf, i + by] = t.member[leaf, i]
    t.size[leaf] += by


@kernel
def split(t: BTree, at: Int, place: Int) -> None:
    """Moves the entries of a leaf from a place on to a new leaf behind it."""
    right = new_leaf(t, at + 1)
    leaf = t.order[at]
    for i in range(place, t.size[leaf]):
        t.key[right, i - place] = t.key[leaf, i]
        t.member[right, i - place] = t.member[leaf, i]
    t.size[right] = t.size[leaf] - place
    t.size[leaf] = place


@kernel
def insert(t: BTree, key: Float, member: Int) -> None:
    at, place = find(t, key, member)
    if t.head[LEAVES] == 0:
        new_leaf(t, np.int64(0))
    leaf = t.order[at]
    if t.size[leaf] == LEAF_MAX:
        split(t, at, np.int64(LEAF_MAX // 2))
        if place > LEAF_MAX // 2:
            leaf = t.order[at + 1]
            place -= LEAF_MAX // 2
    shift(t, leaf, place, np.int64(1))
    t.key[leaf, place] = key
    t.member[leaf, place] = member


@kernel
def tidy(t: BTree, at: Int) -> None:
    """Frees the leaf at a place of the order if it is empty, and joins it with the next if both are small."""
    if not 0 <= at < t.head[LEAVES]:
        return
    leaf = t.order[at]
    if t.size[leaf] == 0:
        free_leaves(t, at, at + 1)
    elif t.size[leaf] <= SPARSE and at + 1 < t.head[LEAVES]:
        right = t.order[at + 1]
        if t.size[leaf] + t.size[right] <= LEAF_MAX // 2:
            for i in range(t.size[right]):
                t.key[leaf, t.size[leaf] + i] = t.key[right, i]
                t.member[leaf, t.size[leaf] + i] = t.member[right, i]
            t.size[leaf] += t.size[right]
            free_leaves(t, at + 1, at + 2)


@kernel
def next_entry(t: BTree, at: Int, place: Int) -> tuple[Int, Int]:
    """The place itself, or the beginning of the next leaf if it is behind the end of its own."""
    if at < t.head[LEAVES] and place >= t.size[t.order[at]]:
        return at + 1, np.int64(0)
    return at, place


@kernel
def delete(t: BTree, key: Float, member: Int) -> bool:
    """Takes out an entry; False if it is not there."""
    at, place = find(t, key, member)
    at, place = next_entry(t, at, place)
    if at >= t.head[LEAVES]:
        return False
    leaf = t.order[at]
    if t.key[leaf, place] != key or t.member[leaf, place] != member:
        return False
    shift(t, leaf, place + 1, np.int64(-1))
    tidy(t, at)
    return True


@kernel
def take_between(t: BTree, low: Float, high: Float, taken: I64) -> Int:
    """Takes out all entries with low <= key <= high; puts their members into `taken`, and returns their number."""
    at, place = find(t, low, np.int64(-1))
    at, place = next_entry(t, at, place)
    first, count = at, 0
    while at < t.head[LEAVES]:
        leaf = t.order[at]
        stop = place
        while stop < t.size[leaf] and t.key[leaf, stop] <= high:
            taken[count] = t.member[leaf, stop]
            count += 1
            stop += 1
        is_last = stop < t.size[leaf]
        if stop > place:
            shift(t, leaf, stop, place - stop)
        if is_last:
            break
        at += 1
        place = np.int64(0)
    # All leaves between the first and the last are empty now.
    start = first if first < t.head[LEAVES] and t.size[t.order[first]] == 0 else first + 1
    stop = max(start, min(at, t.head[LEAVES]))
    free_leaves(t, start, stop)
    tidy(t, start)
    tidy(t, start - 1)
    return count


@kernel
def put_run(t: BTree, key: Float, members: I64, count: Int) -> None:
    """Inserts members with one key as a run. Entries with equal keys are in no order then, and `delete` cannot find them."""
    if count == 0:
        return
    at, place = find(t, key, members[0])
    if t.head[LEAVES]:
        split(t, at, place)
        at += 1
    for start in range(0, count, LEAF_MAX):
        leaf = new_leaf(t, at)
        t.size[leaf] = min(LEAF_MAX, count - start)
        t.key[leaf, : t.size[leaf]] = key
        t.member[leaf, : t.size[leaf]] = members[start : start + t.size[leaf]]
        at += 1
    for i in range(at, at - 3 - count // LEAF_MAX, -1):
        tidy(t, i)
