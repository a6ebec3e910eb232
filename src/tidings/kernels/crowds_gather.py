"""All points in a box, if they are few; or the outermost one."""

from __future__ import annotations

from tidings.kernels.crowds_arrays import (
    CHILD,
    FOUND_HI,
    FOUND_LO,
    HI_MAX,
    LO_MIN,
    MET,
    MET_ACROSS,
    MET_INSIDE,
    STACK,
    CrowdPointers,
    Int,
    cell_of,
    lowest_bit,
)
from tidings.kernels.crowds_walk import (
    APART,
    call_cells,
    cells_met,
    choose_cells,
    meet_few,
    push_children,
    relation,
    start,
)
from tidings.kernels.jit import kernel


@kernel
def gather(c: CrowdPointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int, most: Int) -> Int:
    """Write the different points in a box to FOUND_LO and FOUND_HI of `work`; how many, or -1 if too many for `most`."""
    met = meet_few(c, of, lo_min, lo_max, hi_min, hi_max, most)
    if met < 0:
        return -1
    choose_cells(c, met, lo_min, lo_max, hi_min, hi_max)
    n = 0
    for i in range(met):
        at, inside = c.work[MET + i], c.work[MET_INSIDE + i]
        call_cells(c, at, inside)
        while inside:
            n += cell_of(c, at, lowest_bit(inside))[3]
            inside &= inside - 1
    # Too many are best found out before any is written.
    if n > most:
        return -1
    n = 0
    for i in range(met):
        at, inside, across = c.work[MET + i], c.work[MET_INSIDE + i], c.work[MET_ACROSS + i]
        while inside:
            los, his, _, size = cell_of(c, at, lowest_bit(inside))
            inside &= inside - 1
            for j in range(size):
                c.work[FOUND_LO + n + j], c.work[FOUND_HI + n + j] = c.m[los + j], c.m[his + j]
            n += size
        while across:
            los, his, _, size = cell_of(c, at, lowest_bit(across))
            across &= across - 1
            for j in range(size):
                lo, hi = c.m[los + j], c.m[his + j]
                c.work[FOUND_LO + n], c.work[FOUND_HI + n] = lo, hi
                n += (lo >= lo_min) & (lo <= lo_max) & (hi >= hi_min) & (hi <= hi_max)
        if n > most:
            return -1
    return n


@kernel
def leftmost(c: CrowdPointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[bool, Int, Int]:
    """True and a point in a box with the least lo, or False."""
    is_found, found_lo, found_hi = False, 0, 0
    depth = start(c, of)
    while depth:
        depth -= 1
        at = c.work[STACK + depth]
        if relation(c, at, lo_min, lo_max, hi_min, hi_max) == APART:
            continue
        if c.nodes[at + CHILD] < 0:
            depth = push_children(c, at, depth)
            one, other = c.work[STACK + depth - 1], c.work[STACK + depth - 2]
            if c.nodes[other + LO_MIN] < c.nodes[one + LO_MIN]:
                c.work[STACK + depth - 1], c.work[STACK + depth - 2] = other, one
            continue
        inside, across = cells_met(c, at, lo_min, lo_max, hi_min, hi_max)
        met = inside | across
        while met:
            los, his, _, n = cell_of(c, at, lowest_bit(met))
            met &= met - 1
            for j in range(n):
                lo, hi = c.m[los + j], c.m[his + j]
                if lo_min <= lo <= lo_max and hi_min <= hi <= hi_max:
                    is_found, found_lo, found_hi = True, lo, hi
                    if lo == lo_min:
                        return is_found, found_lo, found_hi
                    # From now on only what is better is in the box.
                    lo_max = lo - 1
    return is_found, found_lo, found_hi


@kernel
def rightmost(c: CrowdPointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[bool, Int, Int]:
    """True and a point in a box with the greatest hi, or False."""
    is_found, found_lo, found_hi = False, 0, 0
    depth = start(c, of)
    while depth:
        depth -= 1
        at = c.work[STACK + depth]
        if relation(c, at, lo_min, lo_max, hi_min, hi_max) == APART:
            continue
        if c.nodes[at + CHILD] < 0:
            depth = push_children(c, at, depth)
            one, other = c.work[STACK + depth - 1], c.work[STACK + depth - 2]
            if c.nodes[other + HI_MAX] > c.nodes[one + HI_MAX]:
                c.work[STACK + depth - 1], c.work[STACK + depth - 2] = other, one
            continue
        inside, across = cells_met(c, at, lo_min, lo_max, hi_min, hi_max)
        met = inside | across
        while met:
            los, his, _, n = cell_of(c, at, lowest_bit(met))
            met &= met - 1
            for j in range(n):
                lo, hi = c.m[los + j], c.m[his + j]
                if lo_min <= lo <= lo_max and hi_min <= hi <= hi_max:
                    is_found, found_lo, found_hi = True, lo, hi
                    if hi == hi_max:
                        return is_found, found_lo, found_hi
                    hi_min = hi + 1
    return is_found, found_lo, found_hi
