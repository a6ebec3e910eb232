"""Which ranges hold an entry, as boxes of the plane (lo, hi), and which entries take its place when its key grows.

A point of the plane holds an entry iff it covers its x and fewer than k entries with lower keys. Let l_1 >= l_2 .. and
r_1 <= r_2 .. be the x of the nearest *low* entries left and right of x: the points that hold the entry are a staircase.

    hi
    r_2 +        +---+          k = 2:   column 0: lo in (l_1, x]    hi up to r_2
        |        |   |                   column 1: lo in (l_2, l_1]  hi up to r_1
    r_1 |   +----+   |
        |   |    |   |          Ends are not included: a box of integers ends 1 before.
      x +   +----+---+
           l_2  l_1  x  lo

When the key grows, a sweep meets the entries with keys in between in ascending order, each the lowest in the interval
(l_k, r_k). A point gets the one met, j, if it covers x, x_j and just k - 1 low entries: a chain of cells at the outside of
the staircase. Then j is low, too, and the staircase is what is left.

    hi
    r_2 +        +--+--+        k = 2, j between l_1 and x: two cells.
        |        |jj|  |
    r_1 |   +----+--+  |        What is left is the staircase of x_j and l_1.
        |   |jjjj|     |
      x +   +----+-----+
           l_2  l_1 j  x  lo

The low entries cut the interval into segments, whose other entries are all above the sweep. Known is the lowest of each
segment, so the next one met is the lowest of those; its segment is then cut in two.

The idea is from Yu, Agarwal and Yang, "Processing and notifying range top-k subscriptions" (ICDE 2012).
"""

from __future__ import annotations

from research.strategies.topk.kernels.range_topk.layout import (
    BOXES,
    EDGE,
    ENTRY,
    GROUPS,
    INT64_MAX,
    INT64_MIN,
    LEAST_PLACE,
    LEAST_TIE,
    LEAST_Y,
    LEFT,
    LOOKUPS,
    LOW_PLACE,
    LOW_X,
    NOWHERE,
    RIGHT,
    SENDS,
    SIDES,
    Int,
    K,
    OutputPointers,
    Pointers,
    X,
    block_at,
    child_of,
    parts_of,
    place_of,
    root_of,
    side_of,
)
from research.strategies.topk.kernels.range_topk.sequence import least_between, next_low, resolve, seek
from tidings.kernels.jit import kernel


@kernel
def group_of(groups: Int, k: Int, a: Int) -> Int:
    """Number of the group that column a of k belongs to: balanced groups, or each column is one."""
    return a if groups == k else ((a + 1) * groups - 1) // k


@kernel
def find_lows(s: Pointers, of: Int, side: Int, ni: Int, bi: Int, i: Int, x: Int, y: Int, tie: Int) -> Int:
    """Finds the k nearest entries with keys below (y, tie), from a place on, and the segments up to them; how many."""
    at, stride = side_of(s, side)
    step = 2 * side - 1
    s.work[at + LOW_X * stride] = x
    s.head[SIDES] += 1
    root, nodes, kr = root_of(s, of)
    n = 0
    if nodes:
        while True:
            place, least_y, least_tie, least = next_low(s, root, nodes, kr, ni, bi, i, step, y, tie)
            s.work[at + LEAST_Y * stride + n] = least_y
            s.work[at + LEAST_TIE * stride + n] = least_tie
            s.work[at + LEAST_PLACE * stride + n] = least
            if place < 0:
                break
            n += 1
            ni, bi, i = parts_of(place)
            node, _, kn = child_of(s, root, kr, ni)
            block, _, k = child_of(s, node, kn, bi)
            low_x = s.m[block + (X << k) + i]
            s.work[at + LOW_X * stride + n] = low_x
            s.work[at + EDGE * stride + n] = low_x - step
            s.work[at + LOW_PLACE * stride + n] = place
            if n == s.head[K]:
                break
            i += step
    for a in range(n + 1, s.head[K] + 1):
        s.work[at + EDGE * stride + a] = INT64_MIN if side == LEFT else INT64_MAX
    return n


