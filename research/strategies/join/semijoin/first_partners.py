"""First partners: finds the subscriptions for which a new row of a filter is the only partner.

With one range column these are the subscriptions whose range contains the row and neither of its neighbours. With several range
columns the nearest rows around it decide, and the region is the smallest box around the subscriptions found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from research.strategies.join.boxes import Boxes
from research.strategies.join.kernels.range_cover import covered
from research.strategies.join.kernels.sorted_lists import Neighbours
from research.strategies.join.relations.join_index import IndexedEdge
from research.strategies.join.relations.relation import Moves
from research.strategies.join.space import Space
from research.strategies.join.subscriber_index import SubscriberIndex
from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array

_FEW = 64
"""Up to this many subscriptions are tested one by one."""


class Gaps(NamedTuple):
    """New rows, and the gap lo_from .. hi_to around all ranges for which each may be the first partner; [rows, columns]."""

    codes: Int64Array
    lo_from: Int64Array
    hi_to: Int64Array


class FirstPartners:
    """Finds who must be sent rows of side `number` because of new partner rows of side `by`, a filter."""

    def __init__(
        self, space: Space, subscribers: SubscriberIndex, number: int, by: int, edge: IndexedEdge, known: Int64Array
    ) -> None:
        """known: [entries], codes of the rows of side `by`."""
        self._space, self._subscribers, self._known = space, subscribers, known
        self._number, self._by = number, by
        self._index = edge.index(by)
        self._side = space.sides[by]

    def gaps(self, at: Int64Array, moves: Moves, near: Neighbours, cells: Int64Array) -> tuple[Int64Array, Gaps]:
        """(changes of `at` whose new row may be a first partner, their gaps). near, cells: [at], of the new rows."""
        side, codes = self._side, moves.new_codes[at]
        count = len(side.ranged)
        gaps = Gaps(codes, np.full((len(at), count), CODE_MIN), np.full((len(at), count), CODE_MAX))
        if count == 0:
            may_be_first = ~near.has_twin
        elif any(side.columns[column].type.is_lossy for column in side.ranged):
            # Lossy codes: it is not certain that any other row is in a range, so every row may be a first partner.
            may_be_first = np.ones(len(at), np.bool_)
        elif count == 1:
            may_be_first = ~near.has_twin
            kept = np.flatnonzero(may_be_first)
            gaps.lo_from[:, 0], gaps.hi_to[:, 0] = near.lo_from, near.hi_to
            on_column = codes[kept, side.ranged[0]]
            may_be_first[kept] = self._subscribers.any_within(self._by, near.lo_from[kept], on_column, near.hi_to[kept])
        else:
            may_be_first = self._look_around(gaps, moves, cells)
        return at[may_be_first], Gaps(*(part[may_be_first] for part in gaps))

    def _look_around(self, gaps: Gaps, moves: Moves, cells: Int64Array) -> BoolArray:
        """For several range columns: narrows gaps to the subscriptions for which a row is the first partner.

        Returns whether there are any, [rows]. Only rows from before all changes that still exist count as other partners: this
        may send too much, which is harmless.
        """
        columns = list(self._side.ranged)
        ends = [self._side.first + 2 * column + end for column in columns for end in (0, 1)]
        kinds, kind = np.unique(cells, return_inverse=True)
        starts, entries, _ = self._index.lists.gather(kinds)
        is_old = ~np.isin(entries, moves.new)
        boxes = Boxes.all(self._space, len(cells)).hold(self._by, gaps.codes)
        first, slots = self._subscribers.found(boxes.lo, boxes.hi)
        found = np.zeros(len(cells), np.bool_)
        for i, cell in enumerate(kind.tolist()):
            inside = slice(starts[cell], starts[cell + 1])
            others = self._known[entries[inside][is_old[inside]]][:, columns]
            ranges = self._subscribers.coords(slots[first[i] : first[i + 1]])[:, ends]
            ranges = ranges[holds_none(ranges, nearest_around(gaps.codes[i, columns], others))]
            if len(ranges):
                found[i] = True
                gaps.lo_from[i], gaps.hi_to[i] = ranges[:, 0::2].min(axis=0), ranges[:, 1::2].max(axis=0)
        return found

    def boxes(self, gaps: Gaps, of: Int64Array, waiting: Int64Array) -> Boxes:
        """Boxes of the subscriptions that select row waiting[i] (codes) and have no partner for it except gaps[of[i]]."""
        return self._within(gaps, of).hold(self._number, waiting)

    def _within(self, gaps: Gaps, of: Int64Array) -> Boxes:
        boxes = Boxes.all(self._space, len(of)).hold(self._by, gaps.codes[of])
        for i, column in enumerate(self._side.ranged):
            boxes.within(self._by, column, gaps.lo_from[of, i], gaps.hi_to[of, i])
        return boxes

    def wanted(self, gaps: Gaps, of: Int64Array, starts: Int64Array, codes: Int64Array) -> tuple[Int64Array, Boxes]:
        """(place, box) of the waiting rows that must be sent to a subscription because of new rows.

        Rows starts[i]:starts[i + 1] wait for gaps[of[i]]; codes: of the waiting rows. If few subscriptions have no other
        partner, which is usual, testing each of these is faster than testing each row.
        """
        side = self._space.sides[self._number]
        owner = np.repeat(of, np.diff(starts))
        if side.pinned or len(side.ranged) != 1:
            boxes = self.boxes(gaps, owner, codes)
            kept = np.flatnonzero(self._subscribers.any(boxes.lo, boxes.hi))
            return kept, boxes.take(kept)
        around = self._within(gaps, of)
        counts, slots = self._subscribers.few(around.lo, around.hi, _FEW)
        is_few = counts <= _FEW
        has = np.arange(_FEW) < np.where(is_few, counts, 0)[:, None]
        ends = self._subscribers.coords(slots[has])[:, side.coords]
        first = np.concatenate([[0], np.cumsum(has.sum(axis=1))])
        is_wanted = covered(starts, codes[:, 0].copy(), first, ends[:, 0].copy(), ends[:, 1].copy())
        is_sure = np.repeat(is_few, np.diff(starts))
        kept = np.flatnonzero(is_wanted | ~is_sure)
        boxes = self.boxes(gaps, owner[kept], codes[kept])
        unsure = np.flatnonzero(~is_sure[kept])
        is_wanted[kept[unsure]] = self._subscribers.any(boxes.lo[unsure], boxes.hi[unsure])
        still = np.flatnonzero(is_wanted[kept])
        return kept[still], boxes.take(still)


def nearest_around(center: Int64Array, others: Int64Array) -> Int64Array:
    """Those of the other points [n, columns] with no third point in the box spanned by the point and the center.

    Any range that contains the center and another point contains one of these.
    """
    points = np.unique(others, axis=0)
    low, high = np.minimum(points, center), np.maximum(points, center)
    # [i, j]: point j lies in the box of point i.
    inside = ((points[None] >= low[:, None]) & (points[None] <= high[:, None])).all(axis=2)
    found: Int64Array = points[inside.sum(axis=1) == 1]
    return found


def holds_none(ranges: Int64Array, around: Int64Array) -> BoolArray:
    """Whether each range contains none of the points `around`, [n]. ranges: [n, 2 * columns], lower and upper ends in turn."""
    lo, hi = ranges[:, None, 0::2], ranges[:, None, 1::2]
    holds: BoolArray = np.all((around[None] >= lo) & (around[None] <= hi), axis=2)
    found: BoolArray = ~np.any(holds, axis=1)
    return found
