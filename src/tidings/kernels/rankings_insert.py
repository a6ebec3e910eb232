"""Inserting and removing entries.

A full block is cut in two before an entry is inserted, a full node before a block is; small neighbours are joined.
"""

from __future__ import annotations

from tidings.kernels.extents import class_for, copy_span
from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BLOCK_MAX,
    BLOCKS,
    CHILD,
    ENTRY,
    INT64_MAX,
    LISTS,
    NODE_MAX,
    ROOT,
    ROOT_SHAPE,
    SET_FIELDS,
    SHAPE,
    SIZE,
    SOME_BLOCK,
    TIE,
    Int,
    Pointers,
    X,
    Y,
    child_of,
    extent_fit,
    extent_free,
    extent_new,
    parts_of,
    place_of,
    root_of,
    width_of,
)
from tidings.kernels.rankings_blocks import block_at, describe, refresh, relist, seek

INSERT_BLOCKS = 8 * BLOCK_MAX
"""Room, in entries of blocks, that a change may take; and in those of lists, beside four times the size of the root."""
INSERT_LISTS = 8 * NODE_MAX


@kernel
def set_root(s: Pointers, of: Int, root: Int, size: Int, k: Int) -> None:
    """Tell a set where its root is."""
    s.sets[of * SET_FIELDS + ROOT] = root
    s.sets[of * SET_FIELDS + ROOT_SHAPE] = size << 8 | k


@kernel
def opened(s: Pointers, sort: Int, offset: Int, size: Int, k: Int, at: Int) -> tuple[Int, Int]:
    """Offset and class of the extent after one entry is made room for."""
    offset, k = extent_fit(s, sort, offset, k, size, size + 1)
    copy_span(s.m, width_of(sort), offset, k, at, offset, k, at + 1, size - at)
    return offset, k


@kernel
def closed(s: Pointers, sort: Int, offset: Int, size: Int, k: Int, at: Int) -> tuple[Int, Int]:
    """Offset and class of the extent after one of several entries is taken out."""
    copy_span(s.m, width_of(sort), offset, k, at + 1, offset, k, at, size - at - 1)
    offset, k = extent_fit(s, sort, offset, k, size - 1, size - 1)
    return offset, k