@kernel
def lows_around(s: Pointers, of: Int, place: Int, skip: Int, x: Int, y: Int, tie: Int) -> tuple[Int, Int]:
    """Finds the low entries of a key (y, tie) at x, for a sweep; how many there are left and right.

    The entry of this key is at a place (skip = 1), or would stand behind it (skip = 0).
    """
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    s.work[left + LOW_PLACE * stride], s.work[right + LOW_PLACE * stride] = place + 1 - skip, place
    ni, bi, i = parts_of(place) if place >= 0 else (0, 0, -1)
    lefts = find_lows(s, of, LEFT, ni, bi, i - skip, x, y, tie)
    return lefts, find_lows(s, of, RIGHT, ni, bi, i + 1, x, y, tie)


@kernel
def put_box(out: OutputPointers, at: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> None:
    """Writes a box."""
    out.lo[2 * at] = lo_min
    out.hi[2 * at] = lo_max
    out.lo[2 * at + 1] = hi_min
    out.hi[2 * at + 1] = hi_max


@kernel
def send(s: Pointers, out: OutputPointers, entry: Int, is_gone: bool, boxes: Int) -> None:
    """Sends an entry to the boxes written since the last send, up to number `boxes`; without boxes there is no send."""
    if boxes > s.head[BOXES]:
        sends = s.head[SENDS]
        out.entry[sends] = entry
        out.is_gone[sends] = is_gone
        out.box_starts[sends + 1] = boxes
        s.head[SENDS] = sends + 1
        s.head[BOXES] = boxes


@kernel
def send_stairs(s: Pointers, out: OutputPointers, x: Int, lefts: Int, entry: Int, is_gone: bool) -> None:
    """Sends an entry to its staircase, given its low entries."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    groups, k = s.head[GROUPS], s.head[K]
    first = boxes = s.head[BOXES]
    last_top, last_group = x, -1
    for a in range(min(lefts + 1, k)):
        lo_min, lo_max = s.work[left + EDGE * stride + a + 1], s.work[left + LOW_X * stride + a]
        if lo_min > lo_max:
            continue
        top = s.work[right + EDGE * stride + k - a]
        if top < x:
            break
        group = group_of(groups, k, a)
        if boxes > first and (top == last_top or group == last_group):
            out.lo[2 * boxes - 2] = lo_min
        else:
            put_box(out, boxes, lo_min, lo_max, x, top)
            boxes += 1
            last_top = top
        last_group = group
    send(s, out, entry, is_gone, boxes)


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
    """Sends an entry at x to its chain: p low entries of its side are nearer than it."""
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
def measure(s: Pointers, of: Int, side: Int, a: Int, inner: Int, outer: Int) -> None:
    """Finds the lowest entry of segment a, between two places, neither of them included."""
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
def find_lowest(s: Pointers, side: Int, n: Int) -> None:
    """Notes the lowest key in all segments of a side with n low entries, and the number of its segment, or -1.

    They are noted behind the fields of the segments, at number k + 1.
    """
    at, stride = side_of(s, side)
    ys, ties, places = at + LEAST_Y * stride, at + LEAST_TIE * stride, at + LEAST_PLACE * stride
    k = s.head[K]
    count = min(n + 1, k)
    y = INT64_MAX
    for a in range(count):
        y = min(y, s.work[ys + a])
    tie, found = INT64_MAX, -1
    for a in range(count):
        if s.work[ys + a] == y and s.work[ties + a] <= tie and s.work[places + a] >= 0:
            tie, found = s.work[ties + a], a
    s.work[ys + k + 1], s.work[ties + k + 1], s.work[places + k + 1] = y, tie, found


@kernel
def next_met(
    s: Pointers, of: Int, y: Int, tie: Int, is_gone: bool, lefts: Int, rights: Int, x_min: Int, x_max: Int
) -> tuple[Int, Int, Int, Int, Int]:
    """The next entry that a sweep up to the key (y, tie) meets, or up to the greatest of all if the swept entry is gone.

    Returns its side, segment, place, x and number; the segment is -1 if there is none. Entries beyond x_min .. x_max are of
    interest to nobody, now and later: segments are cut there.
    """
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    root, _, kr = root_of(s, of)
    s.head[LOOKUPS] += 1
    while True:
        a, y_left = s.work[left + LEAST_PLACE * stride + k + 1], s.work[left + LEAST_Y * stride + k + 1]
        b, y_right = s.work[right + LEAST_PLACE * stride + k + 1], s.work[right + LEAST_Y * stride + k + 1]
        tie_left, tie_right = s.work[left + LEAST_TIE * stride + k + 1], s.work[right + LEAST_TIE * stride + k + 1]
        is_left = b < 0 or (a >= 0 and (y_left < y_right or (y_left == y_right and tie_left < tie_right)))
        side, at, p, n = (LEFT, left, a, lefts) if is_left else (RIGHT, right, b, rights)
        y_met, tie_met = (y_left, tie_left) if is_left else (y_right, tie_right)
        if p < 0 or not (is_gone or y_met < y or (y_met == y and tie_met < tie)):
            return side, -1, NOWHERE, 0, 0
        place = resolve(s, root, kr, s.work[at + LEAST_PLACE * stride + p], y_met, tie_met)
        block, _, kb = block_at(s, of, place)
        i = parts_of(place)[2]
        x = s.m[block + (X << kb) + i]
        if x_min <= x <= x_max:
            return side, p, place, x, s.m[block + (ENTRY << kb) + i]
        for other in range(p + 1, min(n + 1, k)):
            s.work[at + LEAST_Y * stride + other] = s.work[at + LEAST_TIE * stride + other] = INT64_MAX
            s.work[at + LEAST_PLACE * stride + other] = NOWHERE
        bound = seek(s, of, x_min - 1, INT64_MAX) if is_left else seek(s, of, x_max, INT64_MAX) + 1
        measure(s, of, side, p, s.work[at + LOW_PLACE * stride + p], bound)
        find_lowest(s, side, n)


@kernel
def enter_low(s: Pointers, of: Int, side: Int, p: Int, lefts: Int, rights: Int, x: Int, place: Int) -> tuple[Int, Int]:
    """Makes an entry low that is the lowest of segment p of a side; returns the new lefts and rights, at most k."""
    at, stride = side_of(s, side)
    k = s.head[K]
    n = lefts if side == LEFT else rights
    if p < n:
        beyond = s.work[at + LOW_PLACE * stride + p + 1]
    elif side == LEFT:
        # The place before the first entry is -1, as 1 is added to where a segment starts.
        beyond = -1
    else:
        root, nodes, kr = root_of(s, of)
        node, blocks, kn = child_of(s, root, kr, nodes - 1)
        beyond = place_of(nodes - 1, blocks - 1, child_of(s, node, kn, blocks - 1)[1])
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
    n = min(n + 1, k)
    find_lowest(s, side, n)
    return (n, rights) if side == LEFT else (lefts, n)


@kernel
def has_stairs(s: Pointers, x: Int, lefts: Int) -> bool:
    """Whether any point is left that would hold the entry at x."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    a = 0
    while a < lefts and s.work[left + LOW_X * stride + a + 1] == x:
        a += 1
    return bool(a < k and s.work[right + EDGE * stride + k - a] >= x)


@kernel
def next_on_stairs(
    s: Pointers, of: Int, x: Int, y: Int, tie: Int, is_gone: bool, lefts: Int, rights: Int, x_min: Int, x_max: Int
) -> tuple[Int, Int, Int, Int, Int]:
    """As `next_met`; no entry if the staircase of the swept entry at x has no point left."""
    if not has_stairs(s, x, lefts):
        return LEFT, -1, NOWHERE, 0, 0
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    x_min, x_max = max(x_min, s.work[left + EDGE * stride + k]), min(x_max, s.work[right + EDGE * stride + k])
    return next_met(s, of, y, tie, is_gone, lefts, rights, x_min, x_max)


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
    """Sends each entry met while the key of the one at x grows; False if there may be too little room for boxes."""
    find_lowest(s, LEFT, lefts)
    find_lowest(s, RIGHT, rights)
    while True:
        # Each sends at most k boxes; as many must be left for an appearance that may follow.
        if s.head[BOXES] + 2 * s.head[K] > room:
            return False
        side, p, place, x_met, entry = next_on_stairs(s, of, x, y, tie, is_gone, lefts, rights, INT64_MIN, INT64_MAX)
        if p < 0:
            return True
        send_chain(s, out, side, p, x_met, lefts, rights, entry)
        lefts, rights = enter_low(s, of, side, p, lefts, rights, x_met, place)
