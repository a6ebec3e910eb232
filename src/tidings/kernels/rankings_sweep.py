"""Who takes over when the key of an entry grows.

The entries with keys in between are met in ascending order, each the lowest in the interval (l_k, r_k) of the stairs. A
point gets the one met, j, if it covers x, x_j and just k - 1 low entries: a chain of cells at the outside of the stairs.
Then j is low, too, and the stairs are what is left.

    hi
    r_2 +        +--+--+        k = 2, j between l_1 and x: two cells.
        |        |jj|  |
    r_1 |   +----+--+  |        What is left are the stairs of x_j and l_1.
        |   |jjjj|     |
      x +   +----+-----+
           l_2  l_1 j  x  lo

The low entries cut the interval into segments, whose other entries are all above the sweep. Kept is the lowest of each
segment, so the next one met is the lowest of those; its segment is then cut in two.
"""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BOXES,
    EDGE,
    ENTRY,
    GROUPS,
    INT64_MAX,
    LEAST_PLACE,
    LEAST_TIE,
    LEAST_Y,
    LEFT,
    LOOKUPS,
    LOW_PLACE,
    LOW_X,
    NOWHERE,
    RIGHT,
    Int,
    K,
    Pointers,
    X,
    child_of,
    parts_of,
    place_of,
    root_of,
)
from tidings.kernels.rankings_blocks import block_at, seek
from tidings.kernels.rankings_scan import least_between, resolve
from tidings.kernels.rankings_stairs import (
    OutputPointers,
    find_lows,
    group_of,
    put_box,
    send,
    send_stairs,
    side_of,
)


@kernel
def chain_columns(s: Pointers, side: Int, p: Int, lefts: Int, rights: Int) -> tuple[Int, Int]:
    """First and last column of a chain: a low entries on the left, and so k - 1 - a on the right, if there are so many."""
    k = s.head[K]
    if side == LEFT:
        return max(p, k - 1 - rights), min(k - 1, lefts)
    return max(0, k - 1 - rights), min(k - 1 - p, lefts)


@kernel
def send_chain(
    s: Pointers, out: OutputPointers, side: Int, p: Int, x: Int, lefts: Int, rights: Int, entry: Int
) -> None:
    """Send an entry at x to the points that cover k - 1 low entries and x; p low entries are nearer on its side."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    groups, k = s.head[GROUPS], s.head[K]
    boxes = s.head[BOXES]
    last_group = -1
    first, last = chain_columns(s, side, p, lefts, rights)
    for a in range(first, last + 1):
        b = k - 1 - a
        lo_min, lo_max = s.work[left + EDGE * stride + a + 1], s.work[left + LOW_X * stride + a]
        hi_min, hi_max = s.work[right + LOW_X * stride + b], s.work[right + EDGE * stride + b + 1]
        lo_max, hi_min = min(lo_max, x), max(hi_min, x)
        if lo_min <= lo_max and hi_min <= hi_max:
            group = group_of(groups, k, a)
            if group == last_group:
                out.lo[2 * boxes - 2] = lo_min
                out.lo[2 * boxes - 1] = hi_min
            else:
                put_box(out, boxes, lo_min, lo_max, hi_min, hi_max)
                boxes += 1
            last_group = group
    send(s, out, entry, False, boxes)


@kernel
def end_of(s: Pointers, of: Int) -> Int:
    """The place behind the last entry of a set."""
    root, nodes, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, nodes - 1)
    return place_of(nodes - 1, blocks - 1, child_of(s, node, kn, blocks - 1)[1])


@kernel
def measure(s: Pointers, of: Int, side: Int, a: Int, inner: Int, outer: Int) -> None:
    """Find the lowest entry of the segment behind a low entries, between two places, neither of them included."""
    at, stride = side_of(s, side)
    root, _, kr = root_of(s, of)
    start, end = (outer, inner) if side == LEFT else (inner, outer)
    y, tie, least = INT64_MAX, INT64_MAX, NOWHERE
    if start + 1 < end:
        y, tie, least = least_between(s, root, kr, start + 1, end)
    s.work[at + LEAST_Y * stride + a] = y
    s.work[at + LEAST_TIE * stride + a] = tie
    s.work[at + LEAST_PLACE * stride + a] = least


@kernel
def enter_low(s: Pointers, of: Int, side: Int, p: Int, n: Int, x: Int, place: Int) -> Int:
    """Make an entry low that is the lowest of the segment behind p of n low ones; returns the new n, at most k."""
    at, stride = side_of(s, side)
    k = s.head[K]
    # The place before the first entry is -1, as 1 is added to where a segment starts.
    beyond = s.work[at + LOW_PLACE * stride + p + 1] if p < n else (-1 if side == LEFT else end_of(s, of))
    for a in range(min(n, k - 1), p, -1):
        s.work[at + LOW_X * stride + a + 1] = s.work[at + LOW_X * stride + a]
        s.work[at + EDGE * stride + a + 1] = s.work[at + EDGE * stride + a]
        s.work[at + LOW_PLACE * stride + a + 1] = s.work[at + LOW_PLACE * stride + a]
        s.work[at + LEAST_Y * stride + a + 1] = s.work[at + LEAST_Y * stride + a]
        s.work[at + LEAST_TIE * stride + a + 1] = s.work[at + LEAST_TIE * stride + a]
        s.work[at + LEAST_PLACE * stride + a + 1] = s.work[at + LEAST_PLACE * stride + a]
    s.work[at + LOW_X * stride + p + 1] = x
    s.work[at + EDGE * stride + p + 1] = x + 1 if side == LEFT else x - 1
    s.work[at + LOW_PLACE * stride + p + 1] = place
    measure(s, of, side, p, s.work[at + LOW_PLACE * stride + p], place)
    if p + 1 < k:
        measure(s, of, side, p + 1, place, beyond)
    return min(n + 1, k)


@kernel
def lowest_segment(s: Pointers, side: Int, n: Int) -> tuple[Int, Int, Int]:
    """The lowest key in the segments of a side, and the number of that segment; -1 if all are empty.

    There are n low entries.
    """
    at, stride = side_of(s, side)
    ys, ties, places = at + LEAST_Y * stride, at + LEAST_TIE * stride, at + LEAST_PLACE * stride
    count = min(n + 1, s.head[K])
    y = INT64_MAX
    for a in range(count):
        y = min(y, s.work[ys + a])
    tie, found = INT64_MAX, -1
    for a in range(count):
        if s.work[ys + a] == y and s.work[ties + a] <= tie and s.work[places + a] >= 0:
            tie, found = s.work[ties + a], a
    return y, tie, found


@kernel
def has_stairs(s: Pointers, x: Int, lefts: Int) -> bool:
    """True if any point is left that would hold the entry at x."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    a = 0
    while a < lefts and s.work[left + LOW_X * stride + a + 1] == x:
        a += 1
    return bool(a < k and s.work[right + EDGE * stride + k - a] >= x)


