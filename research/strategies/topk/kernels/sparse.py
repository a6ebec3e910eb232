"""The sparse variant: the same sends, but only to points that a kd-tree knows, in boxes drawn around these.

Boxes without points are left out. A sweep goes on only as long as there are points that hold the swept entry, and only
between the least lo and the greatest hi of those: none of them covers what is beyond.

The columns of a staircase, or of a chain, go from right to left and have no lo in common, so neither have the boxes made of
them. Each column has the bounds of its points, or none. It is joined with the box on its right if it is marked (same top, or
same group), or if the bounds of both together hold no other points.

Points near the staircase are gathered once into a list, if they are not too many (LISTED >= 0), else the tree is asked for
each column. A listed point has a *rank*: how many low entries it covers left of x, and how many in all. Points that cover
less than k are *live*: they hold the swept entry. In the list the live ones come first. A point that is sent the entry met
is not live any more, but stays in the list: boxes must not be widened over it.
"""

from __future__ import annotations

from research.strategies.topk.kernels.crowd import gather, has_any, leftmost, rightmost, tighten
from research.strategies.topk.kernels.plane_kdtree.layout import (
    FOUND_HI,
    FOUND_LO,
    FOUND_RANK,
    LEFT_HI,
    LEFT_LO,
    LIST_LIMIT,
    LISTED,
    LIVE,
    NEAR_HI,
    NEAR_LO,
    NEAR_RANK,
    RIGHT_HI,
    RIGHT_LO,
    TreePointers,
)
from research.strategies.topk.kernels.range_topk.layout import (
    BOXES,
    EDGE,
    GROUPS,
    INT64_MAX,
    INT64_MIN,
    LEFT,
    LOW_X,
    RIGHT,
    SIDE_FIELDS,
    Int,
    K,
    OutputPointers,
    Pointers,
    side_of,
)
from research.strategies.topk.kernels.range_topk.staircase import (
    chain_columns,
    enter_low,
    find_lowest,
    group_of,
    next_met,
    put_box,
    send,
)
from research.strategies.topk.kernels.sparse_layout import (
    COLUMN_HI_MAX,
    COLUMN_HI_MIN,
    COLUMN_LO_MAX,
    COLUMN_LO_MIN,
    IS_JOINED,
    SNAPS,
)
from tidings.kernels.jit import kernel

# A rank is the number of low entries on the left << LEFT_SHIFT | the number of all.
LEFT_SHIFT = 32
ALL = (1 << LEFT_SHIFT) - 1
ON_LEFT, ON_RIGHT = 1 << LEFT_SHIFT | 1, 1

CHUNK = 64
"""So many points are looked at before the result is."""


@kernel
def clear_columns(s: Pointers) -> tuple[Int, Int]:
    """Lets no column have points; where in `work` the first field of columns is, and how far it is to the next field."""
    stride = s.head[K] + 2
    at = 2 * SIDE_FIELDS * stride
    for a in range(s.head[K]):
        s.work[at + COLUMN_LO_MIN * stride + a] = s.work[at + COLUMN_HI_MIN * stride + a] = INT64_MAX
        s.work[at + COLUMN_LO_MAX * stride + a] = s.work[at + COLUMN_HI_MAX * stride + a] = INT64_MIN
    return at, stride


@kernel
def widen_column(s: Pointers, a: Int, lo: Int, hi: Int) -> None:
    """Adds a point to the bounds of a column."""
    stride = s.head[K] + 2
    at = 2 * SIDE_FIELDS * stride + a
    s.work[at + COLUMN_LO_MIN * stride] = min(s.work[at + COLUMN_LO_MIN * stride], lo)
    s.work[at + COLUMN_LO_MAX * stride] = max(s.work[at + COLUMN_LO_MAX * stride], lo)
    s.work[at + COLUMN_HI_MIN * stride] = min(s.work[at + COLUMN_HI_MIN * stride], hi)
    s.work[at + COLUMN_HI_MAX * stride] = max(s.work[at + COLUMN_HI_MAX * stride], hi)


