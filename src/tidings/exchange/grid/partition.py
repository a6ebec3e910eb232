"""Who holds what: the partition of one attribute's codes among rows of servers, and the row that reports a pair.

    cuts:            10            20            A publication 5..12 is held by rows 0 and 1, a subscription 11..30 by rows
    codes: ----------|-------------|----------   1 and 2. Row 1 holds both. It owns max(5, 11) = 11, the first code they
    row:        0           1           2        share, and so reports the pair.

A constraint is held by every row that one of its disjuncts meets. So two disjuncts with common codes are both held by the row
that owns their first common code, max(lo, lo). A disjunct that does not constrain the attribute counts as beginning at
CODE_MIN. On one side it is held by all rows, on the other by row 0 alone. Which side is which follows from how constraints
match: a disjunct pair matches only if every attribute of one side is constrained by the other, so a disjunct without the
attribute on that one side meets any, and on the other side only those without it as well (`Partition.everywhere`).

Constraints may match by several disjunct pairs, whose first common codes lie in several rows. The pair of constraints is
reported by the owner of the least of these codes. Every row that holds both constraints holds them whole, and finds the same
least code; the owner is one of these rows. So the pair is reported once.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array

Interval = tuple[int, int]
"""Closed ends of what a disjunct allows for the attribute: lo <= hi."""


class Side(Enum):
    """Publications and subscriptions are both constraints; a pair has one of each."""

    PUBLICATION = "publication"
    SUBSCRIPTION = "subscription"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A publication or subscription as the grid sees it: what each disjunct allows for the attribute (None: does not constrain
    it), and a payload for whoever matches.
    """

    intervals: tuple[Interval | None, ...]
    payload: Any

    def __post_init__(self) -> None:
        if not self.intervals:
            raise ValueError("a constraint without disjuncts matches nothing: do not publish it")
        for interval in self.intervals:
            if interval is not None and not CODE_MIN <= interval[0] <= interval[1] <= CODE_MAX:
                raise ValueError(f"not an interval of int64 codes, lo <= hi: {interval}")


class ServerAddress(NamedTuple):
    """A server under one version of the partition. The same machine has another address under the next version."""

    version: int
    row: int
    column: int


@dataclass(frozen=True)
class Partition:
    """How the work is divided: row i owns the codes from cuts[i - 1] up to, but not including, cuts[i].

    A row has `columns` identical servers. Each of them holds all subscriptions of the row; a publication is held by one, chosen
    by a hash of its id, so that every later write of the same id finds it.
    """

    cuts: tuple[int, ...] = ()
    columns: int = 1
    everywhere: Side = Side.PUBLICATION
    """The side whose disjuncts without the attribute are held by all rows; those of the other side are held by row 0.

    PUBLICATION for symmetric matching (the subscription constrains every attribute of the publication), SUBSCRIPTION for
    classic matching (the other way round).
    """

    def __post_init__(self) -> None:
        if not all(low < high for low, high in pairwise((CODE_MIN, *self.cuts, CODE_MAX + 1))):
            raise ValueError(f"cuts must rise, and lie above the least code and within int64: {self.cuts}")
        if self.columns < 1:
            raise ValueError(f"a row needs at least one server, not {self.columns}")

    @property
    def rows(self) -> int:
        return len(self.cuts) + 1

    def owner_of(self, codes: Int64Array) -> Int64Array:
        """The row that owns each code."""
        return np.searchsorted(self._cut_array, codes, side="right").astype(np.int64, copy=False)

    def row_of(self, code: int) -> int:
        """The row that owns one code."""
        return bisect_right(self.cuts, code)

    def rows_of(self, side: Side, constraint: Constraint) -> tuple[int, ...]:
        """The rows that hold a constraint, ascending."""
        rows: set[int] = set()
        for interval in constraint.intervals:
            if interval is not None:
                rows.update(range(self.row_of(interval[0]), self.row_of(interval[1]) + 1))
            else:
                rows.update(range(self.rows if side is self.everywhere else 1))
        return tuple(sorted(rows))

    def columns_of(self, side: Side, id: str) -> range:
        """The columns that hold a constraint, in each of its rows."""
        if side is Side.SUBSCRIPTION:
            return range(self.columns)
        column = zlib.crc32(id.encode()) % self.columns
        return range(column, column + 1)

    def servers_of(self, version: int, side: Side, id: str, rows: Iterable[int]) -> tuple[ServerAddress, ...]:
        """The servers of these rows that hold the constraint with this id, if the rows do."""
        columns = self.columns_of(side, id)
        return tuple(ServerAddress(version, row, column) for row in rows for column in columns)

    def servers(self, version: int) -> tuple[ServerAddress, ...]:
        """All servers."""
        return tuple(ServerAddress(version, row, column) for row in range(self.rows) for column in range(self.columns))

    @cached_property
    def _cut_array(self) -> Int64Array:
        return np.array(self.cuts, np.int64)


