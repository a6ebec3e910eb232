"""Chooses the neighbours that filter each table: a join of many tables becomes one semijoin per table, the cheapest there is.

The cost of a semijoin is the number of rows sent for changes of the table itself, and of rows sent late because a neighbour
changes. A table filtered by several neighbours is sent to subscriptions with a partner in each; a table without filters to
all that select its rows. Choices of different tables are independent: the cheapest for each is the best for all. There are two
estimates of the cost: from counts of rows and changes (`Traffic`), or from a sample of subscriptions (`Sample`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Protocol

import numpy as np

from research.strategies.join.payload import fits
from research.strategies.join.relations.graph import JoinGraph
from tidings.kernels.rows import NONE
from tidings.model.codes import BoolArray, Int64Array

Filters = tuple[int, ...]
"""Numbers of the sides that a side is filtered by."""
UNFILTERED: Filters = ()
_COMBINED_MAX = 4
"""Up to this many neighbours, all combinations are considered."""


class Estimate(Protocol):
    """Rows sent to a subscription per change, for one side and the neighbours it is filtered by."""

    def cost(self, number: int, by: Filters) -> float: ...


def cheapest(estimate: Estimate, number: int, choices: Sequence[Filters]) -> Filters:
    """The filters of side `number` with the lowest cost."""
    return min(choices, key=lambda by: (estimate.cost(number, by), by))


def combinations_of(neighbours: Sequence[int]) -> list[Filters]:
    """Combinations of neighbours to filter a side by. With more than _COMBINED_MAX: none, each one alone, all together."""
    counts = range(len(neighbours) + 1) if len(neighbours) <= _COMBINED_MAX else (0, 1, len(neighbours))
    return [some for count in counts for some in combinations(neighbours, count)]


@dataclass(frozen=True)
class Traffic:
    """Estimates costs from counts: changes of every side, and rows of a side per join value.

    For ranges with uniform random ends, a range contains some of j partners with probability j / (j + 2); a new partner is the
    only one of j + 1 with probability 2 / ((j + 2) (j + 3)), and then all rows with its join value are sent; a range contains
    a third of the rows.
    """

    changes: Sequence[float]
    per_value: Mapping[tuple[int, int], float]
    """(side, neighbour) -> rows of the side per join value of the edge."""

    def share(self, number: int) -> float:
        """Share of a side's changes among all changes."""
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
    """Estimates costs from the current rows that a sample of subscriptions selects."""

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
        """Rows sent to one subscription per change, if all rows of a table are equally likely to change."""
        partners = {one: self._partners(number, one, selected) for one in by}
        has_all = np.ones(int(selected[number].sum()), np.bool_)
        for counts in partners.values():
            has_all &= counts > 0
        sent = self._traffic.share(number) * float(has_all.sum()) / max(1, len(selected[number]))
        for one, counts in partners.items():
            sent += self._traffic.share(one) * float((has_all & (counts == 1)).sum()) / max(1, len(selected[one]))
        return sent

    def _partners(self, number: int, by: int, selected: Sequence[BoolArray]) -> Int64Array:
        """Number of partners of each selected row of a side, among the selected rows of a neighbour."""
        edge = self._graph.edge(number, by)
        own, others = (edge.index(side).value_of(self._entries[side][selected[side]]) for side in (number, by))
        # One more entry for rows without a join value: their number NONE (-1) is the last place.
        counts = np.append(np.bincount(others[others != NONE], minlength=edge.values), 0)
        found: Int64Array = counts[own]
        return found
