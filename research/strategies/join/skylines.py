"""Other ways to choose the points of a skyline than the product's: see `research.strategies.join.semijoin.skylines`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from research.strategies.join.relations.join_index import Lists
from research.strategies.join.semijoin.skylines import Clusters, Merged, MergedClusters, Question, Skyline
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array


class Tuples(Skyline):
    """`tup`: a point for every distinct value."""

    def _marks(self, question: Question, cells: Int64Array) -> Lists:
        return question.index.lists.distinct(cells)


class MergedTuples(Merged, Tuples):
    """`tup+`: a point for every distinct value, merged where possible."""


class Chosen(Tuples):
    """Points computed from the ranges of all subscriptions that select the row."""

    sees_ranges = True

    def __init__(self, choose: Callable[[Int64Array, Int64Array, Int64Array], Int64Array]) -> None:
        self._choose = choose

    def _points(
        self, question: Question, row: Int64Array, cell: Int64Array, pair: Int64Array, mark: Int64Array
    ) -> Lists:
        if len(pair) == 0:
            return pair, np.empty((0, 2), np.int64)
        own, first = np.unique(pair, return_index=True)
        boxes = question.boxes(row[own], cell[own])
        starts, slots = question.subscribers.found(boxes.lo, boxes.hi)
        at = question.space.sides[question.other].first + 2 * question.column
        ends = question.subscribers.coords(slots)[:, at : at + 2]
        found = [
            self._choose(values, *ends[start:stop].T)
            for values, (start, stop) in zip(np.split(mark, first[1:]), pairwise(starts.tolist()), strict=True)
        ]
        return np.repeat(own, [len(points) for points in found]), np.concatenate(found)


def skyline_of(name: str) -> Skyline:
    """`clu`, `clu+`, `tup`, `tup+`, `sub` or `min`."""
    ways: dict[str, Callable[[], Skyline]] = {
        "clu": Clusters,
        "clu+": MergedClusters,
        "tup": Tuples,
        "tup+": MergedTuples,
        "sub": lambda: Chosen(smallest),
        "min": lambda: Chosen(fewest),
    }
    return ways[name]()


# Points of least area, and fewest points, as [n, 2] of (X, Y). values: ascending and distinct; lo, hi: ends of ranges.


def smallest(values: Int64Array, lo: Int64Array, hi: Int64Array) -> Int64Array:
    """`sub`: points of least area: the ranges that contain a value and no other range that does."""
    holds = np.searchsorted(values, lo) < np.searchsorted(values, hi, "right")
    ends = np.unique(np.stack([lo[holds], hi[holds]], axis=1), axis=0)
    # In the order of beginnings, a range is needed if it ends before all ranges that begin later.
    least = np.minimum.accumulate(ends[::-1, 1])[::-1]
    is_needed = np.ones(len(ends), np.bool_)
    is_needed[:-1] = ends[:-1, 1] < least[1:]
    return ends[is_needed]


def fewest(values: Int64Array, lo: Int64Array, hi: Int64Array) -> Int64Array:
    """`min`: the fewest points possible; they need not be values.

    A point may stand for any range except those without a value (bars). Only bars that no other bar contains matter; sorted,
    there is one furthest point between each bar and the next. A range with a value is covered by a run of consecutive furthest
    points. The points are chosen as in interval stabbing: each as late as the first range not yet covered allows.
    """
    lo, hi = lo[lo <= hi], hi[lo <= hi]
    holds = np.searchsorted(values, lo) < np.searchsorted(values, hi, "right")
    bars = np.unique(np.stack([lo[~holds], -hi[~holds]], axis=1), axis=0) * (1, -1)
    reach = np.maximum.accumulate(np.append(CODE_MIN, bars[:, 1]))[:-1]
    bars = bars[bars[:, 1] > reach]
    before, after = np.maximum(bars[:, 0], CODE_MIN + 1) - 1, np.minimum(bars[:, 1], CODE_MAX - 1) + 1
    furthest = np.stack([np.append(before, CODE_MAX), np.append(CODE_MIN, after)], axis=1)
    first, last = np.searchsorted(bars[:, 0], lo[holds], "right"), np.searchsorted(bars[:, 1], hi[holds])
    chosen: list[int] = []
    for i in np.argsort(last, kind="stable").tolist():
        if not chosen or chosen[-1] < first[i]:
            chosen.append(int(last[i]))
    return furthest[chosen]
