"""The points near the stairs of an entry, if they are too many for a list: everything is asked of the tree.

Known at any time are two points that hold the entry, one with the least lo and one with the greatest hi. New ones are
looked for only when these have been told, from the outermost columns, or rows, on.
"""

from __future__ import annotations

from tidings.kernels.crowds_arrays import LEFT_HI, LEFT_LO, RIGHT_HI, RIGHT_LO, CrowdPointers
from tidings.kernels.crowds_gather import leftmost, rightmost
from tidings.kernels.crowds_query import has_any, tighten
from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import EDGE, INT64_MAX, INT64_MIN, IS_JOINED, LEFT, LOW_X, RIGHT, Int, K, Pointers
from tidings.kernels.rankings_columns import clear_columns, columns_of, set_column
from tidings.kernels.rankings_stairs import side_of
from tidings.kernels.rankings_sweep import chain_columns


@kernel
def snap_stairs(s: Pointers, c: CrowdPointers, of: Int, x: Int, columns: Int) -> None:
    """Find the bounds of the points in each column of the stairs; of joined ones with the same top, in the first of them."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    marks = columns_of(s)[0] + IS_JOINED * stride
    k = s.head[K]
    clear_columns(s)
    a = 0
    while a < columns:
        lo_max, top = s.work[left + LOW_X * stride + a], s.work[right + EDGE * stride + k - a]
        last = a
        # A column that is empty whoever is there must not be the first: it counts as joined with the one before.
        if s.work[left + EDGE * stride + a + 1] <= lo_max:
            while (
                last + 1 < columns and s.work[right + EDGE * stride + k - last - 1] == top and s.work[marks + last + 1]
            ):
                last += 1
            lo1, lo2, hi1, hi2 = tighten(c, of, s.work[left + EDGE * stride + last + 1], lo_max, x, top)
            set_column(s, a, lo1, lo2, hi1, hi2)
        a = last + 1


@kernel
def snap_chain(s: Pointers, c: CrowdPointers, of: Int, side: Int, p: Int, x: Int, lefts: Int, rights: Int) -> None:
    """Find the bounds of the points in each column of a chain."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    clear_columns(s)
    first, last = chain_columns(s, side, p, lefts, rights)
    for a in range(first, last + 1):
        b = s.head[K] - 1 - a
        lo_min, lo_max = s.work[left + EDGE * stride + a + 1], min(s.work[left + LOW_X * stride + a], x)
        hi_min, hi_max = max(s.work[right + LOW_X * stride + b], x), s.work[right + EDGE * stride + b + 1]
        if lo_min <= lo_max and hi_min <= hi_max:
            lo1, lo2, hi1, hi2 = tighten(c, of, lo_min, lo_max, hi_min, hi_max)
            set_column(s, a, lo1, lo2, hi1, hi2)


@kernel
def is_live(s: Pointers, lefts: Int, rights: Int, lo: Int, hi: Int) -> bool:
    """True if a point that covers x covers fewer than k low entries."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    covered = 0
    for a in range(1, lefts + 1):
        covered += s.work[left + LOW_X * stride + a] >= lo
    for b in range(1, rights + 1):
        covered += s.work[right + LOW_X * stride + b] <= hi
    return bool(covered < s.head[K])


@kernel
def find_left(s: Pointers, c: CrowdPointers, of: Int, x: Int, lefts: Int) -> bool:
    """Find a live point with the least lo, which is not below that of the last one; False if there is none."""
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
def find_right(s: Pointers, c: CrowdPointers, of: Int, x: Int, rights: Int) -> None:
    """Find a live point with the greatest hi, which is not above that of the last one; there is one."""
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
def start_far(s: Pointers, c: CrowdPointers, of: Int, x: Int, lefts: Int, rights: Int) -> bool:
    """Find both points for the first time; False if there are none."""
    c.head[LEFT_LO], c.head[RIGHT_HI] = INT64_MIN, INT64_MAX
    if not find_left(s, c, of, x, lefts):
        return False
    find_right(s, c, of, x, rights)
    return True


@kernel
def follow_far(s: Pointers, c: CrowdPointers, of: Int, x: Int, lefts: Int, rights: Int) -> bool:
    """Find others for those that live no more; False if there are none."""
    if not is_live(s, lefts, rights, c.head[LEFT_LO], c.head[LEFT_HI]) and not find_left(s, c, of, x, lefts):
        return False
    if not is_live(s, lefts, rights, c.head[RIGHT_LO], c.head[RIGHT_HI]):
        find_right(s, c, of, x, rights)
    return True


@kernel
def is_free_far(
    c: CrowdPointers,
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
    """As rankings_near.is_free_near, by what is left of the bounds of both boxes: above and below each, and between."""
    hi_min, hi_max = min(hi1_min, hi2_min), max(hi1_max, hi2_max)
    if hi1_max < hi_max and has_any(c, of, lo1_min, lo1_max, hi1_max + 1, hi_max):
        return False
    if hi2_max < hi_max and has_any(c, of, lo2_min, lo2_max, hi2_max + 1, hi_max):
        return False
    if hi_min < hi1_min and has_any(c, of, lo1_min, lo1_max, hi_min, hi1_min - 1):
        return False
    if hi_min < hi2_min and has_any(c, of, lo2_min, lo2_max, hi_min, hi2_min - 1):
        return False
    return bool(lo1_max + 1 > lo2_min - 1 or not has_any(c, of, lo1_max + 1, lo2_min - 1, hi_min, hi_max))
