"""Walks over the tree of a set, for a closed box.

A record that is apart from the box is passed over; one inside of it answers for all below; only those that the border of
the box goes across are gone into. So it is with the cells of a block.

Memory is far away: a walk first finds some records, then looks at the cells of their blocks, and only then at points,
each step having asked for what the next one needs.
"""

from __future__ import annotations

from tidings.kernels.crowds_arrays import (
    CELL_BITS,
    CELL_FIELDS,
    CELL_WORDS,
    CHILD,
    HI_MAX,
    HI_MIN,
    LO_MAX,
    LO_MIN,
    MET,
    MET_ACROSS,
    MET_INSIDE,
    MET_MAX,
    RECORD,
    SIZE,
    STACK,
    CrowdPointers,
    Int,
    block_of,
    cell_of,
    cells_of,
    lowest_bit,
    prefetch,
    root_of,
)
from tidings.kernels.jit import kernel

APART, ACROSS, INSIDE = 0, 1, 2
LINE = 8
"""Words of a line of the processor's cache."""


@kernel
def relation(c: CrowdPointers, at: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> Int:
    """How the bounds of a record lie to a box."""
    lo1, lo2 = c.nodes[at + LO_MIN], c.nodes[at + LO_MAX]
    hi1, hi2 = c.nodes[at + HI_MIN], c.nodes[at + HI_MAX]
    if lo1 > lo_max or lo2 < lo_min or hi1 > hi_max or hi2 < hi_min:
        return APART
    if lo1 >= lo_min and lo2 <= lo_max and hi1 >= hi_min and hi2 <= hi_max:
        return INSIDE
    return ACROSS


@kernel
def start(c: CrowdPointers, of: Int) -> Int:
    """Start a walk: put the root of a set on the stack; returns the depth of that, 0 if the set has no points."""
    c.work[STACK] = root_of(c, of)
    return 1 if c.work[STACK] >= 0 else 0


@kernel
def push_children(c: CrowdPointers, at: Int, depth: Int) -> Int:
    """Put the two records below one on the stack; returns the new depth."""
    c.work[STACK + depth] = ~c.nodes[at + CHILD] + RECORD
    c.work[STACK + depth + 1] = ~c.nodes[at + CHILD]
    return depth + 2


@kernel
def cells_met(c: CrowdPointers, at: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[Int, Int]:
    """The cells of a block, which is not apart, that are inside of a box, and those that are across; as sets of bits."""
    offset, k = block_of(c, at)
    if k <= CELL_BITS:
        return 0, 1
    cells = cells_of(k)
    inside = across = 0
    for i in range(cells):
        lo1, lo2 = c.m[offset + LO_MIN * cells + i], c.m[offset + LO_MAX * cells + i]
        hi1, hi2 = c.m[offset + HI_MIN * cells + i], c.m[offset + HI_MAX * cells + i]
        is_met = (lo1 <= lo_max) & (lo2 >= lo_min) & (hi1 <= hi_max) & (hi2 >= hi_min)
        is_inside = (lo1 >= lo_min) & (lo2 <= lo_max) & (hi1 >= hi_min) & (hi2 <= hi_max)
        inside |= (1 << i) if is_met & is_inside else 0
        across |= (1 << i) if is_met & (not is_inside) else 0
    return inside, across


@kernel
def call_block(c: CrowdPointers, at: Int) -> None:
    """Ask for what is needed to choose cells of a block; of a small one, for all of it."""
    offset, k = block_of(c, at)
    words = 2 << k if k <= CELL_BITS else CELL_FIELDS * cells_of(k)
    for line in range(0, words, LINE):
        prefetch(c.m, offset + line)


@kernel
def call_cells(c: CrowdPointers, at: Int, cells: Int) -> None:
    """Ask for the points of some cells of a block."""
    if block_of(c, at)[1] > CELL_BITS:
        while cells:
            los = cell_of(c, at, lowest_bit(cells))[0]
            cells &= cells - 1
            for line in range(0, CELL_WORDS, LINE):
                prefetch(c.m, los + line)


@kernel
def meet(c: CrowdPointers, depth: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[Int, Int]:
    """Go on with a walk until enough has been met: blocks across a box, and the complement of records inside.

    Returns the depth of the stack that is left, and how many there are in MET.
    """
    n = 0
    while depth and n < MET_MAX:
        depth -= 1
        at = c.work[STACK + depth]
        how = relation(c, at, lo_min, lo_max, hi_min, hi_max)
        if how == INSIDE:
            c.work[MET + n] = ~at
            n += 1
        elif how == ACROSS:
            if c.nodes[at + CHILD] < 0:
                depth = push_children(c, at, depth)
            else:
                call_block(c, at)
                c.work[MET + n] = at
                n += 1
    return depth, n


@kernel
def meet_few(c: CrowdPointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int, most: Int) -> Int:
    """Meet all blocks that are not apart from a box; how many, or -1 if they are too many, or have more than `most` points."""
    n = 0
    depth = start(c, of)
    while depth:
        depth -= 1
        at = c.work[STACK + depth]
        how = relation(c, at, lo_min, lo_max, hi_min, hi_max)
        if how == APART:
            continue
        if n == MET_MAX or (how == INSIDE and c.nodes[at + SIZE] > most):
            return -1
        if c.nodes[at + CHILD] < 0:
            depth = push_children(c, at, depth)
        else:
            call_block(c, at)
            c.work[MET + n] = at
            n += 1
    return n


@kernel
def choose_cells(c: CrowdPointers, n: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> None:
    """Find the cells of blocks met that are inside of a box, and those that are across, which are asked for."""
    for i in range(n):
        at = c.work[MET + i]
        if at >= 0:
            inside, across = cells_met(c, at, lo_min, lo_max, hi_min, hi_max)
            c.work[MET_INSIDE + i], c.work[MET_ACROSS + i] = inside, across
            call_cells(c, at, across)