@kernel
def snap_column(
    s: Pointers, c: TreePointers, of: Int, a: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int
) -> None:
    """Asks the tree for the bounds of the points in a box, and gives them to a column."""
    stride = s.head[K] + 2
    at = 2 * SIDE_FIELDS * stride + a
    lo1, lo2, hi1, hi2 = tighten(c, of, lo_min, lo_max, hi_min, hi_max)
    s.work[at + COLUMN_LO_MIN * stride], s.work[at + COLUMN_LO_MAX * stride] = lo1, lo2
    s.work[at + COLUMN_HI_MIN * stride], s.work[at + COLUMN_HI_MAX * stride] = hi1, hi2


@kernel
def list_near(s: Pointers, c: TreePointers, of: Int, x: Int, lefts: Int, rights: Int, lo_min: Int, hi_max: Int) -> None:
    """Lists the points that cover x, with lo from lo_min on and hi up to hi_max, unless they are too many."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    n = gather(c, of, lo_min, x, x, hi_max, c.head[LIST_LIMIT])
    c.head[LISTED] = n
    if n <= 0:
        c.head[LIVE] = n
        return
    for i in range(n):
        c.work[FOUND_RANK + i] = 0
    for a in range(1, lefts + 1):
        low_x = s.work[left + LOW_X * stride + a]
        for i in range(n):
            c.work[FOUND_RANK + i] += ON_LEFT if c.work[FOUND_LO + i] <= low_x else 0
    for b in range(1, rights + 1):
        low_x = s.work[right + LOW_X * stride + b]
        for i in range(n):
            c.work[FOUND_RANK + i] += ON_RIGHT if c.work[FOUND_HI + i] >= low_x else 0
    k = s.head[K]
    live, rest = 0, n - 1
    for i in range(n):
        rank = c.work[FOUND_RANK + i]
        is_live = (rank & ALL) < k
        at = live if is_live else rest
        c.work[NEAR_LO + at], c.work[NEAR_HI + at] = c.work[FOUND_LO + i], c.work[FOUND_HI + i]
        c.work[NEAR_RANK + at] = rank
        live += is_live
        rest -= not is_live
    c.head[LIVE] = live


@kernel
def measure_near(c: TreePointers) -> bool:
    """Finds the least lo and the greatest hi of the live listed points; False if there are none."""
    lo, hi = INT64_MAX, INT64_MIN
    for i in range(c.head[LIVE]):
        lo, hi = min(lo, c.work[NEAR_LO + i]), max(hi, c.work[NEAR_HI + i])
    c.head[LEFT_LO], c.head[RIGHT_HI] = lo, hi
    return bool(c.head[LIVE] > 0)


@kernel
def is_free(
    c: TreePointers,
    of: Int,
    lo1_min: Int,
    lo1_max: Int,
    lo2_min: Int,
    lo2_max: Int,
    hi1_min: Int,
    hi1_max: Int,
    hi2_min: Int,
    hi2_max: Int,
) -> bool:
    """Whether the bounds of two boxes, the first on the left of the second, hold no points but theirs."""
    hi_min, hi_max = min(hi1_min, hi2_min), max(hi1_max, hi2_max)
    n = c.head[LISTED]
    if n < 0:
        # What is left of the bounds of both: above and below each box, and between them.
        if hi1_max < hi_max and has_any(c, of, lo1_min, lo1_max, hi1_max + 1, hi_max):
            return False
        if hi2_max < hi_max and has_any(c, of, lo2_min, lo2_max, hi2_max + 1, hi_max):
            return False
        if hi_min < hi1_min and has_any(c, of, lo1_min, lo1_max, hi_min, hi1_min - 1):
            return False
        if hi_min < hi2_min and has_any(c, of, lo2_min, lo2_max, hi_min, hi2_min - 1):
            return False
        return bool(lo1_max + 1 > lo2_min - 1 or not has_any(c, of, lo1_max + 1, lo2_min - 1, hi_min, hi_max))
    start = 0
    while start < n:
        is_other = False
        for i in range(start, min(start + CHUNK, n)):
            lo, hi = c.work[NEAR_LO + i], c.work[NEAR_HI + i]
            is_within = (lo >= lo1_min) & (lo <= lo2_max) & (hi >= hi_min) & (hi <= hi_max)
            is_first = (lo <= lo1_max) & (hi >= hi1_min) & (hi <= hi1_max)
            is_second = (lo >= lo2_min) & (hi >= hi2_min) & (hi <= hi2_max)
            is_other |= is_within & (not (is_first | is_second))
        if is_other:
            return False
        start += CHUNK
    return True


@kernel
def send_columns(
    s: Pointers, c: TreePointers, out: OutputPointers, of: Int, start: Int, end: Int, entry: Int, is_gone: bool
) -> None:
    """Sends an entry to the points of columns, in as few boxes as can be."""
    stride = s.head[K] + 2
    at = 2 * SIDE_FIELDS * stride
    first = boxes = s.head[BOXES]
    lo_min, lo_max, hi_min, hi_max = INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN
    for a in range(start, end + 1):
        if lo_min <= lo_max and (a == end or not s.work[at + IS_JOINED * stride + a]):
            lo, hi = 2 * boxes - 2, 2 * boxes - 1
            if boxes > first and is_free(
                c, of, lo_min, lo_max, out.lo[lo], out.hi[lo], hi_min, hi_max, out.lo[hi], out.hi[hi]
            ):
                put_box(out, boxes - 1, lo_min, out.hi[lo], min(hi_min, out.lo[hi]), max(hi_max, out.hi[hi]))
            else:
                put_box(out, boxes, lo_min, lo_max, hi_min, hi_max)
                boxes += 1
            lo_min, lo_max, hi_min, hi_max = INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN
        if a < end:
            lo_min = min(lo_min, s.work[at + COLUMN_LO_MIN * stride + a])
            lo_max = max(lo_max, s.work[at + COLUMN_LO_MAX * stride + a])
            hi_min = min(hi_min, s.work[at + COLUMN_HI_MIN * stride + a])
            hi_max = max(hi_max, s.work[at + COLUMN_HI_MAX * stride + a])
    send(s, out, entry, is_gone, boxes)


@kernel
def mark_stairs(s: Pointers, x: Int, lefts: Int) -> Int:
    """Marks the columns of a staircase to be joined with the one on the right: same top, or same group; how many there are."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    marks = (2 * SIDE_FIELDS + IS_JOINED) * stride
    groups, k = s.head[GROUPS], s.head[K]
    last_top, last_group, box_top = INT64_MIN, -1, INT64_MIN
    n = min(lefts + 1, k)
    for a in range(n):
        s.work[marks + a] = True
        if s.work[left + EDGE * stride + a + 1] > s.work[left + LOW_X * stride + a]:
            continue
        top, group = s.work[right + EDGE * stride + k - a], group_of(groups, k, a)
        if top < x:
            n = a
            break
        is_joined = top == box_top or group == last_group
        s.head[SNAPS] += not is_joined or top != last_top
        s.work[marks + a] = is_joined
        box_top = box_top if is_joined else top
        last_top, last_group = top, group
    return n


