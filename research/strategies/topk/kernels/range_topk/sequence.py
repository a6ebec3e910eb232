"""The sorted sequence of a set's entries: finding a position, inserting, removing, changing keys, and scans by key.

A full block is split before an entry is inserted, a full node before a block is; small neighbours are merged. A scan looks
at entries one by one to the end of a block, at blocks to the end of a node, at nodes, and then goes down again. Few are
looked at, as the lowest key below each block and node is known.

    keys     7 9 | 8 6 9 | 9 7 8 | 3 9    from the left 9 to the next below 5: [9], block 6, block 7, and [3]
                               ^ found     the lowest in between is 6, somewhere in the second block
"""

from __future__ import annotations

from typing import Any

from research.strategies.topk.kernels.range_topk.layout import (
    BLOCK_MAX,
    BLOCK_SHIFT,
    BLOCK_WIDTH,
    CHILD,
    ENTRY,
    FREE_BLOCKS,
    FREE_LISTS,
    INT64_MAX,
    LIST_WIDTH,
    LOW_TIE,
    NODE_MAX,
    NODE_SHIFT,
    NOWHERE,
    ROOT,
    ROOT_SHAPE,
    SET_FIELDS,
    SHAPE,
    SIZE,
    SOME_BLOCK,
    SOMEWHERE,
    TIE,
    Int,
    Pointers,
    X,
    Y,
    block_at,
    child_of,
    parts_of,
    place_of,
    root_of,
)
from tidings.kernels import extents
from tidings.kernels.buddy import extent_fit, extent_free, extent_new
from tidings.kernels.extents import class_for, copy_span
from tidings.kernels.jit import kernel


@kernel
def has_room(s: Pointers, of: Int) -> bool:
    """Whether there is memory for one change of a set; if not, `head` says how much is wanted."""
    words = 8 * BLOCK_MAX * BLOCK_WIDTH + (8 * NODE_MAX + 4 * root_of(s, of)[1]) * LIST_WIDTH
    return extents.has_room(s.head, words)


@kernel
def last_up_to(s: Pointers, offset: Int, size: Int, k: Int, x: Int, tie: Int) -> Int:
    """Number of the last entry of an extent with a position up to (x, tie); -1 if there is none."""
    xs, ties = offset + (X << k), offset + (TIE << k)
    lo, hi = 0, size
    while lo < hi:
        middle = (lo + hi) >> 1
        other = s.m[xs + middle]
        if other < x or (other == x and s.m[ties + middle] <= tie):
            lo = middle + 1
        else:
            hi = middle
    return lo - 1


@kernel
def seek(s: Pointers, of: Int, x: Int, tie: Int) -> Int:
    """Place of the last entry of a set with a position up to (x, tie); NOWHERE if there is none."""
    root, nodes, kr = root_of(s, of)
    ni = last_up_to(s, root, nodes, kr, x, tie)
    if ni < 0:
        return NOWHERE
    node, blocks, kn = child_of(s, root, kr, ni)
    bi = last_up_to(s, node, blocks, kn, x, tie)
    block, size, k = child_of(s, node, kn, bi)
    return place_of(ni, bi, last_up_to(s, block, size, k, x, tie))


@kernel
def is_taken(s: Pointers, of: Int, place: Int, x: Int, tie: Int) -> bool:
    """Whether the entry at a place, if any, has just this position."""
    if place < 0:
        return False
    block, _, k = block_at(s, of, place)
    i = parts_of(place)[2]
    return bool(s.m[block + (X << k) + i] == x and s.m[block + (TIE << k) + i] == tie)


@kernel
def describe(s: Pointers, to: Int, kt: Int, at: Int, tie_field: Int, offset: Int, size: Int, k: Int) -> None:
    """Writes what entry `at` of a list says of a block (tie_field is TIE) or of a node (LOW_TIE)."""
    ys, ties = offset + (Y << k), offset + (tie_field << k)
    y = tie = INT64_MAX
    for i in range(size):
        if s.m[ys + i] <= y and (s.m[ys + i] < y or s.m[ties + i] < tie):
            y, tie = s.m[ys + i], s.m[ties + i]
    at += to
    s.m[at + (X << kt)] = s.m[offset + (X << k)]
    s.m[at + (TIE << kt)] = s.m[offset + (TIE << k)]
    s.m[at + (Y << kt)] = y
    s.m[at + (LOW_TIE << kt)] = tie
    s.m[at + (CHILD << kt)] = offset
    s.m[at + (SHAPE << kt)] = size << 8 | k


