"""Where to cut a space of ranges into cells, so that zones have equal shares of the points and get few messages.

A message about value v of a column is for points with lo <= v <= hi. So a cell gets it only if its lowest `lo` is at most v
and its highest `hi` at least v. Equalities lie on the diagonal: a cut along `lo` at x and then along `hi` at x separates
them from all ranges that are open, and their cell gets only messages about values up to x:

        hi |  open, and ranges   |  lo > x         The share of messages that a cell gets is estimated from the ends of
           |  that contain x     |                 the points' own ranges, as if values were distributed like these.
         x +---------------------+                 Cells with many messages are given to the same zones, cells with
           |  hi <= x            |                 few messages to others.
           +---------------------+------- lo
                                 x
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from research.stages.sharding import ZonedSpace
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array

CELLS_PER_ZONE = 4
_SPARED_MIN = 0.01
"""A cut is made only if it saves at least this share of the work (points times messages) of a cell."""


class Range(NamedTuple):
    """Coordinates (with the channel as coordinate 0) of the two ends of a column's ranges."""

    lo: int
    hi: int


class _Cell(NamedTuple):
    lo: Int64Array
    hi: Int64Array
    points: Int64Array
    heard: float
    """Estimated share of the messages that the cell gets."""


def paired_axes(space: ZonedSpace) -> list[Range]:
    """The columns of which the space has both ends and zones may be cut along both. The channel is coordinate 0."""
    place_of = {axis: 1 + i for i, axis in enumerate(space.axes) if space.may_cut[1 + i]}
    columns = [axis.removeprefix("lo ") for axis in place_of if axis.startswith("lo ")]
    return [
        Range(place_of[f"lo {column}"], place_of[f"hi {column}"]) for column in columns if f"hi {column}" in place_of
    ]


def cut_ranges(points: Int64Array, ranges: Sequence[Range], zones: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Cuts a space into cells. points: [n, coordinates].

    Returns (lo, hi, owner): closed ends of the cells, [cells, coordinates], and the zone of each, [cells].
    """
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
    """The two halves of the cell with the least work (points times messages); None if no cut saves _SPARED_MIN of it."""
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
    """Candidate cuts of a cell along `dim`: the median of the ends there, and the cut along the other end of the range."""
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
    """Share of the values of a column that a cell gets messages about. known: the values, sorted."""
    first, last = np.searchsorted(known, lo[each.lo], "left"), np.searchsorted(known, hi[each.hi], "right")
    return max(0, int(last - first)) / len(known)
