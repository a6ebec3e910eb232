"""The sequence of a set's entries: finding a position in it, and telling the lists above of what has changed."""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BLOCKS,
    CHILD,
    INT64_MAX,
    LISTS,
    LOW_TIE,
    NOWHERE,
    SHAPE,
    TIE,
    Int,
    Pointers,
    X,
    Y,
    child_of,
    parts_of,
    place_of,
    root_of,
)


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
def block_at(s: Pointers, of: Int, place: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of the block that a place is in."""
    root, _, kr = root_of(s, of)
    ni, bi, _ = parts_of(place)
    node, _, kn = child_of(s, root, kr, ni)
    return child_of(s, node, kn, bi)


@kernel
def describe(s: Pointers, to: Int, kt: Int, at: Int, sort: Int, offset: Int, size: Int, k: Int) -> None:
    """Enter into a list what it has to know of a block or a node."""
    ys, ties = offset + (Y << k), offset + ((TIE if sort == BLOCKS else LOW_TIE) << k)
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
def refresh(s: Pointers, of: Int, ni: Int, bi: Int) -> None:
    """Describe anew a block that has changed, and its node."""
    root, _, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    block, size, k = child_of(s, node, kn, bi)
    describe(s, node, kn, bi, BLOCKS, block, size, k)
    describe(s, root, kr, ni, LISTS, node, blocks, kn)


@kernel
def relist(s: Pointers, to: Int, kt: Int, at: Int, sort: Int, y_old: Int, y: Int, tie: Int) -> bool:
    """Tell a list that a key (y_old, tie) below its entry is now (y, tie); False if nothing changes for the entry."""
    low_y, low_tie = to + (Y << kt) + at, to + (LOW_TIE << kt) + at
    if y < s.m[low_y] or (y == s.m[low_y] and tie <= s.m[low_tie]):
        s.m[low_y], s.m[low_tie] = y, tie
        return True
    if y_old != s.m[low_y] or tie != s.m[low_tie]:
        return False
    offset, size, k = child_of(s, to, kt, at)
    describe(s, to, kt, at, sort, offset, size, k)
    return True


@kernel
def rekey(s: Pointers, of: Int, place: Int, y_old: Int, y: Int, tie: Int) -> None:
    """Change the key of the entry at a place from (y_old, tie) to (y, tie)."""
    ni, bi, i = parts_of(place)
    root, _, kr = root_of(s, of)
    node, _, kn = child_of(s, root, kr, ni)
    block, _, k = child_of(s, node, kn, bi)
    s.m[block + (Y << k) + i] = y
    if relist(s, node, kn, bi, BLOCKS, y_old, y, tie):
        relist(s, root, kr, ni, LISTS, y_old, y, tie)