@kernel
def send_stairs(
    s: Pointers,
    c: TreePointers,
    out: OutputPointers,
    of: Int,
    x: Int,
    lefts: Int,
    rights: Int,
    entry: Int,
    is_gone: bool,
) -> None:
    """Sends an entry to the points of its staircase, given its low entries; lists these points, unless they are too many."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    columns = mark_stairs(s, x, lefts)
    list_near(s, c, of, x, lefts, rights, s.work[left + EDGE * stride + k], s.work[right + EDGE * stride + k])
    if c.head[LIVE] == 0:
        return
    at, _ = clear_columns(s)
    if c.head[LISTED] >= 0:
        for i in range(c.head[LIVE]):
            widen_column(s, c.work[NEAR_RANK + i] >> LEFT_SHIFT, c.work[NEAR_LO + i], c.work[NEAR_HI + i])
    else:
        marks = at + IS_JOINED * stride
        a = 0
        while a < columns:
            lo_max, top = s.work[left + LOW_X * stride + a], s.work[right + EDGE * stride + k - a]
            last = a
            # Joined columns with the same top are asked for together. One that is empty whoever is there must not be the
            # first of them: it counts as joined with the one before.
            if s.work[left + EDGE * stride + a + 1] <= lo_max:
                while (
                    last + 1 < columns
                    and s.work[right + EDGE * stride + k - last - 1] == top
                    and s.work[marks + last + 1]
                ):
                    last += 1
                snap_column(s, c, of, a, s.work[left + EDGE * stride + last + 1], lo_max, x, top)
            a = last + 1
    send_columns(s, c, out, of, 0, columns, entry, is_gone)


@kernel
def mark_chain(s: Pointers, side: Int, p: Int, x: Int, lefts: Int, rights: Int) -> tuple[Int, Int]:
    """Marks the columns of a chain to be joined with the one on the right, of the same group; first and last column."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    marks = (2 * SIDE_FIELDS + IS_JOINED) * stride
    groups, k = s.head[GROUPS], s.head[K]
    first, last = chain_columns(s, side, p, lefts, rights)
    last_group = -1
    for a in range(first, last + 1):
        b = k - 1 - a
        s.work[marks + a] = True
        if s.work[left + EDGE * stride + a + 1] > min(s.work[left + LOW_X * stride + a], x):
            continue
        if max(s.work[right + LOW_X * stride + b], x) > s.work[right + EDGE * stride + b + 1]:
            continue
        s.head[SNAPS] += 1
        group = group_of(groups, k, a)
        s.work[marks + a] = group == last_group
        last_group = group
    return first, last


