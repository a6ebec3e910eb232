"""Skylines: the subscriptions that have a partner for a row, as a region of few points.

Along the range column of the filtering side, a point (X, Y) stands for all ranges that begin at or before X and end at or
after Y. A skyline (Börzsönyi, Kossmann, Stocker, 2001: the points that no other dominates) is a set of points that together
stand for all subscriptions that select the row and one of the filtering side's rows with the same join value, and for none
that selects the row and none of those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from research.strategies.join.boxes import Boxes
from research.strategies.join.relations.join_index import JoinIndex, Lists, expand
from research.strategies.join.space import Space
from research.strategies.join.subscriber_index import SubscriberIndex
from tidings.model.codes import Int64Array


@dataclass(frozen=True)
class Question:
    """Which subscribers select rows of side `number` and have a partner for them among the rows of side `other`?"""

    space: Space
    subscribers: SubscriberIndex
    number: int
    codes: Int64Array
    """[rows, columns with a predicate]: codes of the rows."""
    other: int
    index: JoinIndex
    """Index of the other side's rows."""

    def boxes(self, rows: Int64Array, cells: Int64Array) -> Boxes:
        """Boxes of the subscriptions that select rows[i] and whose pinned constants of the other side are those of cells[i]."""
        found = Boxes.all(self.space, len(rows)).hold(self.number, self.codes[rows])
        pins = self.index.pins(cells)
        for i, column in enumerate(self.index.side.pinned):
            found.hold_column(self.other, column, pins[:, i])
        return found

    @property
    def column(self) -> int:
        """The range column of the other side by which its rows are ordered."""
        return self.index.side.ranged[0]


class Skyline(ABC):
    """Base class of the ways to choose points."""

    def draw(self, question: Question, values: Int64Array) -> tuple[Int64Array, Boxes]:
        """(row, box) of the subscriptions asked for. values: [rows], join values of the rows."""
        distinct, of = np.unique(values, return_inverse=True)
        row, cell = expand(question.index.cells_at(distinct), of)
        if not question.index.side.ranged:
            return row, question.boxes(row, cell)
        kinds, kind = np.unique(cell, return_inverse=True)
        pair, mark = expand(self._marks(question, kinds), kind)
        pair, points = self._points(question, row, cell, pair, mark)
        boxes = question.boxes(row[pair], cell[pair])
        return row[pair], boxes.reach(question.other, question.column, points[:, 0], points[:, 1])

    @abstractmethod
    def _marks(self, question: Question, cells: Int64Array) -> Lists:
        """Values of each cell such that every range with a value of the cell contains one of these."""

    def _points(
        self, question: Question, row: Int64Array, cell: Int64Array, pair: Int64Array, mark: Int64Array
    ) -> Lists:
        """(pair of row and cell, point (X, Y)) for all points. pair, mark: the marks of each pair."""
        return pair, np.stack([mark, mark], axis=1)


class Clusters(Skyline):
    """A point for the nearest values to each of a few marks, chosen such that every range contains a mark."""

    def _marks(self, question: Question, cells: Int64Array) -> Lists:
        return question.index.lists.nearest(cells, question.subscribers.marks(question.other))


class Merged(Skyline):
    """Merges neighbouring points if no range of a subscription that selects the row lies strictly between them."""

    def _points(
        self, question: Question, row: Int64Array, cell: Int64Array, pair: Int64Array, mark: Int64Array
    ) -> Lists:
        if len(pair) == 0:
            return pair, np.empty((0, 2), np.int64)
        at = np.flatnonzero(pair[1:] == pair[:-1])
        # No range lies between adjacent numbers.
        at = at[mark[at + 1] - 1 > mark[at]]
        gaps = question.boxes(row[pair[at]], cell[pair[at]])
        gaps.within(question.other, question.column, mark[at] + 1, mark[at + 1] - 1)
        begins = np.ones(len(pair), np.bool_)
        begins[1:] = pair[1:] != pair[:-1]
        begins[1 + at[question.subscribers.any(gaps.lo, gaps.hi)]] = True
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(pair)) - 1
        return pair[first], np.stack([mark[last], mark[first]], axis=1)


class MergedClusters(Merged, Clusters):
    """Points near marks, merged where possible."""
