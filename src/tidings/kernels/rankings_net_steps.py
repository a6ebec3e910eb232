"""Steps: staircases of the plane of ranges, kept as numbers, so that those of two states can be compared.

The points that hold an entry at x are a staircase (see rankings_stairs): for each lo up to x, hi goes from x up to a top,
which does not grow as lo falls. Steps are written down from right to left, each with its least lo and its top:

    n, then lo of n steps, then top of n steps; room for k + 1 of each

What is between two staircases, or in the one or the other, is cut into boxes at all lo where either has a step.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.arrays import pointer
from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    EDGE,
    ENTRY_FIELDS,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    INT64_MIN,
    LEFT,
    LOW_X,
    OWNER,
    RIGHT,
    Int,
    K,
    Pointers,
    pointers,
)
from tidings.kernels.rankings_net_lows import edges_around
from tidings.kernels.rankings_stairs import OutputPointers, put_box, side_of

NONE = INT64_MIN
"""A top that is below all points."""

SEND_BOXES = 6
"""A send has at most so many times k + 1 boxes: those between the steps of three staircases, in two parts."""


def steps_width(k: int) -> int:
    """Words that steps take."""
    return 2 * k + 3


@kernel
def write_steps(s: Pointers, t: Any, at: Int, x: Int, lefts: Int, before: Int) -> None:
    """Write the steps of the points that hold an entry at x, given its low entries.

    They may be needed for all lo up to one that is greater than x: `before`.
    """
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    los, tops = at + 1, at + k + 2
    n = 0
    if before > x:
        t[los], t[tops] = x + 1, NONE
        n = 1
    for a in range(min(lefts + 1, k)):
        lo = s.work[left + EDGE * stride + a + 1]
        if lo > s.work[left + LOW_X * stride + a]:
            continue
        top = s.work[right + EDGE * stride + k - a]
        if top < x:
            break
        if n == 0 or t[tops + n - 1] != top:
            t[tops + n] = top
            n += 1
        t[los + n - 1] = lo
    t[at] = n


@kernel
def step_at(t: Any, at: Int, c: Int, lo: Int) -> Int:
    """Number of the step that lo is in, c or a later one."""
    while c < t[at] and t[at + 1 + c] > lo:
        c += 1
    return c


@kernel
def top_of(t: Any, at: Int, k: Int, c: Int) -> Int:
    """Top of a step; NONE behind the last."""
    return t[at + k + 2 + c] if c < t[at] else NONE


@kernel
def lo_of(t: Any, at: Int, c: Int) -> Int:
    """Least lo of a step; that of the plane behind the last."""
    return t[at + 1 + c] if c < t[at] else INT64_MIN


@kernel
def holds(t: Any, at: Int, k: Int, lo: Int, hi: Int) -> bool:
    """True if a point, whose range has the x of the entry in it, is below the steps."""
    return bool(top_of(t, at, k, step_at(t, at, 0, lo)) >= hi)


@kernel
def paint(
    s: Pointers,
    out: OutputPointers,
    boxes: Int,
    t: Any,
    f: Int,
    g: Int,
    h: Int,
    is_union: bool,
    lo_max: Int,
    hi_min: Int,
    hi_max: Int,
) -> Int:
    """Write boxes of the points below both f and g, and not below h; or, for a union, of those below both, or below h.

    Of these the ones with lo up to lo_max, and hi from hi_min to hi_max. `boxes` are there already; returns how many are
    then.
    """
    k = s.head[K]
    first = boxes
    cf = cg = ch = 0
    while True:
        cf, cg, ch = step_at(t, f, cf, lo_max), step_at(t, g, cg, lo_max), step_at(t, h, ch, lo_max)
        top, other = min(top_of(t, f, k, cf), top_of(t, g, k, cg)), top_of(t, h, k, ch)
        if is_union:
            top, other = max(top, other), NONE
        if top < hi_min:
            return boxes
        lo_min = max(lo_of(t, f, cf), lo_of(t, g, cg), lo_of(t, h, ch))
        if other < top:
            bottom, end, last = max(hi_min, other + 1), min(top, hi_max), 2 * boxes - 2
            if boxes > first and out.lo[last] == lo_max + 1 and out.lo[last + 1] == bottom and out.hi[last + 1] == end:
                out.lo[last] = lo_min
            elif bottom <= end:
                put_box(out, boxes, lo_min, lo_max, bottom, end)
                boxes += 1
        if lo_min == INT64_MIN:
            return boxes
        lo_max = lo_min - 1


@kernel
def keep(head: I64, sets: I64, entries: I64, m: I64, work: I64, listed: I64, kept: I64) -> None:
    """Write down, for each entry listed, all present, the steps of those who hold it: a row of `kept`."""
    s = pointers(head, sets, entries, m, work)
    t = pointer(kept)
    for i in range(listed.shape[0]):
        at = listed[i] * ENTRY_FIELDS
        x = s.entries[at + ENTRY_X]
        lefts = edges_around(s, s.entries[at + OWNER] - 1, x, s.entries[at + ENTRY_Y], s.entries[at + ENTRY_TIE])
        write_steps(s, t, i * kept.shape[1], x, lefts, x)