@kernel
def fill_chain(
    s: Pointers, c: TreePointers, of: Int, side: Int, x: Int, lefts: Int, rights: Int, first: Int, last: Int
) -> bool:
    """Finds the bounds of the points in each column of a chain; False if all were listed, and none is in it."""
    clear_columns(s)
    k = s.head[K]
    if c.head[LISTED] < 0:
        left, stride = side_of(s, LEFT)
        right, _ = side_of(s, RIGHT)
        for a in range(first, last + 1):
            b = k - 1 - a
            lo_min, lo_max = s.work[left + EDGE * stride + a + 1], min(s.work[left + LOW_X * stride + a], x)
            hi_min, hi_max = max(s.work[right + LOW_X * stride + b], x), s.work[right + EDGE * stride + b + 1]
            if lo_min <= lo_max and hi_min <= hi_max:
                snap_column(s, c, of, a, lo_min, lo_max, hi_min, hi_max)
        return True
    live = before = c.head[LIVE]
    i = 0
    while i < live:
        lo, hi, rank = c.work[NEAR_LO + i], c.work[NEAR_HI + i], c.work[NEAR_RANK + i]
        if lo <= x <= hi:
            widened = rank + (ON_LEFT if side == LEFT else ON_RIGHT)
            if (widened & ALL) == k:
                widen_column(s, rank >> LEFT_SHIFT, lo, hi)
                live -= 1
                c.work[NEAR_LO + i], c.work[NEAR_LO + live] = c.work[NEAR_LO + live], lo
                c.work[NEAR_HI + i], c.work[NEAR_HI + live] = c.work[NEAR_HI + live], hi
                c.work[NEAR_RANK + i] = c.work[NEAR_RANK + live]
                continue
            c.work[NEAR_RANK + i] = widened
        i += 1
    c.head[LIVE] = live
    return bool(live < before)


