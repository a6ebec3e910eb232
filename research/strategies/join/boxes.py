"""Boxes of a join's space: subscriptions whose predicates on some columns contain a row, with any predicates on the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from research.strategies.join.space import Space
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array

_BOXES_MAX = 64


@dataclass(frozen=True)
class Boxes:
    """n boxes with closed ends, both arrays [n, dims]. New boxes contain all points; methods narrow them in place."""

    space: Space
    lo: Int64Array
    hi: Int64Array

    @staticmethod
    def all(space: Space, count: int) -> Boxes:
        return Boxes(space, np.full((count, space.dims), CODE_MIN), np.full((count, space.dims), CODE_MAX))

    def __len__(self) -> int:
        return len(self.lo)

    def take(self, at: Int64Array) -> Boxes:
        return Boxes(self.space, self.lo[at], self.hi[at])

    def hold(self, number: int, codes: Int64Array) -> Boxes:
        """Narrows to subscribers whose predicates on a side all contain the row with these codes."""
        for column in range(codes.shape[1]):
            self.hold_column(number, column, codes[:, column])
        return self

    def hold_column(self, number: int, column: int, codes: Int64Array) -> Boxes:
        """Narrows to subscribers whose predicate on one column of a side contains these codes."""
        return self.reach(number, column, codes, codes)

    def reach(self, number: int, column: int, lo_max: Int64Array, hi_min: Int64Array) -> Boxes:
        """Narrows to subscribers whose range on a column begins no later and ends no earlier."""
        at = self.space.sides[number].first + 2 * column
        self.hi[:, at], self.lo[:, at + 1] = lo_max, hi_min
        return self

    def within(self, number: int, column: int, lo_min: Int64Array, hi_max: Int64Array) -> Boxes:
        """Narrows to subscribers whose range on a column begins no earlier and ends no later."""
        at = self.space.sides[number].first + 2 * column
        self.lo[:, at], self.hi[:, at + 1] = lo_min, hi_max
        return self


RowBoxes = tuple[Int64Array, Boxes]
"""(row of each box, boxes), in the order of rows. The boxes of one row stand for their union."""


def intersect(one: RowBoxes, other: RowBoxes) -> RowBoxes:
    """The intersection of both unions for each row; for rows where it has more than _BOXES_MAX boxes, the first union."""
    row, boxes = one
    count = int(max(row.max(initial=-1), other[0].max(initial=-1))) + 1
    sizes, others = np.bincount(row, minlength=count), np.bincount(other[0], minlength=count)
    # For rows with too many boxes, one box of the second union is kept and opened to contain everything.
    is_many = sizes * others > _BOXES_MAX
    lo, hi = other[1].lo.copy(), other[1].hi.copy()
    lo[is_many[other[0]]], hi[is_many[other[0]]] = CODE_MIN, CODE_MAX
    starts = np.concatenate([[0], np.cumsum(others)])
    taken = np.where(is_many, 1, others)[row]
    mine = np.repeat(np.arange(len(row)), taken)
    theirs = starts[row][mine] + np.arange(len(mine)) - (np.cumsum(taken) - taken)[mine]
    return row[mine], Boxes(boxes.space, np.maximum(boxes.lo[mine], lo[theirs]), np.minimum(boxes.hi[mine], hi[theirs]))