@kernel
def sweep(
    s: Pointers,
    out: OutputPointers,
    of: Int,
    x: Int,
    y: Int,
    tie: Int,
    is_gone: bool,
    lefts: Int,
    rights: Int,
    room: Int,
) -> bool:
    """Send each entry met while a key grows to (y, tie), or beyond all; False if boxes may not suffice."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    root, _, kr = root_of(s, of)
    lookups = s.head[LOOKUPS]
    y_left, tie_left, a = lowest_segment(s, LEFT, lefts)
    y_right, tie_right, b = lowest_segment(s, RIGHT, rights)
    while has_stairs(s, x, lefts):
        # Each sends at most k boxes; as many must be left for an appearance that may follow.
        if s.head[BOXES] + 2 * k > room:
            return False
        is_left = b < 0 or (a >= 0 and (y_left < y_right or (y_left == y_right and tie_left < tie_right)))
        side, at, p, n = (LEFT, left, a, lefts) if is_left else (RIGHT, right, b, rights)
        y_met, tie_met = (y_left, tie_left) if is_left else (y_right, tie_right)
        if p < 0 or not (is_gone or y_met < y or (y_met == y and tie_met < tie)):
            lookups += 1
            break
        place = resolve(s, root, kr, s.work[at + LEAST_PLACE * stride + p], y_met, tie_met)
        block, _, kb = block_at(s, of, place)
        i = parts_of(place)[2]
        x_met = s.m[block + (X << kb) + i]
        if n == k and x_met == s.work[at + LOW_X * stride + k]:
            # As far out as the last low entry, so nobody is to get it; nor others at that x, which may be many.
            bound = seek(s, of, x_met, INT64_MAX) if is_left else seek(s, of, x_met - 1, INT64_MAX) + 1
            measure(s, of, side, p, s.work[at + LOW_PLACE * stride + p], bound)
        else:
            lookups += 1
            send_chain(s, out, side, p, x_met, lefts, rights, s.m[block + (ENTRY << kb) + i])
            n = enter_low(s, of, side, p, n, x_met, place)
        if is_left:
            lefts = n
            y_left, tie_left, a = lowest_segment(s, LEFT, lefts)
        else:
            rights = n
            y_right, tie_right, b = lowest_segment(s, RIGHT, rights)
    s.head[LOOKUPS] = lookups
    return True


@kernel
def fall(
    s: Pointers,
    out: OutputPointers,
    of: Int,
    place: Int,
    x: Int,
    y_old: Int,
    y: Int,
    tie: Int,
    is_gone: bool,
    entry: Int,
    room: Int,
) -> bool:
    """Tell what there is to tell when the entry at a place gets a higher key, or vanishes; False as `sweep` does."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    ni, bi, i = parts_of(place)
    s.work[left + LOW_PLACE * stride] = s.work[right + LOW_PLACE * stride] = place
    lefts = find_lows(s, of, LEFT, ni, bi, i - 1, x, y_old, tie)
    rights = find_lows(s, of, RIGHT, ni, bi, i + 1, x, y_old, tie)
    send_stairs(s, out, x, lefts, entry, is_gone)
    return bool(sweep(s, out, of, x, y, tie, is_gone, lefts, rights, room))
