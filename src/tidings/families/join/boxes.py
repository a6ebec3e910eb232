"""Boxes of a join's space: all points of which some predicates hold a row, and the rest may be anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.families.join.subscription import Space
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array

_BOXES_MAX = 64


@dataclass(frozen=True)
class Boxes:
    """Boxes that hold everything until they are narrowed."""

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
        """Only those whose predicates on a side all hold the row with these codes."""
        for column in range(codes.shape[1]):
            self.hold_column(number, column, codes[:, column])
        return self

    def hold_column(self, number: int, column: int, codes: Int64Array) -> Boxes:
        """Only those whose predicate on one column of a side holds these."""
        return self.reach(number, column, codes, codes)

    def reach(self, number: int, column: int, lo_max: Int64Array, hi_min: Int64Array) -> Boxes:
        """Only those whose range on a column begins no later and ends no earlier."""
        at = self.space.sides[number].first + 2 * column
        self.hi[:, at], self.lo[:, at + 1] = lo_max, hi_min
        return self

    def within(self, number: int, column: int, lo_min: Int64Array, hi_max: Int64Array) -> Boxes:
        """Only those whose range on a column begins no earlier and ends no later."""
        at = self.space.sides[number].first + 2 * column
        self.lo[:, at], self.hi[:, at + 1] = lo_min, hi_max
        return self


Rows = tuple[Int64Array, Boxes]
"""(row, box) in the order of rows: everyone in one of a row's boxes is meant."""


def both(one: Rows, other: Rows) -> Rows:
    """Everyone meant by both; where that would take very many boxes, everyone meant by the first."""
    row, boxes = one
    count = int(max(row.max(initial=-1), other[0].max(initial=-1))) + 1
    sizes, others = np.bincount(row, minlength=count), np.bincount(other[0], minlength=count)
    # Of a row with too many boxes all but the first of the second's are left out, and that one holds everything.
    is_many = sizes * others > _BOXES_MAX
    lo, hi = other[1].lo.copy(), other[1].hi.copy()
    lo[is_many[other[0]]], hi[is_many[other[0]]] = CODE_MIN, CODE_MAX
    starts = np.concatenate([[0], np.cumsum(others)])
    taken = np.where(is_many, 1, others)[row]
    mine = np.repeat(np.arange(len(row)), taken)
    theirs = starts[row][mine] + np.arange(len(mine)) - (np.cumsum(taken) - taken)[mine]
    meant = Boxes(boxes.space, np.maximum(boxes.lo[mine], lo[theirs]), np.minimum(boxes.hi[mine], hi[theirs]))
    return row[mine], meant
