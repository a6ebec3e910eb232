"""Skylines: the subscriptions that have a partner for a row, as a region of few points.

Along the range column of the filtering side, a point (X, Y) stands for all ranges that begin at or before X and end at or
after Y. A skyline (Börzsönyi, Kossmann, Stocker, 2001: the points that no other dominates) is a set of points that together
stand for all subscriptions that select the row and one of the filtering side's rows with the same join value, and for none
that selects the row and none of those.

Where the filtering side has several range columns, so do points: (X, Y) stands for the ranges that begin at or before X and
end at or after Y on each of the columns. Where points are merged, the ranges of all subscriptions that select the row are
looked at, and a few corners separate those with a partner from the others (`kernels/cover.py`). There are POINTS_MAX points at
most: the points of more partners are merged, which tells a few subscriptions for nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from research.strategies.join.boxes import Boxes
from research.strategies.join.kernels.cover import CORNERS_MAX, corners, holding
from research.strategies.join.relations.join_index import JoinIndex, Lists, expand
from research.strategies.join.space import Space
from research.strategies.join.subscriber_index import SubscriberIndex
from tidings.model.codes import Int64Array

POINTS_MAX = CORNERS_MAX


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
    others: Int64Array
    """[entries, columns with a predicate]: codes of the other side's rows."""

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

    sees_ranges: ClassVar[bool] = False
    """Whether points of several columns are chosen by the ranges of subscriptions, or there is one for every partner."""

    def draw(self, question: Question, values: Int64Array) -> tuple[Int64Array, Boxes]:
        """(row, box) of the subscriptions asked for. values: [rows], join values of the rows."""
        distinct, of = np.unique(values, return_inverse=True)
        row, cell = expand(question.index.cells_at(distinct), of)
        if not question.index.side.ranged:
            return row, question.boxes(row, cell)
        kinds, kind = np.unique(cell, return_inverse=True)
        columns = question.index.side.ranged
        if len(columns) == 1:
            pair, mark = expand(self._marks(question, kinds), kind)
            pair, points = self._points(question, row, cell, pair, mark)
        elif self.sees_ranges:
            pair, points = _corners(question, question.boxes(row, cell), kinds, kind)
        else:
            pair, points = expand(_tuples(question, kinds), kind)
        boxes = question.boxes(row[pair], cell[pair])
        for i, column in enumerate(columns):
            boxes.reach(question.other, column, points[:, 2 * i], points[:, 2 * i + 1])
        return row[pair], boxes

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

    sees_ranges = True

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


# Points of several columns: (X, Y) of each column in turn.


def _partners(question: Question, cells: Int64Array) -> Iterator[Int64Array]:
    """For each cell, the values of its rows on the range columns, [rows, columns], ascending on the first."""
    starts, entries, _ = question.index.lists.gather(cells)
    values = question.others[entries][:, list(question.index.side.ranged)]
    return (values[start:stop] for start, stop in pairwise(starts.tolist()))


def _tuples(question: Question, cells: Int64Array) -> Lists:
    """A point for every different partner of each cell; more than POINTS_MAX are merged with those beside them on a column."""
    found = [np.empty((0, 2 * len(question.index.side.ranged)), np.int64)]
    for partners in _partners(question, cells):
        distinct = np.unique(partners, axis=0)
        groups = np.array_split(distinct, min(POINTS_MAX, len(distinct)))
        points = np.array([[part.max(axis=0), part.min(axis=0)] for part in groups])
        found.append(points.transpose(0, 2, 1).reshape(len(groups), -1))
    # The first has none: it is there for its shape.
    return np.cumsum([len(points) for points in found]), np.concatenate(found)


def _corners(question: Question, boxes: Boxes, cells: Int64Array, cell: Int64Array) -> Lists:
    """(i, point) such that the points of all i stand for those subscriptions in boxes[i] with a partner in cells[cell[i]]."""
    columns = question.index.side.ranged
    ends = [question.space.sides[question.other].first + 2 * column + end for column in columns for end in (0, 1)]
    partners = list(_partners(question, cells))
    starts, slots = question.subscribers.found(boxes.lo, boxes.hi)
    found = [np.empty((0, len(ends)), np.int64)]
    for i, (start, stop) in enumerate(pairwise(starts.tolist())):
        ranges = question.subscribers.coords(slots[start:stop])[:, ends]
        has_partner = holding(ranges, partners[cell[i]])
        # Turned around, upper ends are the smaller the more ranges reach them, as lower ends are the larger.
        turned = ranges ^ np.tile([0, -1], len(columns))
        found.append(corners(turned[has_partner], turned[~has_partner]) ^ np.tile([0, -1], len(columns)))
    sizes = np.array([len(points) for points in found[1:]], np.int64)
    return np.repeat(np.arange(len(sizes)), sizes), np.concatenate(found)
