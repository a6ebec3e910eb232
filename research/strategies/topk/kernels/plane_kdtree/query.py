"""What is in a closed box of the plane: the bounds of its points, whether there are any, all of them, or the outermost one.

A record that is apart from the box is passed over; one inside of it answers for all below; only those that the border of
the box goes across are gone into. So it is with the cells of a block.

Memory is far away: a walk first finds some records, then looks at the cells of their blocks, and only then at points,
each step having asked for what the next one needs.
"""

from __future__ import annotations

from research.strategies.topk.kernels.plane_kdtree.layout import (
    CELL_BITS,
    CELL_FIELDS,
    CELL_WORDS,
    CHILD,
    FOUND_HI,
    FOUND_LO,
    HI_MAX,
    HI_MIN,
    INT64_MAX,
    INT64_MIN,
    LINE,
    LO_MAX,
    LO_MIN,
    MET,
    MET_ACROSS,
    MET_INSIDE,
    MET_MAX,
    RECORD,
    SIZE,
    STACK,
    Int,
    TreePointers,
    block_of,
    cell_of,
    cells_of,
    root_of,
)
from tidings.kernels.intrinsics import lowest_bit, prefetch
from tidings.kernels.jit import kernel

APART, ACROSS, INSIDE = 0, 1, 2


@kernel
def relation(c: TreePointers, at: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> Int:
    """How the bounds of a record lie to a box."""
    lo1, lo2 = c.nodes[at + LO_MIN], c.nodes[at + LO_MAX]
    hi1, hi2 = c.nodes[at + HI_MIN], c.nodes[at + HI_MAX]
    if lo1 > lo_max or lo2 < lo_min or hi1 > hi_max or hi2 < hi_min:
        return APART
    if lo1 >= lo_min and lo2 <= lo_max and hi1 >= hi_min and hi2 <= hi_max:
        return INSIDE
    return ACROSS


@kernel
def start(c: TreePointers, of: Int) -> Int:
    """Puts the root of a set on the stack; returns the depth of that, 0 if the set has no points."""
    c.work[STACK] = root_of(c, of)
    return 1 if c.work[STACK] >= 0 else 0


@kernel
def push_children(c: TreePointers, at: Int, depth: Int) -> Int:
    """Puts the two records below one on the stack; returns the new depth."""
    c.work[STACK + depth] = ~c.nodes[at + CHILD] + RECORD
    c.work[STACK + depth + 1] = ~c.nodes[at + CHILD]
    return depth + 2


@kernel
def cells_met(c: TreePointers, at: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[Int, Int]:
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
def prefetch_block(c: TreePointers, at: Int) -> None:
    """Prefetches what is needed to choose cells of a block; of a small one, for all of it."""
    offset, k = block_of(c, at)
    words = 2 << k if k <= CELL_BITS else CELL_FIELDS * cells_of(k)
    for line in range(0, words, LINE):
        prefetch(c.m, offset + line)


@kernel
def prefetch_cells(c: TreePointers, at: Int, cells: Int) -> None:
    """Prefetches the points of some cells of a block."""
    if block_of(c, at)[1] > CELL_BITS:
        while cells:
            los = cell_of(c, at, lowest_bit(cells))[0]
            cells &= cells - 1
            for line in range(0, CELL_WORDS, LINE):
                prefetch(c.m, los + line)


@kernel
def meet(c: TreePointers, depth: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[Int, Int]:
    """Goes on with a walk until enough has been met: blocks across a box, and the complement of records inside.

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
                prefetch_block(c, at)
                c.work[MET + n] = at
                n += 1
    return depth, n


@kernel
def meet_few(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int, most: Int) -> Int:
    """Meets all blocks that are not apart from a box; how many, or -1 if they are too many, or have more than `most` points."""
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
            prefetch_block(c, at)
            c.work[MET + n] = at
            n += 1
    return n


@kernel
def choose_cells(c: TreePointers, n: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> None:
    """Finds the cells of blocks met that are inside of a box, and those that are across, which are prefetched."""
    for i in range(n):
        at = c.work[MET + i]
        if at >= 0:
            inside, across = cells_met(c, at, lo_min, lo_max, hi_min, hi_max)
            c.work[MET_INSIDE + i], c.work[MET_ACROSS + i] = inside, across
            prefetch_cells(c, at, across)


@kernel
def tighten(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[Int, Int, Int, Int]:
    """The least bounds (lo_min, lo_max, hi_min, hi_max) of the points in a box; of none: the greatest and the least integer."""
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
def has_any(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> bool:
    """Whether there is a point in a box."""
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
def gather(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int, most: Int) -> Int:
    """Writes the different points in a box to FOUND_LO and FOUND_HI of `work`; how many, or -1 if too many for `most`."""
    met = meet_few(c, of, lo_min, lo_max, hi_min, hi_max, most)
    if met < 0:
        return -1
    choose_cells(c, met, lo_min, lo_max, hi_min, hi_max)
    n = 0
    for i in range(met):
        at, inside = c.work[MET + i], c.work[MET_INSIDE + i]
        prefetch_cells(c, at, inside)
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
def leftmost(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[bool, Int, Int]:
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
def rightmost(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[bool, Int, Int]:
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