@kernel
def describe_block(s: Pointers, of: Int, ni: Int, bi: Int) -> None:
    """Describes a block that has changed, and its node."""
    root, _, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    block, size, k = child_of(s, node, kn, bi)
    describe(s, node, kn, bi, TIE, block, size, k)
    describe(s, root, kr, ni, LOW_TIE, node, blocks, kn)


@kernel
def update_lowest(s: Pointers, to: Int, kt: Int, at: Int, tie_field: Int, y_old: Int, y: Int, tie: Int) -> bool:
    """A key (y_old, tie) below entry `at` of a list is now (y, tie); False if the entry stays as it is."""
    low_y, low_tie = to + (Y << kt) + at, to + (LOW_TIE << kt) + at
    if y < s.m[low_y] or (y == s.m[low_y] and tie <= s.m[low_tie]):
        s.m[low_y], s.m[low_tie] = y, tie
        return True
    if y_old != s.m[low_y] or tie != s.m[low_tie]:
        return False
    offset, size, k = child_of(s, to, kt, at)
    describe(s, to, kt, at, tie_field, offset, size, k)
    return True


@kernel
def rekey(s: Pointers, of: Int, place: Int, y_old: Int, y: Int, tie: Int) -> None:
    """Changes the key of the entry at a place from (y_old, tie) to (y, tie)."""
    ni, bi, i = parts_of(place)
    root, _, kr = root_of(s, of)
    node, _, kn = child_of(s, root, kr, ni)
    block, _, k = child_of(s, node, kn, bi)
    s.m[block + (Y << k) + i] = y
    if update_lowest(s, node, kn, bi, TIE, y_old, y, tie):
        update_lowest(s, root, kr, ni, LOW_TIE, y_old, y, tie)


@kernel
def set_root(s: Pointers, of: Int, root: Int, size: Int, k: Int) -> None:
    """Writes where the root of a set is."""
    s.sets[of * SET_FIELDS + ROOT] = root
    s.sets[of * SET_FIELDS + ROOT_SHAPE] = size << 8 | k


@kernel
def opened(s: Pointers, free: Int, width: Int, offset: Int, size: Int, k: Int, at: Int) -> tuple[Int, Int]:
    """Offset and class of an extent after room was made for one more entry at a place."""
    offset, k = extent_fit(s.m, s.head, free, width, offset, k, size, size + 1)
    copy_span(s.m, width, offset, k, at, offset, k, at + 1, size - at)
    return offset, k


@kernel
def closed(s: Pointers, free: Int, width: Int, offset: Int, size: Int, k: Int, at: Int) -> tuple[Int, Int]:
    """Offset and class of an extent after one of several entries was taken out."""
    copy_span(s.m, width, offset, k, at + 1, offset, k, at, size - at - 1)
    return extent_fit(s.m, s.head, free, width, offset, k, size - 1, size - 1)


