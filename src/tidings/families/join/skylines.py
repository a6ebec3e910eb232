"""Skylines: who has a partner for a row, told by few points.

Of the filtering side's rows with the same join value, in the order of its range column, a point (X, Y) stands for all ranges
that begin no later than X and end no earlier than Y. A skyline is a set of such points that together hold everyone who selects
the row and one of these, and none who selects the row and none of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidings.families.join.audience import Audience
from tidings.families.join.boxes import Boxes
from tidings.families.join.junction import End, Lists
from tidings.families.join.skyline_points import fewest, smallest
from tidings.families.join.subscription import Space
from tidings.model.codes import Int64Array


@dataclass(frozen=True)
class Question:
    """Who selects rows of side `number` and has a partner for them among the rows of side `other`?"""

    space: Space
    audience: Audience
    number: int
    codes: Int64Array
    """[row, column with a predicate]"""
    other: int
    end: End
    """Where the other side's rows meet these."""

    def boxes(self, rows: Int64Array, cells: Int64Array) -> Boxes:
        """Those who select the rows and whose pinned columns agree with cells of partners."""
        found = Boxes.all(self.space, len(rows)).hold(self.number, self.codes[rows])
        pins = self.end.pins(cells)
        for i, column in enumerate(self.end.side.pinned):
            found.hold_column(self.other, column, pins[:, i])
        return found

    @property
    def column(self) -> int:
        """The range column of the other side by which its rows are ordered."""
        return self.end.side.ranged[0]


class Skyline(ABC):
    """A way to choose the points."""

    def draw(self, question: Question, values: Int64Array) -> tuple[Int64Array, Boxes]:
        """(row, box) for everyone in question, where the rows have these join values."""
        distinct, of = np.unique(values, return_inverse=True)
        row, cell = expand(question.end.cells_at(distinct), of)
        if not question.end.side.ranged:
            return row, question.boxes(row, cell)
        kinds, kind = np.unique(cell, return_inverse=True)
        pair, mark = expand(self._marks(question, kinds), kind)
        pair, points = self._points(question, row, cell, pair, mark)
        boxes = question.boxes(row[pair], cell[pair])
        return row[pair], boxes.reach(question.other, question.column, points[:, 0], points[:, 1])

    @abstractmethod
    def _marks(self, question: Question, cells: Int64Array) -> Lists:
        """Values of each cell that will do: whoever's range holds a value of the cell holds one of these."""

    def _points(
        self, question: Question, row: Int64Array, cell: Int64Array, pair: Int64Array, mark: Int64Array
    ) -> Lists:
        """(pair of row and cell, point) out of the pairs' marks."""
        return pair, np.stack([mark, mark], axis=1)


class Tuples(Skyline):
    """`tup`: a point for every value."""

    def _marks(self, question: Question, cells: Int64Array) -> Lists:
        return question.end.ladders.distinct(cells)


class Clusters(Skyline):
    """`clu`: the values next to each of a few marks, one of which is in everybody's range."""

    def _marks(self, question: Question, cells: Int64Array) -> Lists:
        return question.end.ladders.nearest(cells, question.audience.marks(question.other))


class Merged(Skyline):
    """Neighbours become one point where nobody who selects the row lies between them."""

    def _points(
        self, question: Question, row: Int64Array, cell: Int64Array, pair: Int64Array, mark: Int64Array
    ) -> Lists:
        if len(pair) == 0:
            return pair, np.empty((0, 2), np.int64)
        at = np.flatnonzero(pair[1:] == pair[:-1])
        # Between neighbouring numbers there is nothing.
        at = at[mark[at + 1] - 1 > mark[at]]
        gaps = question.boxes(row[pair[at]], cell[pair[at]])
        gaps.within(question.other, question.column, mark[at] + 1, mark[at + 1] - 1)
        begins = np.ones(len(pair), np.bool_)
        begins[1:] = pair[1:] != pair[:-1]
        begins[1 + at[question.audience.any(gaps.lo, gaps.hi)]] = True
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(pair)) - 1
        return pair[first], np.stack([mark[last], mark[first]], axis=1)


class MergedTuples(Merged, Tuples):
    """`tup+`."""


class MergedClusters(Merged, Clusters):
    """`clu+`."""


class Chosen(Tuples):
    """Points chosen by looking at the range of everyone who selects the row."""

    def __init__(self, choose: Callable[[Int64Array, Int64Array, Int64Array], Int64Array]) -> None:
        self._choose = choose

    def _points(
        self, question: Question, row: Int64Array, cell: Int64Array, pair: Int64Array, mark: Int64Array
    ) -> Lists:
        if len(pair) == 0:
            return pair, np.empty((0, 2), np.int64)
        own, first = np.unique(pair, return_index=True)
        boxes = question.boxes(row[own], cell[own])
        starts, slots = question.audience.found(boxes.lo, boxes.hi)
        at = question.space.sides[question.other].first + 2 * question.column
        ends = question.audience.coords(slots)[:, at : at + 2]
        found = [
            self._choose(values, *ends[start:stop].T)
            for values, (start, stop) in zip(np.split(mark, first[1:]), pairwise(starts.tolist()), strict=True)
        ]
        return np.repeat(own, [len(points) for points in found]), np.concatenate(found)


def skyline_of(name: str) -> Skyline:
    ways: dict[str, Callable[[], Skyline]] = {
        "clu": Clusters,
        "clu+": MergedClusters,
        "tup": Tuples,
        "tup+": MergedTuples,
        "sub": lambda: Chosen(smallest),
        "min": lambda: Chosen(fewest),
    }
    return ways[name]()


def expand(lists: Lists, of: Int64Array) -> Lists:
    """(i, member) for every member of list of[i]."""
    starts, members = lists
    sizes = np.diff(starts)[of]
    owner = np.repeat(np.arange(len(of)), sizes)
    first = np.cumsum(sizes) - sizes
    places = np.arange(len(owner)) - first[owner] + starts[of][owner]
    return owner, members[places]
