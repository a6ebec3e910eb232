"""Where to cut a space of ranges into cells, so that zones have equal shares of the points and hear few messages.

A message about value v of a column concerns points with lo <= v <= hi. So a cell hears it only if its lowest `lo` is not
above v and its highest `hi` not below. Equalities lie on the diagonal: cut along `lo` at x, then along `hi` at x, they are
apart from all that is open, and hear messages about values up to x only:

        hi |  open, and ranges   |  lo > x         How many messages a cell hears is estimated from the ends of the
           |  that hold x        |                 points' own ranges, as if values were spread like these. Cells that
         x +---------------------+                 hear most are given to the same zones, those that hear little to
           |  hi <= x            |                 others.
           +---------------------+------- lo
                                 x
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array
from tidings.model.space import ParameterSpace

CELLS_PER_ZONE = 4
_SPARED_MIN = 0.01
"""Cuts that spare less of the work in a cell than this share are not made."""


class Range(NamedTuple):
    """Where the two ends of a column's ranges stand among the coordinates."""

    lo: int
    hi: int


class _Cell(NamedTuple):
    lo: Int64Array
    hi: Int64Array
    points: Int64Array
    heard: float
    """Share of the messages that the cell hears, as estimated."""


def paired_axes(space: ParameterSpace) -> list[Range]:
    """The columns of whose ranges the space has both ends, where zones may be cut along both; the channel is coordinate 0."""
    place_of = {axis: 1 + i for i, axis in enumerate(space.axes) if space.may_cut[1 + i]}
    columns = [axis.removeprefix("lo ") for axis in place_of if axis.startswith("lo ")]
    return [
        Range(place_of[f"lo {column}"], place_of[f"hi {column}"]) for column in columns if f"hi {column}" in place_of
    ]


def cut_ranges(points: Int64Array, ranges: Sequence[Range], zones: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Cells of a space whose points are [n, coordinates]: closed ends lo and hi [cells, coordinates], and owners."""
    values = [_finite(points[:, [each.lo, each.hi]]) for each in ranges]
    lo = np.full(points.shape[1], CODE_MIN, np.int64)
    cells = [_Cell(lo, np.full_like(lo, CODE_MAX), points, 1.0)]
    final: list[_Cell] = []
    while cells and len(cells) + len(final) < CELLS_PER_ZONE * zones:
        heaviest = cells.pop(max(range(len(cells)), key=lambda i: len(cells[i].points)))
        halves = _best_cut(heaviest, ranges, values)
        if halves is None:
            final.append(heaviest)
        else:
            cells.extend(halves)
    cells = sorted([*final, *cells], key=lambda cell: (-cell.heard, cell.lo.tolist()))
    before = np.cumsum([0, *(len(cell.points) for cell in cells)])[:-1]
    owner = np.minimum(before * zones // max(1, len(points)), zones - 1)
    return np.array([cell.lo for cell in cells]), np.array([cell.hi for cell in cells]), owner


def _finite(ends: Int64Array) -> Int64Array:
    return np.sort(ends[(ends != CODE_MIN) & (ends != CODE_MAX)], axis=None)


def _best_cut(cell: _Cell, ranges: Sequence[Range], values: Sequence[Int64Array]) -> list[_Cell] | None:
    """The halves of the cell that together have least to do (points times messages); None if no cut spares much."""
    best, least = None, len(cell.points) * cell.heard * (1 - _SPARED_MIN)
    for each, known in zip(ranges, values, strict=True):
        if not len(known):
            continue
        for dim in each:
            for at in _places(cell, each, dim):
                halves = _cut(cell, each, dim, at, known)
                work = sum(len(half.points) * half.heard for half in halves)
                if work < least:
                    best, least = halves, work
    return best


def _places(cell: _Cell, each: Range, dim: int) -> Iterator[int]:
    """Where a cut may be worth while: in the middle of the ends there are, and where the other end was cut."""
    ends = _finite(cell.points[:, dim])
    middle = [int(ends[(len(ends) - 1) // 2])] if len(ends) else []
    other = int(cell.hi[each.lo]) if dim == each.hi else max(CODE_MIN, int(cell.lo[each.hi]) - 1)
    for at in {*middle, other}:
        if cell.lo[dim] <= at < cell.hi[dim]:
            yield at


def _cut(cell: _Cell, each: Range, dim: int, at: int, known: Int64Array) -> list[_Cell]:
    left_hi, right_lo = cell.hi.copy(), cell.lo.copy()
    left_hi[dim], right_lo[dim] = at, at + 1
    is_left = cell.points[:, dim] <= at
    before = _heard(cell.lo, cell.hi, each, known)
    return [
        _Cell(lo, hi, own, cell.heard * _heard(lo, hi, each, known) / before if before else 0.0)
        for lo, hi, own in (
            (cell.lo, left_hi, cell.points[is_left]),
            (right_lo, cell.hi, cell.points[~is_left]),
        )
    ]


def _heard(lo: Int64Array, hi: Int64Array, each: Range, known: Int64Array) -> float:
    """Share of the values of a column that a cell hears of."""
    first, last = np.searchsorted(known, lo[each.lo], "left"), np.searchsorted(known, hi[each.hi], "right")
    return max(0, int(last - first)) / len(known)