@kernel
def second_half(s: Pointers, free: Int, width: Int, offset: Int, size: Int, k: Int) -> tuple[Int, Int]:
    """Offset and class of a new extent with the second half of another one, which is not changed."""
    rest = size - size // 2
    fitting = class_for(rest)
    made = extent_new(s.m, s.head, free, width, fitting)
    copy_span(s.m, width, offset, k, size // 2, made, fitting, 0, rest)
    return made, fitting


@kernel
def split_node(s: Pointers, of: Int, ni: Int) -> None:
    """Makes two nodes of one."""
    root, nodes, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    made, km = second_half(s, FREE_LISTS, LIST_WIDTH, node, blocks, kn)
    half = blocks // 2
    node, kn = extent_fit(s.m, s.head, FREE_LISTS, LIST_WIDTH, node, kn, half, half)
    root, kr = opened(s, FREE_LISTS, LIST_WIDTH, root, nodes, kr, ni + 1)
    set_root(s, of, root, nodes + 1, kr)
    describe(s, root, kr, ni, LOW_TIE, node, half, kn)
    describe(s, root, kr, ni + 1, LOW_TIE, made, blocks - half, km)


@kernel
def split_block(s: Pointers, of: Int, ni: Int, bi: Int) -> None:
    """Makes two blocks of one, in a node that is not full."""
    root, _, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    block, size, k = child_of(s, node, kn, bi)
    made, km = second_half(s, FREE_BLOCKS, BLOCK_WIDTH, block, size, k)
    half = size // 2
    smaller = class_for(half)
    if smaller < k:
        # Not by extent_fit, which would leave the first half with twice the room.
        moved = extent_new(s.m, s.head, FREE_BLOCKS, BLOCK_WIDTH, smaller)
        copy_span(s.m, BLOCK_WIDTH, block, k, 0, moved, smaller, 0, half)
        extent_free(s.m, s.head, FREE_BLOCKS, block, k)
        block, k = moved, smaller
    node, kn = opened(s, FREE_LISTS, LIST_WIDTH, node, blocks, kn, bi + 1)
    describe(s, node, kn, bi, TIE, block, half, k)
    describe(s, node, kn, bi + 1, TIE, made, size - half, km)
    describe(s, root, kr, ni, LOW_TIE, node, blocks + 1, kn)


@kernel
def insert(s: Pointers, of: Int, place: Int, x: Int, y: Int, tie: Int, entry: Int) -> None:
    """Inserts an entry behind the place of the last one before it, NOWHERE if it is the first."""
    s.sets[of * SET_FIELDS + SIZE] += 1
    if root_of(s, of)[1] == 0:
        # A root, a node and a block for this entry alone.
        block = extent_new(s.m, s.head, FREE_BLOCKS, BLOCK_WIDTH, 0)
        node = extent_new(s.m, s.head, FREE_LISTS, LIST_WIDTH, 0)
        root = extent_new(s.m, s.head, FREE_LISTS, LIST_WIDTH, 0)
        set_root(s, of, root, 1, 0)
        s.m[root + CHILD], s.m[root + SHAPE] = node, 1 << 8
        s.m[node + CHILD], s.m[node + SHAPE] = block, 1 << 8
        ni, bi, i, k, kn, kr = 0, 0, -1, 0, 0, 0
    else:
        while True:
            ni, bi, i = parts_of(place) if place >= 0 else (0, 0, -1)
            root, _, kr = root_of(s, of)
            node, blocks, kn = child_of(s, root, kr, ni)
            block, size, k = child_of(s, node, kn, bi)
            if size < BLOCK_MAX:
                break
            if blocks == NODE_MAX:
                split_node(s, of, ni)
            else:
                split_block(s, of, ni, bi)
            place = seek(s, of, x, tie)
        block, k = opened(s, FREE_BLOCKS, BLOCK_WIDTH, block, size, k, i + 1)
        s.m[node + (CHILD << kn) + bi] = block
        s.m[node + (SHAPE << kn) + bi] = (size + 1) << 8 | k
    s.m[block + (X << k) + i + 1] = x
    s.m[block + (TIE << k) + i + 1] = tie
    s.m[block + (Y << k) + i + 1] = y
    s.m[block + (ENTRY << k) + i + 1] = entry
    if i < 0:
        describe_block(s, of, ni, bi)
    elif update_lowest(s, node, kn, bi, TIE, INT64_MAX, y, tie):
        update_lowest(s, root, kr, ni, LOW_TIE, INT64_MAX, y, tie)


@kernel
def merge_neighbours(
    s: Pointers, free: Int, width: Int, tie_field: Int, to: Int, size: Int, kt: Int, at: Int, most: Int
) -> Int:
    """Appends one of two neighbours of a list to the other, if they have few entries together; one of them is `at`.

    Returns the number of the neighbour that is now free and to be taken out of the list; -1 if they have too many.
    """
    held = child_of(s, to, kt, at)[1]
    if at + 1 == size or held + child_of(s, to, kt, at + 1)[1] > most:
        at -= 1
        if at < 0 or held + child_of(s, to, kt, at)[1] > most:
            return -1
    offset, first, k = child_of(s, to, kt, at)
    other, added, ko = child_of(s, to, kt, at + 1)
    offset, k = extent_fit(s.m, s.head, free, width, offset, k, first, first + added)
    copy_span(s.m, width, other, ko, 0, offset, k, first, added)
    extent_free(s.m, s.head, free, other, ko)
    describe(s, to, kt, at, tie_field, offset, first + added, k)
    return at + 1


@kernel
def remove(s: Pointers, of: Int, place: Int) -> None:
    """Removes the entry at a place."""
    s.sets[of * SET_FIELDS + SIZE] -= 1
    ni, bi, i = parts_of(place)
    root, nodes, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    block, size, k = child_of(s, node, kn, bi)
    if size > 1:
        is_lowest = s.m[block + (Y << k) + i] == s.m[root + (Y << kr) + ni]
        block, k = closed(s, FREE_BLOCKS, BLOCK_WIDTH, block, size, k, i)
        describe(s, node, kn, bi, TIE, block, size - 1, k)
        drop = merge_neighbours(s, FREE_BLOCKS, BLOCK_WIDTH, TIE, node, blocks, kn, bi, BLOCK_MAX // 2)
        if drop < 0:
            if is_lowest or place & SOME_BLOCK == 0:
                describe(s, root, kr, ni, LOW_TIE, node, blocks, kn)
            return
    else:
        extent_free(s.m, s.head, FREE_BLOCKS, block, k)
        drop = bi
    if blocks > 1:
        node, kn = closed(s, FREE_LISTS, LIST_WIDTH, node, blocks, kn, drop)
        describe(s, root, kr, ni, LOW_TIE, node, blocks - 1, kn)
        drop = merge_neighbours(s, FREE_LISTS, LIST_WIDTH, LOW_TIE, root, nodes, kr, ni, NODE_MAX // 2)
        if drop < 0:
            return
    else:
        extent_free(s.m, s.head, FREE_LISTS, node, kn)
        drop = ni
    if nodes > 1:
        root, kr = closed(s, FREE_LISTS, LIST_WIDTH, root, nodes, kr, drop)
        set_root(s, of, root, nodes - 1, kr)
    else:
        extent_free(s.m, s.head, FREE_LISTS, root, kr)
        set_root(s, of, 0, 0, 0)


@kernel
def scan(
    s: Pointers, ys: Int, ties: Int, i: Int, end: Int, step: Int, y: Int, tie: Int, least_y: Int, least_tie: Int
) -> tuple[Int, Int, Int, Int]:
    """Goes from number i in steps of 1 or -1, up to a key below (y, tie), which is not above (least_y, least_tie).

    Returns the number of that, or `end`; the lowest key passed, the given one included; and its number, or -1.
    """
    at = -1
    while i != end:
        other = s.m[ys + i]
        if other <= least_y:
            other_tie = s.m[ties + i]
            if other < y or (other == y and other_tie < tie):
                break
            # At most equal to the start, where there is no entry yet: keys of entries are all different.
            if other < least_y or other_tie <= least_tie:
                least_y, least_tie, at = other, other_tie, i
        i += step
    return i, least_y, least_tie, at


@kernel
def next_low(
    s: Pointers, root: Int, nodes: Int, kr: Int, ni: Int, bi: Int, i: Int, step: Int, y: Int, tie: Int
) -> tuple[Int, Int, Int, Int]:
    """Place of the next entry with a key below (y, tie), from number i of a block on, that included.

    Returns it, or NOWHERE, and the lowest of the keys in between with its place, or NOWHERE; see `resolve` for that.
    """
    least_y = least_tie = INT64_MAX
    least = NOWHERE
    node, blocks, kn = child_of(s, root, kr, ni)
    block, size, k = child_of(s, node, kn, bi)
    end = -1 if step < 0 else size
    i, least_y, least_tie, at = scan(s, block + (Y << k), block + (TIE << k), i, end, step, y, tie, least_y, least_tie)
    if at >= 0:
        least = place_of(ni, bi, at)
    if i != end:
        return place_of(ni, bi, i), least_y, least_tie, least
    end = -1 if step < 0 else blocks
    bi, least_y, least_tie, at = scan(
        s, node + (Y << kn), node + (LOW_TIE << kn), bi + step, end, step, y, tie, least_y, least_tie
    )
    if at >= 0:
        least = place_of(ni, at, SOMEWHERE)
    if bi == end:
        end = -1 if step < 0 else nodes
        ni, least_y, least_tie, at = scan(
            s, root + (Y << kr), root + (LOW_TIE << kr), ni + step, end, step, y, tie, least_y, least_tie
        )
        if at >= 0:
            least = at << NODE_SHIFT | SOME_BLOCK
        if ni == end:
            return NOWHERE, least_y, least_tie, least
        node, blocks, kn = child_of(s, root, kr, ni)
        first, end = (blocks - 1, -1) if step < 0 else (0, blocks)
        bi, least_y, least_tie, at = scan(
            s, node + (Y << kn), node + (LOW_TIE << kn), first, end, step, y, tie, least_y, least_tie
        )
        if at >= 0:
            least = place_of(ni, at, SOMEWHERE)
    block, size, k = child_of(s, node, kn, bi)
    first, end = (size - 1, -1) if step < 0 else (0, size)
    i, least_y, least_tie, at = scan(
        s, block + (Y << k), block + (TIE << k), first, end, step, y, tie, least_y, least_tie
    )
    if at >= 0:
        least = place_of(ni, bi, at)
    return place_of(ni, bi, i), least_y, least_tie, least


@kernel
def lowest(s: Pointers, ys: Int, ties: Int, i: Int, end: Int, least_y: Int, least_tie: Int) -> tuple[Int, Int, Int]:
    """The lowest key from number i up to `end`, or the given one; and its number, or -1."""
    at = -1
    while i < end:
        if s.m[ys + i] <= least_y and (s.m[ys + i] < least_y or s.m[ties + i] <= least_tie):
            least_y, least_tie, at = s.m[ys + i], s.m[ties + i], i
        i += 1
    return least_y, least_tie, at


@kernel
def least_between(s: Pointers, root: Int, kr: Int, start: Int, end: Int) -> tuple[Int, Int, Int]:
    """The lowest key from place `start` up to before place `end`, and its place, or NOWHERE; see `resolve` for that."""
    n1, b1, i1 = parts_of(start)
    n2, b2, i2 = parts_of(end)
    y = tie = INT64_MAX
    least = NOWHERE
    node, blocks, kn = child_of(s, root, kr, n1)
    block, size, k = child_of(s, node, kn, b1)
    if start >> BLOCK_SHIFT == end >> BLOCK_SHIFT:
        y, tie, at = lowest(s, block + (Y << k), block + (TIE << k), i1, i2, y, tie)
        return y, tie, place_of(n1, b1, at) if at >= 0 else NOWHERE
    y, tie, at = lowest(s, block + (Y << k), block + (TIE << k), i1, size, y, tie)
    if at >= 0:
        least = place_of(n1, b1, at)
    y, tie, at = lowest(s, node + (Y << kn), node + (LOW_TIE << kn), b1 + 1, b2 if n1 == n2 else blocks, y, tie)
    if at >= 0:
        least = place_of(n1, at, SOMEWHERE)
    if n1 != n2:
        y, tie, at = lowest(s, root + (Y << kr), root + (LOW_TIE << kr), n1 + 1, n2, y, tie)
        if at >= 0:
            least = at << NODE_SHIFT | SOME_BLOCK
        node, blocks, kn = child_of(s, root, kr, n2)
        y, tie, at = lowest(s, node + (Y << kn), node + (LOW_TIE << kn), 0, b2, y, tie)
        if at >= 0:
            least = place_of(n2, at, SOMEWHERE)
    block, size, k = child_of(s, node, kn, b2)
    y, tie, at = lowest(s, block + (Y << k), block + (TIE << k), 0, i2, y, tie)
    if at >= 0:
        least = place_of(n2, b2, at)
    return y, tie, least


@kernel
def number_of(m: Any, ys: Int, ties: Int, y: Int, tie: Int) -> Int:
    """Number of the entry with a given key, which is there."""
    i = 0
    while m[ys + i] != y or m[ties + i] != tie:
        i += 1
    return i


@kernel
def resolve(s: Pointers, root: Int, kr: Int, place: Int, y: Int, tie: Int) -> Int:
    """The exact place of an entry with a given key. Scans do not look for it, as most are never asked for."""
    if place & SOMEWHERE != SOMEWHERE:
        return place
    node, _, kn = child_of(s, root, kr, place >> NODE_SHIFT)
    if place & SOME_BLOCK == SOME_BLOCK:
        bi = number_of(s.m, node + (Y << kn), node + (LOW_TIE << kn), y, tie)
        place = place_of(place >> NODE_SHIFT, bi, SOMEWHERE)
    ni, bi, _ = parts_of(place)
    block, _, k = child_of(s, node, kn, bi)
    return place_of(ni, bi, number_of(s.m, block + (Y << k), block + (TIE << k), y, tie))
