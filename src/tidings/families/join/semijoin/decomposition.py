"""Which neighbours filter which table: a join of many tables becomes one semijoin per table, each as cheap as can be.

A semijoin costs what is sent of the table's own changes, and what is sent late because a neighbour changes. A table may be
filtered by several neighbours at once, and then goes to those who have a partner in each; or by none, and then to all who
select its rows. No table's choice touches another's: the cheapest for each is the best for all. There are two ways to tell
what a choice costs: from how many rows and changes there are, or by looking at some subscriptions and what they select now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Protocol

import numpy as np

from tidings.families.join.payload import fits
from tidings.families.join.relations.graph import JoinGraph
from tidings.kernels.rows import NONE
from tidings.model.codes import BoolArray, Int64Array

Filters = tuple[int, ...]
"""The neighbours that a side is filtered by."""
UNFILTERED: Filters = ()
_COMBINED_MAX = 4
"""Of more neighbours than these not all combinations are considered."""


class Estimate(Protocol):
    """Rows sent to a subscription per change, for one side and the neighbours it is filtered by."""

    def cost(self, number: int, by: Filters) -> float: ...


def cheapest(estimate: Estimate, number: int, choices: Sequence[Filters]) -> Filters:
    """What to filter a side by."""
    return min(choices, key=lambda by: (estimate.cost(number, by), by))


def combinations_of(neighbours: Sequence[int]) -> list[Filters]:
    """Ways to filter a side by any number of neighbours."""
    counts = range(len(neighbours) + 1) if len(neighbours) <= _COMBINED_MAX else (0, 1, len(neighbours))
    return [some for count in counts for some in combinations(neighbours, count)]


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

    def cost(self, number: int, by: Filters) -> float:
        has = {one: self.per_value[one, number] / (self.per_value[one, number] + 2) for one in by}
        sent = self.share(number) * prod(has.values())
        for one in by:
            partners = self.per_value[one, number]
            late = self.per_value[number, one] * 2 / ((partners + 2) * (partners + 3))
            sent += self.share(one) * late * prod(share for other, share in has.items() if other != one)
        return sent / 3


class Sample:
    """Costs by what some subscriptions select of the rows there are."""

    def __init__(self, graph: JoinGraph, traffic: Traffic, points: Int64Array) -> None:
        self._traffic = traffic
        self._graph = graph
        self._entries = [relation.current() for relation in graph.relations]
        codes = [relation.codes[entries] for relation, entries in zip(graph.relations, self._entries, strict=True)]
        sides = graph.space.sides
        self._selected = [[fits(side, own, at) for side, own in zip(sides, codes, strict=True)] for at in points]

    def cost(self, number: int, by: Filters) -> float:
        sent = [self._sent(number, by, selected) for selected in self._selected]
        return sum(sent) / max(1, len(sent))

    def _sent(self, number: int, by: Filters, selected: Sequence[BoolArray]) -> float:
        """Rows sent to one subscription per change, if a change concerns any row of its table alike."""
        partners = {one: self._partners(number, one, selected) for one in by}
        has_all = np.ones(int(selected[number].sum()), np.bool_)
        for counts in partners.values():
            has_all &= counts > 0
        sent = self._traffic.share(number) * float(has_all.sum()) / max(1, len(selected[number]))
        for one, counts in partners.items():
            sent += self._traffic.share(one) * float((has_all & (counts == 1)).sum()) / max(1, len(selected[one]))
        return sent

    def _partners(self, number: int, by: int, selected: Sequence[BoolArray]) -> Int64Array:
        """How many partners each selected row of a side has among those selected of a neighbour."""
        edge = self._graph.edge(number, by)
        own, others = (edge.index(side).value_of(self._entries[side][selected[side]]) for side in (number, by))
        # One more for those who join nothing, who have the last of all numbers.
        counts = np.append(np.bincount(others[others != NONE], minlength=edge.values), 0)
        found: Int64Array = counts[own]
        return found
