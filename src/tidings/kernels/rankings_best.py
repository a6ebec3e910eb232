"""The best entries of ranges: the lowest of the range, then again and again the lowest of what is left beside those."""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BAD_SET,
    DONE,
    ENTRY,
    I64,
    INT64_MAX,
    INT64_MIN,
    PROGRESS,
    SET_TOP,
    SIZE,
    Int,
    K,
    Pointers,
    parts_of,
    pointers,
    root_of,
)
from tidings.kernels.rankings_blocks import block_at, seek
from tidings.kernels.rankings_scan import least_between, resolve

# Fields of a gap: from a place up to another, and its lowest entry.
START, END, GAP_Y, GAP_TIE, GAP_PLACE, GAP_FIELDS = range(6)


@kernel
def add_gap(s: Pointers, gaps: I64, n: Int, root: Int, kr: Int, start: Int, end: Int) -> Int:
    """Write a gap behind n others, if it has entries; returns how many there are then."""
    if start >= end:
        return n
    y, tie, least = least_between(s, root, kr, start, end)
    if least < 0:
        return n
    gaps[n, START], gaps[n, END] = start, end
    gaps[n, GAP_Y], gaps[n, GAP_TIE], gaps[n, GAP_PLACE] = y, tie, least
    return n + 1


@kernel
def best_of(s: Pointers, gaps: I64, of: Int, lo: Int, hi: Int, found: I64, at: Int) -> Int:
    """Write the best entries of a range in the order of their keys from place `at` on; returns where they end."""
    root, nodes, kr = root_of(s, of)
    if nodes == 0 or lo > hi:
        return at
    # NOWHERE is -1: behind that is the place of the first entry.
    start = 0 if lo == INT64_MIN else seek(s, of, lo - 1, INT64_MAX) + 1
    n = add_gap(s, gaps, 0, root, kr, start, seek(s, of, hi, INT64_MAX) + 1)
    last = at + s.head[K]
    while n and at < last:
        g = 0
        for other in range(1, n):
            if gaps[other, GAP_Y] < gaps[g, GAP_Y] or (
                gaps[other, GAP_Y] == gaps[g, GAP_Y] and gaps[other, GAP_TIE] < gaps[g, GAP_TIE]
            ):
                g = other
        start, end = gaps[g, START], gaps[g, END]
        place = resolve(s, root, kr, gaps[g, GAP_PLACE], gaps[g, GAP_Y], gaps[g, GAP_TIE])
        block, _, k = block_at(s, of, place)
        found[at] = s.m[block + (ENTRY << k) + parts_of(place)[2]]
        at += 1
        n -= 1
        gaps[g] = gaps[n]
        if at < last:
            n = add_gap(s, gaps, n, root, kr, start, place)
            n = add_gap(s, gaps, n, root, kr, place + 1, end)
    return at


@kernel
def best(
    head: I64, sets: I64, entries: I64, m: I64, work: I64, of: I64, los: I64, his: I64, starts: I64, found: I64
) -> Int:
    """The best entries of each range, at starts[i]:starts[i + 1] of `found`, that has room for k each; DONE or BAD_SET."""
    s = pointers(head, sets, entries, m, work)
    gaps = np.empty((head[K] + 2, GAP_FIELDS), np.int64)
    at = 0
    for i in range(of.shape[0]):
        if not 0 <= of[i] < head[SET_TOP] or sets[of[i], SIZE] < 0:
            head[PROGRESS] = i
            return BAD_SET
        at = best_of(s, gaps, of[i], los[i], his[i], found, at)
        starts[i + 1] = at
    return DONE
