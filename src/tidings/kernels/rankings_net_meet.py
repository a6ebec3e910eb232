"""Who may take the place of an entry that fell or is gone, in a batch of changes.

The entries with keys between its old and its new one are met in ascending order by a sweep (see rankings_sweep) through
all points that would still hold it as it was. Several of a point's entries may be gone at once, so one met may be not just
the last that the point holds but any: who really gets it is found out later, once for all sweeps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    ENTRY,
    INT64_MAX,
    LEAST_PLACE,
    LEFT,
    LOOKUPS,
    LOW_PLACE,
    LOW_X,
    RIGHT,
    Int,
    K,
    Pointers,
    X,
    parts_of,
    root_of,
)
from tidings.kernels.rankings_blocks import block_at, seek
from tidings.kernels.rankings_net_steps import holds
from tidings.kernels.rankings_scan import resolve
from tidings.kernels.rankings_stairs import side_of
from tidings.kernels.rankings_sweep import enter_low, has_stairs, lowest_segment, measure

MET = -1
"""In `slots`: the entry has not been touched, but may take the place of another."""


class Batch(NamedTuple):
    """What is known of a batch, as pointers: see rankings_net_gather and rankings_net_steps."""

    touched: Any
    slots: Any
    met: Any
    """Entries that have not been touched, but may have to be told."""
    steps: Any


@kernel
def note(b: Batch, count: Int, at: Int, k: Int, entry: Int, x: Int, x_met: Int) -> Int:
    """Note an entry met that may take the place of one at x, whose old steps are given; returns how many there are."""
    if b.slots[entry] != 0 or not holds(b.steps, at, k, min(x, x_met), max(x, x_met)):
        return count
    b.slots[entry] = MET
    b.met[count] = entry
    return count + 1


@kernel
def meet(
    s: Pointers,
    b: Batch,
    count: Int,
    at: Int,
    of: Int,
    x: Int,
    y: Int,
    tie: Int,
    is_gone: bool,
    lefts: Int,
    rights: Int,
) -> tuple[Int, Int]:
    """Note each entry met while a key grows to (y, tie), or beyond all; like `sweep`.

    Returns how many are noted, and how many low entries are left of x in the end.
    """
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    root, nodes, kr = root_of(s, of)
    if nodes == 0:
        return count, lefts
    lookups = s.head[LOOKUPS]
    y_left, tie_left, a = lowest_segment(s, LEFT, lefts)
    y_right, tie_right, c = lowest_segment(s, RIGHT, rights)
    while has_stairs(s, x, lefts):
        lookups += 1
        is_left = c < 0 or (a >= 0 and (y_left < y_right or (y_left == y_right and tie_left < tie_right)))
        side, base, p, n = (LEFT, left, a, lefts) if is_left else (RIGHT, right, c, rights)
        y_met, tie_met = (y_left, tie_left) if is_left else (y_right, tie_right)
        if p < 0 or not (is_gone or y_met < y or (y_met == y and tie_met < tie)):
            break
        place = resolve(s, root, kr, s.work[base + LEAST_PLACE * stride + p], y_met, tie_met)
        block, _, kb = block_at(s, of, place)
        i = parts_of(place)[2]
        x_met = s.m[block + (X << kb) + i]
        if n == k and x_met == s.work[base + LOW_X * stride + k]:
            # As far out as the last low entry, so nobody is to get it; nor others at that x, which may be many.
            bound = seek(s, of, x_met, INT64_MAX) if is_left else seek(s, of, x_met - 1, INT64_MAX) + 1
            measure(s, of, side, p, s.work[base + LOW_PLACE * stride + p], bound)
            lookups -= 1
        else:
            count = note(b, count, at, k, s.m[block + (ENTRY << kb) + i], x, x_met)
            n = enter_low(s, of, side, p, n, x_met, place)
        if is_left:
            lefts = n
            y_left, tie_left, a = lowest_segment(s, LEFT, lefts)
        else:
            rights = n
            y_right, tie_right, c = lowest_segment(s, RIGHT, rights)
    s.head[LOOKUPS] = lookups
    return count, lefts
