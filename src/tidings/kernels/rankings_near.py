"""The points near the stairs of an entry, if they are not too many: gathered once, and then all is asked of the list.

Each has a *rank*: how many low entries it covers on the left of x, and how many in all. Those that cover less than k are
*live*: they hold the entry. In the list, the live come first. When an entry is met that k - 1 low ones and the live point
cover, the point is told and lives no more, but stays in the list: boxes must not be widened over it.
"""

from __future__ import annotations

from tidings.kernels.crowds_arrays import (
    FOUND_HI,
    FOUND_LO,
    FOUND_RANK,
    LEFT_LO,
    LIST_LIMIT,
    LISTED,
    LIVE,
    NEAR_HI,
    NEAR_LO,
    NEAR_RANK,
    RIGHT_HI,
    CrowdPointers,
)
from tidings.kernels.crowds_gather import gather
from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import INT64_MAX, INT64_MIN, LEFT, LOW_X, RIGHT, Int, K, Pointers
from tidings.kernels.rankings_columns import clear_columns, widen_column
from tidings.kernels.rankings_stairs import side_of

# A rank is the number of low entries on the left << LEFT_SHIFT | the number of all.
LEFT_SHIFT = 32
ALL = (1 << LEFT_SHIFT) - 1
ON_LEFT, ON_RIGHT = 1 << LEFT_SHIFT | 1, 1

CHUNK = 64
"""So many points are looked at before the result is."""


@kernel
def list_near(
    s: Pointers, c: CrowdPointers, of: Int, x: Int, lefts: Int, rights: Int, lo_min: Int, hi_max: Int
) -> None:
    """Gather the points that cover x, with lo from lo_min on and hi up to hi_max; not if they are too many."""
    n = gather(c, of, lo_min, x, x, hi_max, c.head[LIST_LIMIT])
    c.head[LISTED] = n
    if n <= 0:
        c.head[LIVE] = n
        return
    rank_found(s, c, n, lefts, rights)
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
def rank_found(s: Pointers, c: CrowdPointers, n: Int, lefts: Int, rights: Int) -> None:
    """Rank the points gathered."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    for i in range(n):
        c.work[FOUND_RANK + i] = 0
    for a in range(1, lefts + 1):
        x = s.work[left + LOW_X * stride + a]
        for i in range(n):
            c.work[FOUND_RANK + i] += ON_LEFT if c.work[FOUND_LO + i] <= x else 0
    for b in range(1, rights + 1):
        x = s.work[right + LOW_X * stride + b]
        for i in range(n):
            c.work[FOUND_RANK + i] += ON_RIGHT if c.work[FOUND_HI + i] >= x else 0


@kernel
def measure_near(c: CrowdPointers) -> None:
    """Find the least lo and the greatest hi of the live points."""
    lo, hi = INT64_MAX, INT64_MIN
    for i in range(c.head[LIVE]):
        lo, hi = min(lo, c.work[NEAR_LO + i]), max(hi, c.work[NEAR_HI + i])
    c.head[LEFT_LO], c.head[RIGHT_HI] = lo, hi


@kernel
def snap_near(s: Pointers, c: CrowdPointers) -> None:
    """Find the bounds of the live points in each column of the stairs."""
    clear_columns(s)
    for i in range(c.head[LIVE]):
        widen_column(s, c.work[NEAR_RANK + i] >> LEFT_SHIFT, c.work[NEAR_LO + i], c.work[NEAR_HI + i])


@kernel
def tell_near(s: Pointers, c: CrowdPointers, side: Int, x: Int) -> bool:
    """An entry at x on a side is low: find the bounds, in each column, of those it is told; False if there are none."""
    clear_columns(s)
    k, live = s.head[K], c.head[LIVE]
    before = live
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
def is_free_near(
    c: CrowdPointers,
    lo1_min: Int,
    lo1_max: Int,
    lo2_min: Int,
    lo2_max: Int,
    hi1_min: Int,
    hi1_max: Int,
    hi2_min: Int,
    hi2_max: Int,
) -> bool:
    """True if the bounds of two boxes, the first on the left of the second, hold no points but theirs."""
    hi_min, hi_max = min(hi1_min, hi2_min), max(hi1_max, hi2_max)
    n = c.head[LISTED]
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
