"""Whole sets: filling one in one go, writing all down, forgetting one; and other ties for entries."""

from __future__ import annotations

import numpy as np

from tidings.kernels.extents import class_for
from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BAD_ENTRY,
    BLOCK_MAX,
    BLOCK_WIDTH,
    BLOCKS,
    DONE,
    ENTRY,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    LIST_WIDTH,
    LISTS,
    NODE_MAX,
    OWNER,
    PRESENT,
    PROGRESS,
    SIZE,
    TIE,
    Int,
    Pointers,
    X,
    Y,
    child_of,
    extent_free,
    extent_new,
    parts_of,
    pointers,
    root_of,
)
from tidings.kernels.rankings_blocks import block_at, describe, refresh, seek
from tidings.kernels.rankings_insert import set_root

BLOCK_FILL = 3 * BLOCK_MAX // 4
"""Entries of a block, and blocks of a node, when they are made: some are left free for those to come."""
NODE_FILL = 3 * NODE_MAX // 4


def words_for(sizes: I64) -> int:
    """The memory that sets of such sizes take at most when they are filled."""
    blocks = -(-sizes // BLOCK_FILL)
    entries = -(-sizes // np.maximum(blocks, 1))
    room = 1 << np.ceil(np.log2(np.maximum(entries, 1))).astype(np.int64)
    # A list takes less than double its size; there are nodes, and then roots, which are shorter by far.
    return int((blocks * room).sum()) * BLOCK_WIDTH + int((3 * blocks + 4).sum()) * LIST_WIDTH


@kernel
def fill_set(s: Pointers, of: Int, start: Int, end: Int, added: I64, xs: I64, ys: I64, ties: I64) -> None:
    """Give a set without entries those from start to end, which are in the order of their positions."""
    n = end - start
    blocks = -(-n // BLOCK_FILL)
    nodes = -(-blocks // NODE_FILL)
    kr = class_for(nodes)
    root = extent_new(s, LISTS, kr)
    for ni in range(nodes):
        first, last = ni * blocks // nodes, (ni + 1) * blocks // nodes
        kn = class_for(last - first)
        node = extent_new(s, LISTS, kn)
        for bi in range(first, last):
            lo, hi = start + bi * n // blocks, start + (bi + 1) * n // blocks
            k = class_for(hi - lo)
            block = extent_new(s, BLOCKS, k)
            for i in range(hi - lo):
                s.m[block + (X << k) + i] = xs[lo + i]
                s.m[block + (TIE << k) + i] = ties[lo + i]
                s.m[block + (Y << k) + i] = ys[lo + i]
                s.m[block + (ENTRY << k) + i] = added[lo + i]
            describe(s, node, kn, bi - first, BLOCKS, block, hi - lo, k)
        describe(s, root, kr, ni, LISTS, node, last - first, kn)
    set_root(s, of, root, nodes, kr)


@kernel
def fill(
    head: I64,
    sets: I64,
    entries: I64,
    m: I64,
    work: I64,
    of: I64,
    starts: I64,
    added: I64,
    xs: I64,
    ys: I64,
    ties: I64,
) -> Int:
    """Give each of some sets without entries those from starts[i] to starts[i + 1]; DONE, or BAD_ENTRY: nothing done."""
    s = pointers(head, sets, entries, m, work)
    for i in range(added.shape[0]):
        if entries[added[i], OWNER]:
            for j in range(i):
                entries[added[j], OWNER] = 0
            head[PROGRESS] = i
            return BAD_ENTRY
        entries[added[i], OWNER] = -1
    for i in range(of.shape[0]):
        if starts[i] == starts[i + 1]:
            continue
        fill_set(s, of[i], starts[i], starts[i + 1], added, xs, ys, ties)
        sets[of[i], SIZE] = starts[i + 1] - starts[i]
        head[PRESENT] += starts[i + 1] - starts[i]
        for j in range(starts[i], starts[i + 1]):
            at = added[j]
            entries[at, OWNER], entries[at, ENTRY_X] = of[i] + 1, xs[j]
            entries[at, ENTRY_Y], entries[at, ENTRY_TIE] = ys[j], ties[j]
    return DONE


@kernel
def list_entries(head: I64, sets: I64, entries: I64, m: I64, work: I64, first: Int, last: Int) -> tuple[I64, I64]:
    """The entries of the sets from first to last, in the order of their positions, and where those of each set start."""
    s = pointers(head, sets, entries, m, work)
    starts = np.zeros(last - first + 1, np.int64)
    for of in range(first, last):
        starts[of - first + 1] = starts[of - first] + max(sets[of, SIZE], 0)
    listed = np.empty(starts[-1], np.int64)
    at = 0
    for of in range(first, last):
        root, nodes, kr = root_of(s, of)
        for ni in range(nodes):
            node, blocks, kn = child_of(s, root, kr, ni)
            for bi in range(blocks):
                block, size, k = child_of(s, node, kn, bi)
                for i in range(size):
                    listed[at] = m[block + (ENTRY << k) + i]
                    at += 1
    return starts, listed


@kernel
def clear(head: I64, sets: I64, entries: I64, m: I64, work: I64, of: Int) -> None:
    """Remove all entries of a set, and tell nobody."""
    s = pointers(head, sets, entries, m, work)
    root, nodes, kr = root_of(s, of)
    for ni in range(nodes):
        node, blocks, kn = child_of(s, root, kr, ni)
        for bi in range(blocks):
            block, size, k = child_of(s, node, kn, bi)
            for i in range(size):
                entries[m[block + (ENTRY << k) + i], OWNER] = 0
            extent_free(s, BLOCKS, block, k)
        extent_free(s, LISTS, node, kn)
    if nodes:
        extent_free(s, LISTS, root, kr)
    head[PRESENT] -= sets[of, SIZE]
    sets[of, SIZE] = 0
    set_root(s, of, 0, 0, 0)


@kernel
def retie(head: I64, sets: I64, entries: I64, m: I64, work: I64, of: I64, changed: I64, ties: I64) -> Int:
    """Give entries other ties, which leave all in the same order; DONE, or BAD_ENTRY: then nothing is done."""
    s = pointers(head, sets, entries, m, work)
    for i in range(changed.shape[0]):
        if entries[changed[i], OWNER] != of[i] + 1:
            head[PROGRESS] = i
            return BAD_ENTRY
    # All are looked up by the old ties before any has a new one.
    places = np.empty(changed.shape[0], np.int64)
    for i in range(changed.shape[0]):
        places[i] = seek(s, of[i], entries[changed[i], ENTRY_X], entries[changed[i], ENTRY_TIE])
    for i in range(changed.shape[0]):
        block, _, k = block_at(s, of[i], places[i])
        m[block + (TIE << k) + parts_of(places[i])[2]] = ties[i]
        entries[changed[i], ENTRY_TIE] = ties[i]
    for i in range(changed.shape[0]):
        ni, bi, _ = parts_of(places[i])
        refresh(s, of[i], ni, bi)
    return DONE
