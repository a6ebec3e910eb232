"""The same sends, for a crowd that is known: to those of its points that dense boxes hold, in boxes drawn around them.

Nothing is sent to no one. Entries are met only as long as there are points that hold the one that falls, and only between
the least lo and the greatest hi of those: what is beyond is covered by none of them.
"""

from __future__ import annotations

from tidings.kernels.crowds_arrays import LEFT_LO, LISTED, LIVE, RIGHT_HI, CrowdPointers
from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BOXES,
    EDGE,
    ENTRY,
    INT64_MAX,
    LEAST_PLACE,
    LEAST_TIE,
    LEAST_Y,
    LEFT,
    LOOKUPS,
    LOW_PLACE,
    NOWHERE,
    RIGHT,
    Int,
    K,
    Pointers,
    X,
    parts_of,
    root_of,
)
from tidings.kernels.rankings_blocks import block_at, seek
from tidings.kernels.rankings_columns import mark_chain, mark_stairs
from tidings.kernels.rankings_far import follow_far, snap_chain, snap_stairs, start_far
from tidings.kernels.rankings_near import list_near, measure_near, snap_near, tell_near
from tidings.kernels.rankings_paint import send_columns
from tidings.kernels.rankings_scan import resolve
from tidings.kernels.rankings_stairs import OutputPointers, find_lows, side_of
from tidings.kernels.rankings_sweep import enter_low, lowest_segment, measure


@kernel
def send_stairs(
    s: Pointers,
    c: CrowdPointers,
    out: OutputPointers,
    of: Int,
    x: Int,
    lefts: Int,
    rights: Int,
    entry: Int,
    is_gone: bool,
) -> None:
    """Send an entry to the points that hold it, given its low entries; who these are is known then."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    columns = mark_stairs(s, x, lefts)
    list_near(s, c, of, x, lefts, rights, s.work[left + EDGE * stride + k], s.work[right + EDGE * stride + k])
    if c.head[LISTED] < 0:
        snap_stairs(s, c, of, x, columns)
    elif c.head[LIVE] == 0:
        return
    else:
        snap_near(s, c)
    send_columns(s, c, out, of, 0, columns, entry, is_gone)


@kernel
def rise(
    s: Pointers,
    c: CrowdPointers,
    out: OutputPointers,
    of: Int,
    place: Int,
    skip: Int,
    x: Int,
    y: Int,
    tie: Int,
    entry: Int,
) -> None:
    """As `rankings_stairs.rise`."""
    ni, bi, i = parts_of(place) if place >= 0 else (0, 0, -1)
    lefts = find_lows(s, of, LEFT, ni, bi, i - skip, x, y, tie)
    rights = find_lows(s, of, RIGHT, ni, bi, i + 1, x, y, tie)
    send_stairs(s, c, out, of, x, lefts, rights, entry, False)


@kernel
def follow(s: Pointers, c: CrowdPointers, of: Int, x: Int, lefts: Int, rights: Int) -> bool:
    """Find the least lo and the greatest hi of the points that hold the entry at x still; False if there are none."""
    if c.head[LISTED] >= 0:
        measure_near(c)
        return bool(c.head[LIVE] > 0)
    if not follow_far(s, c, of, x, lefts, rights):
        return False
    # They may be few enough by now.
    list_near(s, c, of, x, lefts, rights, c.head[LEFT_LO], c.head[RIGHT_HI])
    return True


@kernel
def confine(s: Pointers, c: CrowdPointers, of: Int, side: Int, p: Int, n: Int) -> None:
    """Forget the entries of the segment behind p of n low ones, and behind, that are beyond all points."""
    at, stride = side_of(s, side)
    for a in range(p + 1, min(n + 1, s.head[K])):
        s.work[at + LEAST_Y * stride + a] = s.work[at + LEAST_TIE * stride + a] = INT64_MAX
        s.work[at + LEAST_PLACE * stride + a] = NOWHERE
    if side == LEFT:
        bound = seek(s, of, c.head[LEFT_LO] - 1, INT64_MAX)
    else:
        bound = seek(s, of, c.head[RIGHT_HI], INT64_MAX) + 1
    measure(s, of, side, p, s.work[at + LOW_PLACE * stride + p], bound)


@kernel
def sweep(
    s: Pointers,
    c: CrowdPointers,
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
    """As `rankings_sweep.sweep`."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    root, _, kr = root_of(s, of)
    y_left, tie_left, a = lowest_segment(s, LEFT, lefts)
    y_right, tie_right, b = lowest_segment(s, RIGHT, rights)
    while True:
        if s.head[BOXES] + 2 * k > room:
            return False
        is_left = b < 0 or (a >= 0 and (y_left < y_right or (y_left == y_right and tie_left < tie_right)))
        side, at, p, n = (LEFT, left, a, lefts) if is_left else (RIGHT, right, b, rights)
        y_met, tie_met = (y_left, tie_left) if is_left else (y_right, tie_right)
        if p < 0 or not (is_gone or y_met < y or (y_met == y and tie_met < tie)):
            s.head[LOOKUPS] += 1
            break
        place = resolve(s, root, kr, s.work[at + LEAST_PLACE * stride + p], y_met, tie_met)
        block, _, kb = block_at(s, of, place)
        i = parts_of(place)[2]
        x_met = s.m[block + (X << kb) + i]
        if x_met < c.head[LEFT_LO] or x_met > c.head[RIGHT_HI]:
            confine(s, c, of, side, p, n)
        else:
            s.head[LOOKUPS] += 1
            first, last = mark_chain(s, side, p, x_met, lefts, rights)
            is_told = True
            if c.head[LISTED] < 0:
                snap_chain(s, c, of, side, p, x_met, lefts, rights)
            else:
                is_told = tell_near(s, c, side, x_met)
            if is_told:
                send_columns(s, c, out, of, first, last + 1, s.m[block + (ENTRY << kb) + i], False)
            n = enter_low(s, of, side, p, n, x_met, place)
            lefts, rights = (n, rights) if is_left else (lefts, n)
            if is_told and not follow(s, c, of, x, lefts, rights):
                break
        if is_left:
            y_left, tie_left, a = lowest_segment(s, LEFT, lefts)
        else:
            y_right, tie_right, b = lowest_segment(s, RIGHT, rights)
    return True


@kernel
def fall(
    s: Pointers,
    c: CrowdPointers,
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
    """As `rankings_sweep.fall`."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    ni, bi, i = parts_of(place)
    s.work[left + LOW_PLACE * stride] = s.work[right + LOW_PLACE * stride] = place
    lefts = find_lows(s, of, LEFT, ni, bi, i - 1, x, y_old, tie)
    rights = find_lows(s, of, RIGHT, ni, bi, i + 1, x, y_old, tie)
    send_stairs(s, c, out, of, x, lefts, rights, entry, is_gone)
    if c.head[LISTED] < 0:
        is_any = start_far(s, c, of, x, lefts, rights)
    else:
        is_any = c.head[LIVE] > 0
        measure_near(c)
    return bool(not is_any or sweep(s, c, out, of, x, y, tie, is_gone, lefts, rights, room))
