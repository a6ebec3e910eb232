"""What is in a closed box: how many points, their bounds, if there are any."""

from __future__ import annotations

import numpy as np

from tidings.kernels.crowds_arrays import (
    CHILD,
    COUNT,
    HI_MAX,
    HI_MIN,
    I64,
    INT64_MAX,
    INT64_MIN,
    LO_MAX,
    LO_MIN,
    MET,
    MET_ACROSS,
    MET_INSIDE,
    STACK,
    CrowdPointers,
    Int,
    block_of,
    cell_of,
    cells_of,
    crowd_pointers,
    lowest_bit,
)
from tidings.kernels.crowds_walk import (
    APART,
    INSIDE,
    cells_met,
    choose_cells,
    meet,
    push_children,
    relation,
    start,
)
from tidings.kernels.jit import kernel


@kernel
def snap(
    c: CrowdPointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int
) -> tuple[Int, Int, Int, Int, Int]:
    """How many points are in a box, and their bounds."""
    count = 0
    lo1 = hi1 = INT64_MAX
    lo2 = hi2 = INT64_MIN
    depth = start(c, of)
    while depth:
        depth -= 1
        at = c.work[STACK + depth]
        how = relation(c, at, lo_min, lo_max, hi_min, hi_max)
        if how == APART:
            continue
        if how == INSIDE:
            count += c.nodes[at + COUNT]
            lo1, lo2 = min(lo1, c.nodes[at + LO_MIN]), max(lo2, c.nodes[at + LO_MAX])
            hi1, hi2 = min(hi1, c.nodes[at + HI_MIN]), max(hi2, c.nodes[at + HI_MAX])
            continue
        if c.nodes[at + CHILD] < 0:
            depth = push_children(c, at, depth)
            continue
        inside, across = cells_met(c, at, lo_min, lo_max, hi_min, hi_max)
        met = inside | across
        while met:
            i = lowest_bit(met)
            met &= met - 1
            los, his, times, n = cell_of(c, at, i)
            for j in range(n):
                lo, hi = c.m[los + j], c.m[his + j]
                is_in = (lo >= lo_min) & (lo <= lo_max) & (hi >= hi_min) & (hi <= hi_max)
                lo1, lo2 = min(lo1, lo if is_in else INT64_MAX), max(lo2, lo if is_in else INT64_MIN)
                hi1, hi2 = min(hi1, hi if is_in else INT64_MAX), max(hi2, hi if is_in else INT64_MIN)
                count += c.m[times + j] if is_in else 0
    return count, lo1, lo2, hi1, hi2


@kernel
def tighten(c: CrowdPointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[Int, Int, Int, Int]:
    """The bounds of the points in a box, without their number, for which fewer have to be looked at."""
    lo1 = hi1 = INT64_MAX
    lo2 = hi2 = INT64_MIN
    depth = start(c, of)
    while depth:
        depth, met = meet(c, depth, lo_min, lo_max, hi_min, hi_max)
        choose_cells(c, met, lo_min, lo_max, hi_min, hi_max)
        for i in range(met):
            at = c.work[MET + i]
            if at < 0:
                at = ~at
                lo1, lo2 = min(lo1, c.nodes[at + LO_MIN]), max(lo2, c.nodes[at + LO_MAX])
                hi1, hi2 = min(hi1, c.nodes[at + HI_MIN]), max(hi2, c.nodes[at + HI_MAX])
                continue
            inside, across = c.work[MET_INSIDE + i], c.work[MET_ACROSS + i]
            offset, k = block_of(c, at)
            cells = cells_of(k)
            while inside:
                cell = offset + lowest_bit(inside)
                inside &= inside - 1
                lo1, lo2 = min(lo1, c.m[cell + LO_MIN * cells]), max(lo2, c.m[cell + LO_MAX * cells])
                hi1, hi2 = min(hi1, c.m[cell + HI_MIN * cells]), max(hi2, c.m[cell + HI_MAX * cells])
            while across:
                los, his, _, n = cell_of(c, at, lowest_bit(across))
                across &= across - 1
                for j in range(n):
                    lo, hi = c.m[los + j], c.m[his + j]
                    is_in = (lo >= lo_min) & (lo <= lo_max) & (hi >= hi_min) & (hi <= hi_max)
                    lo1, lo2 = min(lo1, lo if is_in else INT64_MAX), max(lo2, lo if is_in else INT64_MIN)
                    hi1, hi2 = min(hi1, hi if is_in else INT64_MAX), max(hi2, hi if is_in else INT64_MIN)
    return lo1, lo2, hi1, hi2


@kernel
def has_any(c: CrowdPointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> bool:
    """True if there is a point in a box."""
    depth = start(c, of)
    while depth:
        depth -= 1
        at = c.work[STACK + depth]
        how = relation(c, at, lo_min, lo_max, hi_min, hi_max)
        if how == APART:
            continue
        if how == INSIDE:
            return True
        if c.nodes[at + CHILD] < 0:
            depth = push_children(c, at, depth)
            continue
        inside, across = cells_met(c, at, lo_min, lo_max, hi_min, hi_max)
        if inside:
            return True
        while across:
            i = lowest_bit(across)
            across &= across - 1
            los, his, _, n = cell_of(c, at, i)
            is_any = False
            for j in range(n):
                lo, hi = c.m[los + j], c.m[his + j]
                is_any |= (lo >= lo_min) & (lo <= lo_max) & (hi >= hi_min) & (hi <= hi_max)
            if is_any:
                return True
    return False


@kernel
def snap_boxes(
    head: I64, sets: I64, nodes: I64, m: I64, work: I64, of: I64, box_lo: I64, box_hi: I64
) -> tuple[I64, I64, I64]:
    """How many points are in each box [n, 2], and their bounds [n, 2]."""
    c = crowd_pointers(head, sets, nodes, m, work)
    counts = np.empty(of.shape[0], np.int64)
    lows, highs = np.empty_like(box_lo), np.empty_like(box_hi)
    for i in range(of.shape[0]):
        counts[i], lows[i, 0], highs[i, 0], lows[i, 1], highs[i, 1] = snap(
            c, of[i], box_lo[i, 0], box_hi[i, 0], box_lo[i, 1], box_hi[i, 1]
        )
    return counts, lows, highs