def report_code(publication: Constraint, subscription: Constraint, pairs: Sequence[tuple[int, int]]) -> int:
    """The code whose owner reports two constraints that match by these pairs of disjuncts: their least first common code."""
    return min(max(_begin(publication.intervals[p]), _begin(subscription.intervals[s])) for p, s in pairs)


def _begin(interval: Interval | None) -> int:
    return CODE_MIN if interval is None else interval[0]


@dataclass(frozen=True)
class Intervals:
    """Intervals of many constraints in columns: constraint i has the disjuncts starts[i]:starts[i + 1].

    lo, hi, has: [disjuncts]; where `has` is false, the disjunct does not constrain the attribute and its ends mean nothing.
    """

    lo: Int64Array
    hi: Int64Array
    has: BoolArray
    starts: Int64Array

    @staticmethod
    def of(constraints: Sequence[Constraint]) -> Intervals:
        flat = [interval for constraint in constraints for interval in constraint.intervals]
        ends = np.array([(0, 0) if interval is None else interval for interval in flat], np.int64).reshape(-1, 2)
        has = np.array([interval is not None for interval in flat], np.bool_)
        counts = [len(constraint.intervals) for constraint in constraints]
        return Intervals(ends[:, 0], ends[:, 1], has, np.cumsum([0, *counts], dtype=np.int64))

    @property
    def begin(self) -> Int64Array:
        """[disjuncts] The first code of each."""
        return np.where(self.has, self.lo, CODE_MIN)


def route(intervals: Intervals, partition: Partition, side: Side) -> tuple[Int64Array, Int64Array]:
    """(constraint, row) for every row that holds a constraint, ascending, each once: `Partition.rows_of` for many constraints.

    Constraint and row make one number, constraint * rows + row, so a disjunct is a range of such numbers, first..last. With
    ranges in order of `first`, the numbers that are new in a range are those above the largest `last` before it.
    """
    rows = partition.rows
    constraint = np.repeat(np.arange(len(intervals.starts) - 1, dtype=np.int64), np.diff(intervals.starts))
    without_last = rows - 1 if side is partition.everywhere else 0
    first = constraint * rows + np.where(intervals.has, partition.owner_of(intervals.lo), 0)
    last = constraint * rows + np.where(intervals.has, partition.owner_of(intervals.hi), without_last)
    if np.any(first[1:] < first[:-1]):
        order = np.argsort(first, kind="stable")
        first, last = first[order], last[order]
    reached = np.maximum.accumulate(last)
    first[1:] = np.maximum(first[1:], reached[:-1] + 1)
    counts = np.maximum(last - first + 1, 0)
    ends = np.cumsum(counts)
    numbers = np.arange(ends[-1] if len(ends) else 0, dtype=np.int64) + np.repeat(first - (ends - counts), counts)
    return numbers // rows, numbers % rows


def report_codes(publication_begin: Int64Array, subscription_begin: Int64Array, starts: Int64Array) -> Int64Array:
    """`report_code` for many pairs of constraints: pair i matches by the disjunct pairs starts[i]:starts[i + 1], at least one.

    publication_begin, subscription_begin: [disjunct pairs], `Intervals.begin` of the two disjuncts.
    """
    common = np.maximum(publication_begin, subscription_begin)
    return np.minimum.reduceat(common, starts[:-1]) if len(common) else common


def balanced_cuts(sample: Intervals, rows: int) -> tuple[int, ...]:
    """Cuts for at most `rows` rows that have about equal shares of the ends of these intervals.

    Ends that are open say nothing about where values lie: an interval with one closed end counts twice there, one with none
    does not count. Codes are taken row by row, up to the share of what is left that is nearest to equal. So a code with more
    than its share is alone in its row, and the others are balanced. With fewer codes than rows there are fewer rows.
    """
    lo, hi = sample.lo[sample.has], sample.hi[sample.has]
    is_closed = (lo != CODE_MIN) | (hi != CODE_MAX)
    lo, hi = lo[is_closed], hi[is_closed]
    ends = np.concatenate([np.where(lo == CODE_MIN, hi, lo), np.where(hi == CODE_MAX, lo, hi)])
    codes, weights = np.unique(ends, return_counts=True)
    upto = np.cumsum(weights)
    cuts: list[int] = []
    taken, place = 0, 0
    for rows_left in range(min(rows, len(codes)), 1, -1):
        target = taken + (int(upto[-1]) - taken) / rows_left
        above = int(np.searchsorted(upto, target))
        is_nearer_below = above > 0 and target - upto[above - 1] < upto[above] - target
        # Every row gets at least one code, now and later.
        place = min(max(above + (not is_nearer_below), place + 1), len(codes) - rows_left + 1)
        taken = int(upto[place - 1])
        cuts.append(int(codes[place]))
    return tuple(cuts)