@kernel
def second_half(s: Pointers, sort: Int, offset: Int, size: Int, k: Int) -> tuple[Int, Int]:
    """Offset and class of a new extent with the second half of another, which is not changed."""
    rest = size - size // 2
    fitting = class_for(rest)
    made = extent_new(s, sort, fitting)
    copy_span(s.m, width_of(sort), offset, k, size // 2, made, fitting, 0, rest)
    return made, fitting


@kernel
def cut_node(s: Pointers, of: Int, ni: Int) -> None:
    """Make two nodes of one."""
    root, nodes, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    made, km = second_half(s, LISTS, node, blocks, kn)
    half = blocks // 2
    node, kn = extent_fit(s, LISTS, node, kn, half, half)
    root, kr = opened(s, LISTS, root, nodes, kr, ni + 1)
    set_root(s, of, root, nodes + 1, kr)
    describe(s, root, kr, ni, LISTS, node, half, kn)
    describe(s, root, kr, ni + 1, LISTS, made, blocks - half, km)


@kernel
def cut_block(s: Pointers, of: Int, ni: Int, bi: Int) -> None:
    """Make two blocks of one, in a node that is not full."""
    root, _, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    block, size, k = child_of(s, node, kn, bi)
    made, km = second_half(s, BLOCKS, block, size, k)
    half = size // 2
    smaller = class_for(half)
    if smaller < k:
        # Not by extent_fit, which is content with four times the room.
        moved = extent_new(s, BLOCKS, smaller)
        copy_span(s.m, width_of(BLOCKS), block, k, 0, moved, smaller, 0, half)
        extent_free(s, BLOCKS, block, k)
        block, k = moved, smaller
    node, kn = opened(s, LISTS, node, blocks, kn, bi + 1)
    describe(s, node, kn, bi, BLOCKS, block, half, k)
    describe(s, node, kn, bi + 1, BLOCKS, made, size - half, km)
    describe(s, root, kr, ni, LISTS, node, blocks + 1, kn)


@kernel
def start(s: Pointers, of: Int) -> None:
    """Give a set without entries a root, a node and a block, for one entry that is written next."""
    block, node, root = extent_new(s, BLOCKS, 0), extent_new(s, LISTS, 0), extent_new(s, LISTS, 0)
    set_root(s, of, root, 1, 0)
    s.m[root + CHILD], s.m[root + SHAPE] = node, 1 << 8
    s.m[node + CHILD], s.m[node + SHAPE] = block, 1 << 8


@kernel
def put_at(s: Pointers, of: Int, ni: Int, bi: Int, i: Int, x: Int, y: Int, tie: Int, entry: Int) -> None:
    """Write an entry to where there is room for it; the lists are not told."""
    block, _, k = block_at(s, of, place_of(ni, bi, i))
    s.m[block + (X << k) + i] = x
    s.m[block + (TIE << k) + i] = tie
    s.m[block + (Y << k) + i] = y
    s.m[block + (ENTRY << k) + i] = entry


@kernel
def put(s: Pointers, of: Int, place: Int, x: Int, y: Int, tie: Int, entry: Int) -> None:
    """Insert an entry behind the place of the last one before it, NOWHERE if it is the first."""
    s.sets[of * SET_FIELDS + SIZE] += 1
    if root_of(s, of)[1] == 0:
        start(s, of)
        put_at(s, of, 0, 0, 0, x, y, tie, entry)
        refresh(s, of, 0, 0)
        return
    while True:
        ni, bi, i = parts_of(place) if place >= 0 else (0, 0, -1)
        root, _, kr = root_of(s, of)
        node, blocks, kn = child_of(s, root, kr, ni)
        block, size, k = child_of(s, node, kn, bi)
        if size < BLOCK_MAX:
            break
        if blocks == NODE_MAX:
            cut_node(s, of, ni)
        else:
            cut_block(s, of, ni, bi)
        place = seek(s, of, x, tie)
    block, k = opened(s, BLOCKS, block, size, k, i + 1)
    s.m[node + (CHILD << kn) + bi] = block
    s.m[node + (SHAPE << kn) + bi] = (size + 1) << 8 | k
    put_at(s, of, ni, bi, i + 1, x, y, tie, entry)
    if i < 0:
        refresh(s, of, ni, bi)
    elif relist(s, node, kn, bi, BLOCKS, INT64_MAX, y, tie):
        relist(s, root, kr, ni, LISTS, INT64_MAX, y, tie)


@kernel
def join(s: Pointers, sort: Int, to: Int, kt: Int, at: Int) -> None:
    """Append to a block or node what the next one in the list has, and free that; the list is not told."""
    offset, size, k = child_of(s, to, kt, at)
    other, added, ko = child_of(s, to, kt, at + 1)
    offset, k = extent_fit(s, sort, offset, k, size, size + added)
    copy_span(s.m, width_of(sort), other, ko, 0, offset, k, size, added)
    extent_free(s, sort, other, ko)
    describe(s, to, kt, at, sort, offset, size + added, k)


@kernel
def joint(s: Pointers, to: Int, size: Int, kt: Int, at: Int, most: Int) -> Int:
    """Number of the first of two neighbours in a list, one of them `at`, that together have few entries; -1 if not so."""
    held = child_of(s, to, kt, at)[1]
    if at + 1 < size and held + child_of(s, to, kt, at + 1)[1] <= most:
        return at
    if at > 0 and held + child_of(s, to, kt, at - 1)[1] <= most:
        return at - 1
    return -1


@kernel
def take(s: Pointers, of: Int, place: Int) -> None:
    """Remove the entry at a place."""
    s.sets[of * SET_FIELDS + SIZE] -= 1
    ni, bi, i = parts_of(place)
    root, nodes, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    block, size, k = child_of(s, node, kn, bi)
    if size > 1:
        is_lowest = s.m[block + (Y << k) + i] == s.m[root + (Y << kr) + ni]
        block, k = closed(s, BLOCKS, block, size, k, i)
        describe(s, node, kn, bi, BLOCKS, block, size - 1, k)
        drop = joint(s, node, blocks, kn, bi, BLOCK_MAX // 2)
        if drop < 0:
            if is_lowest or place & SOME_BLOCK == 0:
                describe(s, root, kr, ni, LISTS, node, blocks, kn)
            return
        join(s, BLOCKS, node, kn, drop)
        drop += 1
    else:
        extent_free(s, BLOCKS, block, k)
        drop = bi
    if blocks > 1:
        node, kn = closed(s, LISTS, node, blocks, kn, drop)
        describe(s, root, kr, ni, LISTS, node, blocks - 1, kn)
        drop = joint(s, root, nodes, kr, ni, NODE_MAX // 2)
        if drop < 0:
            return
        join(s, LISTS, root, kr, drop)
        drop += 1
    else:
        extent_free(s, LISTS, node, kn)
        drop = ni
    if nodes > 1:
        root, kr = closed(s, LISTS, root, nodes, kr, drop)
        set_root(s, of, root, nodes - 1, kr)
    else:
        extent_free(s, LISTS, root, kr)
        set_root(s, of, 0, 0, 0)
