"""Which neighbour filters which table: a join of many tables becomes one semijoin per table, each as cheap as can be.

A semijoin costs what is sent of the table's own changes, and what is sent late because the neighbour changes; without a filter
all changes are sent to everyone who selects the row. No table's choice touches another's: the cheapest for each is the best for
all. There are two ways to tell what a choice costs: from how many rows and changes there are, or by looking at some
subscriptions and what they select now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidings.families.join.junction import Junction
from tidings.families.join.relation import Relation
from tidings.families.join.rows import fits
from tidings.families.join.subscription import Space
from tidings.model.codes import BoolArray, Int64Array

UNFILTERED = -1
"""In place of a neighbour: rows go to all who select them."""


class Estimate(Protocol):
    """Rows sent to a subscription per change, for one side filtered by one neighbour or by none."""

    def cost(self, number: int, by: int) -> float: ...


def cheapest(estimate: Estimate, number: int, choices: Sequence[int]) -> int:
    """The neighbour to filter a side by."""
    return min(choices, key=lambda by: (estimate.cost(number, by), by))


@dataclass(frozen=True)
class Traffic:
    """Costs from numbers: changes of every side, and rows of a side per value it is joined to a neighbour by.

    Where ranges may be anywhere, one holds some of j partners with probability j / (j + 2); a new partner is the only one
    among j + 1 with probability 2 / ((j + 2) (j + 3)), and then brings all rows with its join value; a third of the rows
    is in a range.
    """

    changes: Sequence[float]
    per_value: Mapping[tuple[int, int], float]
    """(side, neighbour) -> rows"""

    def share(self, number: int) -> float:
        """Of all changes."""
        return self.changes[number] / (sum(self.changes) or 1.0)

    def cost(self, number: int, by: int) -> float:
        if by == UNFILTERED:
            return self.share(number) / 3
        rows, partners = self.per_value[number, by], self.per_value[by, number]
        late = rows * 2 / ((partners + 2) * (partners + 3))
        return (self.share(number) * partners / (partners + 2) + self.share(by) * late) / 3


class Sample:
    """Costs by what some subscriptions select of the rows there are."""

    def __init__(
        self,
        space: Space,
        traffic: Traffic,
        relations: Sequence[Relation],
        junctions: Mapping[tuple[int, int], Junction],
        points: Int64Array,
    ) -> None:
        self._traffic = traffic
        self._entries = [relation.current() for relation in relations]
        codes = [relation.codes[entries] for relation, entries in zip(relations, self._entries, strict=True)]
        self._selected = [[fits(side, own, at) for side, own in zip(space.sides, codes, strict=True)] for at in points]
        self._junctions = junctions

    def cost(self, number: int, by: int) -> float:
        sent = [self._sent(number, by, selected) for selected in self._selected]
        return sum(sent) / max(1, len(sent))

    def _sent(self, number: int, by: int, selected: Sequence[BoolArray]) -> float:
        """Rows sent to one subscription per change, if a change concerns any row of its table alike."""
        own = self._traffic.share(number) / max(1, len(selected[number]))
        if by == UNFILTERED:
            return own * float(selected[number].sum())
        junction = self._junctions[min(number, by), max(number, by)]
        rows, partners = (
            np.bincount(junction.end(side).value_of(self._entries[side][selected[side]]), minlength=junction.values)
            for side in (number, by)
        )
        late = self._traffic.share(by) / max(1, len(selected[by]))
        return own * float(rows[partners > 0].sum()) + late * float(rows[partners == 1].sum())
