"""Boxes of a join's space: all points of which some predicates hold a row, and the rest may be anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.families.join.subscription import Space
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array


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
