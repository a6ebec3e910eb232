"""Zones: a partition of subscription space into cells, each with one owner, that changes version by version.

A message is routed by the map of its version. Meanwhile a cell may have been split, and a part, or all of it, given to
another broker: its former owner knows, and forwards (`broker.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidings.kernels.arrays import I64, INT64_MAX, INT64_MIN

_SAMPLE = 2_000
"""So many points say along which dimension a cell is widest."""


class ZoneMap(NamedTuple):
    """Cells lo, hi [c, D], closed and disjoint, that cover space; their ids and owners [c]."""

    version: int
    cell: I64
    lo: I64
    hi: I64
    owner: I64


class Part(NamedTuple):
    """A part of a cell that is divided, or all of it."""

    cell: int
    lo: I64
    hi: I64
    owner: int


class Directory:
    """The zone map and its former versions; every broker can read it."""

    def __init__(self, first: ZoneMap) -> None:
        self.maps = [first]
        self._cells: list[dict[int, list[int]]] = []
        self._next = int(first.cell.max()) + 1
        self._transfers = 0

    @property
    def current(self) -> ZoneMap:
        return self.maps[-1]

    def cells_of(self, broker: int, version: int) -> list[int]:
        """The cells that a broker had in a version."""
        while len(self._cells) <= version:
            of_version = self.maps[len(self._cells)]
            by_owner: dict[int, list[int]] = {}
            for owner, cell in zip(of_version.owner.tolist(), of_version.cell.tolist(), strict=True):
                by_owner.setdefault(owner, []).append(cell)
            self._cells.append(by_owner)
        return self._cells[version].get(broker, [])

    def new_cell(self) -> int:
        """The id of a cell that is none yet."""
        self._next += 1
        return self._next - 1

    def new_transfer(self) -> int:
        self._transfers += 1
        return self._transfers

    def replace(self, cell: int, parts: Sequence[Part]) -> None:
        """A new version, in which a cell is replaced by its parts."""
        old = self.current
        others = old.cell != cell
        self.maps.append(
            ZoneMap(
                old.version + 1,
                np.append(old.cell[others], [part.cell for part in parts]),
                np.concatenate([old.lo[others], *(part.lo[None] for part in parts)]),
                np.concatenate([old.hi[others], *(part.hi[None] for part in parts)]),
                np.append(old.owner[others], [part.owner for part in parts]),
            )
        )


def partition(points: I64, zones: int) -> tuple[ZoneMap, I64]:
    """A map of so many cells, cell i of broker i, with about equally many of the points [n, D]; and the cell of each point.

    A cell is cut where its points lie widest apart, for how far all points do.
    """
    count, dims = points.shape
    scale = _width(points)
    scale[scale <= 0] = 1.0
    lo = np.full((zones, dims), INT64_MIN)
    hi = np.full((zones, dims), INT64_MAX)
    cell_of = np.zeros(count, np.int64)
    todo = [(0, zones, np.arange(count))]
    while todo:
        first, size, at = todo.pop()
        if size == 1 or not is_divisible(lo[first], hi[first]):
            cell_of[at] = first
            # Cells for which no place is left are empty.
            lo[first + 1 : first + size], hi[first + 1 : first + size] = 1, 0
            continue
        lower = size // 2
        dim, cut = cut_of(points[at], lo[first], hi[first], lower / size, scale)
        is_low = points[at, dim] <= cut
        lo[first + lower], hi[first + lower] = lo[first], hi[first]
        hi[first, dim], lo[first + lower, dim] = cut, cut + 1
        todo += [(first, lower, at[is_low]), (first + lower, size - lower, at[~is_low])]
    ids = np.arange(zones, dtype=np.int64)
    return ZoneMap(0, ids, lo, hi, ids.copy()), cell_of


def is_divisible(lo: I64, hi: I64) -> bool:
    """Whether a cell has more than one place."""
    return bool((lo < hi).any())


def cut_of(points: I64, lo: I64, hi: I64, share: float = 0.5, scale: np.ndarray | None = None) -> tuple[int, int]:
    """The dimension to cut a cell along, and the last coordinate of the lower part, which gets about this share of its points.

    The cell has two places at least. A part may be left without points if these are all at one place.
    """
    width = _width(points) / (1.0 if scale is None else scale)
    width[lo == hi] = -1.0
    dim = int(width.argmax())
    low, high = int(lo[dim]), int(hi[dim])
    if not len(points):
        # The middle of what is inhabited cannot be known: halves of the cell.
        return dim, low + (high - low) // 2
    column = points[:, dim]
    at = min(int(len(column) * share), len(column) - 1)
    cut = int(np.partition(column, at)[at])
    if cut > int(column.min()):
        # The cut is the largest coordinate below: as many as possible of equal ones stay together, above.
        cut -= 1
    return dim, max(low, min(cut, high - 1))


def _width(points: I64) -> np.ndarray:
    """How far most of the points lie apart, along each dimension; ends that are open count little."""
    if not len(points):
        return np.zeros(points.shape[1])
    some = points[:: max(1, len(points) // _SAMPLE)].astype(np.float64)
    low, high = np.quantile(some, (0.05, 0.95), axis=0)
    extent: np.ndarray = high - low
    # A few points apart from many equal ones still have a width.
    return np.where(extent > 0, extent, some.max(axis=0) > some.min(axis=0))
