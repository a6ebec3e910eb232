"""Who holds an entry, as boxes of the plane of ranges (lo, hi).

A point of the plane holds an entry iff it covers its x and fewer than k entries with lower keys. Let l_1 >= l_2 .. and
r_1 <= r_2 .. be the x of the nearest *low* entries left and right of x: the points that hold the entry are a staircase.

    hi
    r_2 +        +---+          k = 2:   lo in (l_1, x]    hi up to r_2
        |        |   |                   lo in (l_2, l_1]  hi up to r_1
    r_1 |   +----+   |
        |   |    |   |          Ends are not included: a box of integers ends 1 before.
      x +   +----+---+
           l_2  l_1  x  lo
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BOXES,
    EDGE,
    GROUPS,
    INT64_MAX,
    INT64_MIN,
    LEAST_PLACE,
    LEAST_TIE,
    LEAST_Y,
    LEFT,
    LOW_PLACE,
    LOW_X,
    RIGHT,
    SENDS,
    WORK_FIELDS,
    Int,
    K,
    Pointers,
    X,
    child_of,
    parts_of,
    root_of,
)
from tidings.kernels.rankings_scan import next_low


class OutputPointers(NamedTuple):
    """Where sends and boxes go, as pointers; how many there are is in `head`."""

    entry: Any
    is_gone: Any
    box_starts: Any
    lo: Any
    hi: Any


@kernel
def side_of(s: Pointers, side: Int) -> tuple[Int, Int]:
    """Where in `work` the first field of a side is, and how far it is to the next field."""
    stride = s.head[K] + 2
    return side * WORK_FIELDS * stride, stride


@kernel
def group_of(groups: Int, k: Int, a: Int) -> Int:
    """Number of the group that column a of k belongs to: balanced groups, or each column is one."""
    return a if groups == k else ((a + 1) * groups - 1) // k


@kernel
def find_lows(s: Pointers, of: Int, side: Int, ni: Int, bi: Int, i: Int, x: Int, y: Int, tie: Int) -> Int:
    """Find the k nearest entries with keys below (y, tie), from a place on, and the segments up to them; how many."""
    at, stride = side_of(s, side)
    step = 2 * side - 1
    s.work[at + LOW_X * stride] = x
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
def put_box(out: OutputPointers, at: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> None:
    """Write a box."""
    out.lo[2 * at] = lo_min
    out.hi[2 * at] = lo_max
    out.lo[2 * at + 1] = hi_min
    out.hi[2 * at + 1] = hi_max


@kernel
def send(s: Pointers, out: OutputPointers, entry: Int, is_gone: bool, boxes: Int) -> None:
    """The boxes written since the last send, up to so many in all, are for this entry; nothing is sent to no one."""
    if boxes > s.head[BOXES]:
        sends = s.head[SENDS]
        out.entry[sends] = entry
        out.is_gone[sends] = is_gone
        out.box_starts[sends + 1] = boxes
        s.head[SENDS] = sends + 1
        s.head[BOXES] = boxes


@kernel
def send_stairs(s: Pointers, out: OutputPointers, x: Int, lefts: Int, entry: Int, is_gone: bool) -> None:
    """Send an entry to the points that hold it, given its low entries."""
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
def rise(
    s: Pointers, out: OutputPointers, of: Int, place: Int, skip: Int, x: Int, y: Int, tie: Int, entry: Int
) -> None:
    """Tell what there is to tell when an entry gets the key (y, tie), or has it.

    It is at a place (skip = 1), or to be inserted behind it (skip = 0).
    """
    ni, bi, i = parts_of(place) if place >= 0 else (0, 0, -1)
    lefts = find_lows(s, of, LEFT, ni, bi, i - skip, x, y, tie)
    find_lows(s, of, RIGHT, ni, bi, i + 1, x, y, tie)
    send_stairs(s, out, x, lefts, entry, False)
