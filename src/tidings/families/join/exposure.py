"""Exposure: for whom a new row of the filtering side is the first partner there is.

With one range column these are the ranges that hold the row and end before its neighbours do, on both sides. With several, the
rows around it decide, and the region sent to is the smallest box that holds everyone so found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.join.audience import Audience
from tidings.families.join.boxes import Boxes
from tidings.families.join.envelope import envelope, sees_only
from tidings.families.join.junction import Junction
from tidings.families.join.relation import Moves
from tidings.families.join.subscription import Space
from tidings.kernels.coverage import covered
from tidings.kernels.ladders import Neighbours
from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array

_FEW = 64
"""Subscriptions."""


class Gaps(NamedTuple):
    """New rows by their codes, and between which ends the ranges lie for which each may be the first; [row, column]."""

    codes: Int64Array
    lo_from: Int64Array
    hi_to: Int64Array


class Exposure:
    """New rows of side `by`, and rows of side `number` that wait for partners among them."""

    def __init__(
        self, space: Space, audience: Audience, number: int, by: int, junction: Junction, known: Int64Array
    ) -> None:
        """`known`: codes of the rows of side `by`, by entry."""
        self._space, self._audience, self._known = space, audience, known
        self._number, self._by = number, by
        self._end = junction.end(by)
        self._side = space.sides[by]

    def gaps(self, at: Int64Array, moves: Moves, near: Neighbours, cells: Int64Array) -> tuple[Int64Array, Gaps]:
        """Which of the changes at these places may expose anything, and their gaps; near, cells: of those changes."""
        side, codes = self._side, moves.new_codes[at]
        count = len(side.ranged)
        gaps = Gaps(codes, np.full((len(at), count), CODE_MIN), np.full((len(at), count), CODE_MAX))
        if count == 0:
            may_expose = ~near.has_twin
        elif any(side.columns[column].type.is_lossy for column in side.ranged):
            # Where codes do not tell values apart, a row that seems to be in a range may not be: nobody is sure to have it.
            may_expose = np.ones(len(at), np.bool_)
        elif count == 1:
            may_expose = ~near.has_twin
            kept = np.flatnonzero(may_expose)
            gaps.lo_from[:, 0], gaps.hi_to[:, 0] = near.lo_from, near.hi_to
            on_column = codes[kept, side.ranged[0]]
            may_expose[kept] = self._audience.meets(self._by, near.lo_from[kept], on_column, near.hi_to[kept])
        else:
            may_expose = self._look_around(gaps, moves, cells)
        return at[may_expose], Gaps(*(part[may_expose] for part in gaps))

    def _look_around(self, gaps: Gaps, moves: Moves, cells: Int64Array) -> BoolArray:
        """With several range columns: narrows gaps to those for whom a row is the first, and tells where there are any.

        Only rows that were there before all changes and still are count as others: to send too much does no harm.
        """
        columns = list(self._side.ranged)
        ends = [self._side.first + 2 * column + end for column in columns for end in (0, 1)]
        kinds, kind = np.unique(cells, return_inverse=True)
        starts, entries, _ = self._end.ladders.gather(kinds)
        is_old = ~np.isin(entries, moves.new)
        boxes = Boxes.all(self._space, len(cells)).hold(self._by, gaps.codes)
        first, slots = self._audience.found(boxes.lo, boxes.hi)
        found = np.zeros(len(cells), np.bool_)
        for i, cell in enumerate(kind.tolist()):
            inside = slice(starts[cell], starts[cell + 1])
            others = self._known[entries[inside][is_old[inside]]][:, columns]
            ranges = self._audience.coords(slots[first[i] : first[i + 1]])[:, ends]
            ranges = ranges[sees_only(ranges, envelope(gaps.codes[i, columns], others))]
            if len(ranges):
                found[i] = True
                gaps.lo_from[i], gaps.hi_to[i] = ranges[:, 0::2].min(axis=0), ranges[:, 1::2].max(axis=0)
        return found

    def boxes(self, gaps: Gaps, of: Int64Array, waiting: Int64Array) -> Boxes:
        """All who select waiting rows, given by their codes, and have no partner for them but gaps[of]."""
        return self._within(gaps, of).hold(self._number, waiting)

    def _within(self, gaps: Gaps, of: Int64Array) -> Boxes:
        boxes = Boxes.all(self._space, len(of)).hold(self._by, gaps.codes[of])
        for i, column in enumerate(self._side.ranged):
            boxes.within(self._by, column, gaps.lo_from[of, i], gaps.hi_to[of, i])
        return boxes

    def wanted(self, gaps: Gaps, of: Int64Array, starts: Int64Array, codes: Int64Array) -> tuple[Int64Array, Boxes]:
        """(place, box) of the waiting rows that somebody wants because of new ones: rows starts[i] .. wait for gaps[of[i]].

        `codes`: of the waiting rows. Where those who have no other partner are few, which they mostly are, it is faster to look
        at each of them than at each of the rows.
        """
        side = self._space.sides[self._number]
        owner = np.repeat(of, np.diff(starts))
        if side.pinned or len(side.ranged) != 1:
            boxes = self.boxes(gaps, owner, codes)
            kept = np.flatnonzero(self._audience.any(boxes.lo, boxes.hi))
            return kept, boxes.take(kept)
        around = self._within(gaps, of)
        counts, slots = self._audience.few(around.lo, around.hi, _FEW)
        is_few = counts <= _FEW
        has = np.arange(_FEW) < np.where(is_few, counts, 0)[:, None]
        ends = self._audience.coords(slots[has])[:, side.coords]
        first = np.concatenate([[0], np.cumsum(has.sum(axis=1))])
        is_wanted = covered(starts, codes[:, 0].copy(), first, ends[:, 0].copy(), ends[:, 1].copy())
        is_sure = np.repeat(is_few, np.diff(starts))
        kept = np.flatnonzero(is_wanted | ~is_sure)
        boxes = self.boxes(gaps, owner[kept], codes[kept])
        unsure = np.flatnonzero(~is_sure[kept])
        is_wanted[kept[unsure]] = self._audience.any(boxes.lo[unsure], boxes.hi[unsure])
        still = np.flatnonzero(is_wanted[kept])
        return kept[still], boxes.take(still)
