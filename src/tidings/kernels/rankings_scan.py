"""Walks over the sequence of a set: the next entry with a low key, and the lowest key in between.

A walk looks at entries one by one to the end of a block, at blocks to the end of a node, at nodes, and then goes down
again: few are looked at, as what is below a block or a node is known by its lowest key.

    keys     7 9 | 8 6 9 | 9 7 8 | 3 9    from the left 9 to the next below 5: [9], block 6, block 7, and [3]
                               ^ found     the lowest in between is 6, somewhere in the second block
"""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BLOCK_SHIFT,
    INT64_MAX,
    LOW_TIE,
    NODE_SHIFT,
    NOWHERE,
    SOME_BLOCK,
    SOMEWHERE,
    TIE,
    Int,
    Pointers,
    Y,
    child_of,
    parts_of,
    place_of,
)


@kernel
def walk(
    s: Pointers, ys: Int, ties: Int, i: Int, end: Int, step: Int, y: Int, tie: Int, least_y: Int, least_tie: Int
) -> tuple[Int, Int, Int, Int]:
    """Go from number i in steps of 1 or -1, up to a key below (y, tie), which is not above (least_y, least_tie).

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
    i, least_y, least_tie, at = walk(s, block + (Y << k), block + (TIE << k), i, end, step, y, tie, least_y, least_tie)
    if at >= 0:
        least = place_of(ni, bi, at)
    if i != end:
        return place_of(ni, bi, i), least_y, least_tie, least
    end = -1 if step < 0 else blocks
    bi, least_y, least_tie, at = walk(
        s, node + (Y << kn), node + (LOW_TIE << kn), bi + step, end, step, y, tie, least_y, least_tie
    )
    if at >= 0:
        least = place_of(ni, at, SOMEWHERE)
    if bi == end:
        end = -1 if step < 0 else nodes
        ni, least_y, least_tie, at = walk(
            s, root + (Y << kr), root + (LOW_TIE << kr), ni + step, end, step, y, tie, least_y, least_tie
        )
        if at >= 0:
            least = at << NODE_SHIFT | SOME_BLOCK
        if ni == end:
            return NOWHERE, least_y, least_tie, least
        node, blocks, kn = child_of(s, root, kr, ni)
        first, end = (blocks - 1, -1) if step < 0 else (0, blocks)
        bi, least_y, least_tie, at = walk(
            s, node + (Y << kn), node + (LOW_TIE << kn), first, end, step, y, tie, least_y, least_tie
        )
        if at >= 0:
            least = place_of(ni, at, SOMEWHERE)
    block, size, k = child_of(s, node, kn, bi)
    first, end = (size - 1, -1) if step < 0 else (0, size)
    i, least_y, least_tie, at = walk(
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
    """The lowest key from one place up to another, that not included; and its place, or NOWHERE. See `resolve`."""
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
def number_of(s: Pointers, ys: Int, ties: Int, y: Int, tie: Int) -> Int:
    """Number of the entry with a given key, which is there."""
    i = 0
    while s.m[ys + i] != y or s.m[ties + i] != tie:
        i += 1
    return i


@kernel
def resolve(s: Pointers, root: Int, kr: Int, place: Int, y: Int, tie: Int) -> Int:
    """The exact place of an entry with a given key: most are never asked for, so walks do not look for it."""
    if place & SOMEWHERE != SOMEWHERE:
        return place
    node, _, kn = child_of(s, root, kr, place >> NODE_SHIFT)
    if place & SOME_BLOCK == SOME_BLOCK:
        bi = number_of(s, node + (Y << kn), node + (LOW_TIE << kn), y, tie)
        place = place_of(place >> NODE_SHIFT, bi, SOMEWHERE)
    ni, bi, _ = parts_of(place)
    block, _, k = child_of(s, node, kn, bi)
    return place_of(ni, bi, number_of(s, block + (Y << k), block + (TIE << k), y, tie))