@kernel
def is_live(s: Pointers, lefts: Int, rights: Int, lo: Int, hi: Int) -> bool:
    """Whether a point that covers x covers fewer than k low entries."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    covered = 0
    for a in range(1, lefts + 1):
        covered += s.work[left + LOW_X * stride + a] >= lo
    for b in range(1, rights + 1):
        covered += s.work[right + LOW_X * stride + b] <= hi
    return bool(covered < s.head[K])


@kernel
def find_left(s: Pointers, c: TreePointers, of: Int, x: Int, lefts: Int) -> bool:
    """Asks the tree for a live point with the least lo, which is not below LEFT_LO; False if there is none."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    for a in range(min(lefts, k - 1), -1, -1):
        lo_min = max(s.work[left + EDGE * stride + a + 1], c.head[LEFT_LO])
        lo_max, top = s.work[left + LOW_X * stride + a], s.work[right + EDGE * stride + k - a]
        if lo_min <= lo_max and x <= top:
            is_found, lo, hi = leftmost(c, of, lo_min, lo_max, x, top)
            if is_found:
                c.head[LEFT_LO], c.head[LEFT_HI] = lo, hi
                return True
    return False


@kernel
def find_right(s: Pointers, c: TreePointers, of: Int, x: Int, rights: Int) -> None:
    """Asks the tree for a live point with the greatest hi, which is not above RIGHT_HI; there is one."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    for b in range(min(rights, k - 1), -1, -1):
        hi_max = min(s.work[right + EDGE * stride + b + 1], c.head[RIGHT_HI])
        hi_min, bottom = s.work[right + LOW_X * stride + b], s.work[left + EDGE * stride + k - b]
        if hi_min <= hi_max and bottom <= x:
            is_found, lo, hi = rightmost(c, of, bottom, x, hi_min, hi_max)
            if is_found:
                c.head[RIGHT_LO], c.head[RIGHT_HI] = lo, hi
                return


@kernel
def follow(
    s: Pointers, c: TreePointers, of: Int, x: Int, lefts: Int, rights: Int, is_first: bool, lists: bool = True
) -> bool:
    """Finds the least lo and the greatest hi of all live points; False if there are none.

    If they are not listed, one point of each kind is known but the first time, and another one is looked for only when that
    is not live any more. lists: whether points are listed once they are few.
    """
    if c.head[LISTED] >= 0:
        return measure_near(c)
    if is_first:
        c.head[LEFT_LO], c.head[RIGHT_HI] = INT64_MIN, INT64_MAX
    if (is_first or not is_live(s, lefts, rights, c.head[LEFT_LO], c.head[LEFT_HI])) and not find_left(
        s, c, of, x, lefts
    ):
        return False
    if is_first or not is_live(s, lefts, rights, c.head[RIGHT_LO], c.head[RIGHT_HI]):
        find_right(s, c, of, x, rights)
    if lists and not is_first:
        # They may be few enough by now.
        list_near(s, c, of, x, lefts, rights, c.head[LEFT_LO], c.head[RIGHT_HI])
    return True


@kernel
def sweep(
    s: Pointers,
    c: TreePointers,
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
    """As `staircase.sweep`, after `send_stairs`."""
    if not follow(s, c, of, x, lefts, rights, True):
        return True
    find_lowest(s, LEFT, lefts)
    find_lowest(s, RIGHT, rights)
    while True:
        if s.head[BOXES] + 2 * s.head[K] > room:
            return False
        side, p, place, x_met, entry = next_met(
            s, of, y, tie, is_gone, lefts, rights, c.head[LEFT_LO], c.head[RIGHT_HI]
        )
        if p < 0:
            return True
        first, last = mark_chain(s, side, p, x_met, lefts, rights)
        is_told = fill_chain(s, c, of, side, x_met, lefts, rights, first, last)
        if is_told:
            send_columns(s, c, out, of, first, last + 1, entry, False)
        lefts, rights = enter_low(s, of, side, p, lefts, rights, x_met, place)
        if is_told and not follow(s, c, of, x, lefts, rights, False):
            return True
