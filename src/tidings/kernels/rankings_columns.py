"""Columns: what is known of the points in each step of stairs, or in each cell of a chain.

Columns go from right to left: those of a send have no lo in common, so nor have the boxes made of them. A column has the
bounds of its points, or none. Some are joined with the one before in any case: these are marked.
"""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    COLUMN_HI_MAX,
    COLUMN_HI_MIN,
    COLUMN_LO_MAX,
    COLUMN_LO_MIN,
    EDGE,
    GROUPS,
    INT64_MAX,
    INT64_MIN,
    IS_JOINED,
    LEFT,
    LOW_X,
    RIGHT,
    SNAPS,
    WORK_FIELDS,
    Int,
    K,
    Pointers,
)
from tidings.kernels.rankings_stairs import group_of, side_of
from tidings.kernels.rankings_sweep import chain_columns


@kernel
def columns_of(s: Pointers) -> tuple[Int, Int]:
    """Where in `work` the first field of columns is, and how far it is to the next field."""
    stride = s.head[K] + 2
    return 2 * WORK_FIELDS * stride, stride


@kernel
def clear_columns(s: Pointers) -> None:
    """Let no column have points."""
    at, stride = columns_of(s)
    for a in range(s.head[K]):
        s.work[at + COLUMN_LO_MIN * stride + a] = s.work[at + COLUMN_HI_MIN * stride + a] = INT64_MAX
        s.work[at + COLUMN_LO_MAX * stride + a] = s.work[at + COLUMN_HI_MAX * stride + a] = INT64_MIN


@kernel
def widen_column(s: Pointers, a: Int, lo: Int, hi: Int) -> None:
    """A column has a point."""
    at, stride = columns_of(s)
    at += a
    s.work[at + COLUMN_LO_MIN * stride] = min(s.work[at + COLUMN_LO_MIN * stride], lo)
    s.work[at + COLUMN_LO_MAX * stride] = max(s.work[at + COLUMN_LO_MAX * stride], lo)
    s.work[at + COLUMN_HI_MIN * stride] = min(s.work[at + COLUMN_HI_MIN * stride], hi)
    s.work[at + COLUMN_HI_MAX * stride] = max(s.work[at + COLUMN_HI_MAX * stride], hi)


@kernel
def set_column(s: Pointers, a: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> None:
    """A column has points with such bounds."""
    at, stride = columns_of(s)
    at += a
    s.work[at + COLUMN_LO_MIN * stride], s.work[at + COLUMN_LO_MAX * stride] = lo_min, lo_max
    s.work[at + COLUMN_HI_MIN * stride], s.work[at + COLUMN_HI_MAX * stride] = hi_min, hi_max


@kernel
def mark_stairs(s: Pointers, x: Int, lefts: Int) -> Int:
    """Mark the columns of stairs to be joined with the one before: with the same top, or of the same group; how many."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    marks = columns_of(s)[0] + IS_JOINED * stride
    groups, k = s.head[GROUPS], s.head[K]
    last_top, last_group, box_top = INT64_MIN, -1, INT64_MIN
    n = min(lefts + 1, k)
    for a in range(n):
        s.work[marks + a] = True
        if s.work[left + EDGE * stride + a + 1] > s.work[left + LOW_X * stride + a]:
            continue
        top, group = s.work[right + EDGE * stride + k - a], group_of(groups, k, a)
        if top < x:
            n = a
            break
        is_joined = top == box_top or group == last_group
        s.head[SNAPS] += not is_joined or top != last_top
        s.work[marks + a] = is_joined
        box_top = box_top if is_joined else top
        last_top, last_group = top, group
    return n


@kernel
def mark_chain(s: Pointers, side: Int, p: Int, x: Int, lefts: Int, rights: Int) -> tuple[Int, Int]:
    """Mark the columns of a chain to be joined with the one before, of the same group; first and last column."""
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    marks = columns_of(s)[0] + IS_JOINED * stride
    groups, k = s.head[GROUPS], s.head[K]
    first, last = chain_columns(s, side, p, lefts, rights)
    last_group = -1
    for a in range(first, last + 1):
        b = k - 1 - a
        s.work[marks + a] = True
        if s.work[left + EDGE * stride + a + 1] > min(s.work[left + LOW_X * stride + a], x):
            continue
        if max(s.work[right + LOW_X * stride + b], x) > s.work[right + EDGE * stride + b + 1]:
            continue
        s.head[SNAPS] += 1
        group = group_of(groups, k, a)
        s.work[marks + a] = group == last_group
        last_group = group
    return first, last
