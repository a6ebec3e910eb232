"""Points of skylines for one row: given the values its partners have, and the ranges of those who select the row.

All take ascending distinct values and the ranges' ends, and give points as [n, 2]: X, up to which a range may begin, and Y,
which it must reach.
"""

from __future__ import annotations

import numpy as np

from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array


def runs_of(values: Int64Array, may_merge: BoolArray) -> Int64Array:
    """A point for every run of neighbours that may be merged: the last value, the first value."""
    if len(values) == 0:
        return np.empty((0, 2), np.int64)
    cuts = np.flatnonzero(~may_merge)
    first, last = np.append(0, cuts + 1), np.append(cuts, len(values) - 1)
    return np.stack([values[last], values[first]], axis=1)


def disposable(values: Int64Array, lo: Int64Array, hi: Int64Array) -> BoolArray:
    """Between which neighbours no range lies: there nobody without a partner would be reached if they were merged."""
    after = np.searchsorted(values, lo)
    until = np.searchsorted(values, hi, "right")
    found = np.ones(max(0, len(values) - 1), np.bool_)
    inside = (after == until) & (after > 0) & (after < len(values))
    found[after[inside] - 1] = False
    return found


def smallest(values: Int64Array, lo: Int64Array, hi: Int64Array) -> Int64Array:
    """`sub`: the points of least area: of the ranges that hold a value, those that hold no other such range."""
    holds = np.searchsorted(values, lo) < np.searchsorted(values, hi, "right")
    ends = np.unique(np.stack([lo[holds], hi[holds]], axis=1), axis=0)
    # From the left-most beginning on, a range is needed if it ends before all that begin later.
    least = np.minimum.accumulate(ends[::-1, 1])[::-1]
    is_needed = np.ones(len(ends), np.bool_)
    is_needed[:-1] = ends[:-1, 1] < least[1:]
    return ends[is_needed]


def fewest(values: Int64Array, lo: Int64Array, hi: Int64Array) -> Int64Array:
    """`min`: as few points as can be; they need not be values.

    Only ranges without a value, and of these only those that lie in no other, keep points from reaching further. In their
    order, which is that of both ends, there is one furthest point between each and the next. Everyone with a partner is
    reached by some of these in a row: they are chosen as stabbing points are, each as late as the first to be met allows.
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
