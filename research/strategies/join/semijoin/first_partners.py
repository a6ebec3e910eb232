"""First partners: finds the subscriptions for which a new row of a filter is the only partner.

With one range column these are the subscriptions whose range contains the row and neither of its neighbours: they lie within
one gap. With several range columns a range may avoid the other rows in many ways: a few gaps are made that hold all
subscriptions without another partner and no other (`kernels/cover.py`). If CORNERS_MAX gaps do not suffice, some others hear
a row again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from research.strategies.join.boxes import Boxes
from research.strategies.join.kernels.cover import corners, holding
from research.strategies.join.kernels.range_cover import covered
from research.strategies.join.kernels.sorted_lists import Neighbours
from research.strategies.join.relations.join_index import IndexedEdge, expand
from research.strategies.join.relations.relation import Moves
from research.strategies.join.space import Space
from research.strategies.join.subscriber_index import SubscriberIndex
from tidings.kernels.rows import NONE
from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array

_FEW = 64
"""Up to this many subscriptions are tested one by one."""


class Gaps(NamedTuple):
    """For each new row i, gaps starts[i]:starts[i + 1] that hold all ranges for which it may be the first partner.

    codes: [gaps, columns], of the row; lo_from, hi_to: [gaps, range columns], the ends of the gap.
    """

    starts: Int64Array
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
        if count > 1 and not any(side.columns[column].type.is_lossy for column in side.ranged):
            return self._look_around(at, moves, cells)
        lo_from, hi_to = np.full((len(at), count), CODE_MIN), np.full((len(at), count), CODE_MAX)
        if count == 0:
            kept = np.flatnonzero(~near.has_twin)
        elif any(side.columns[column].type.is_lossy for column in side.ranged):
            # Lossy codes: it is not certain that any other row is in a range, so every row may be a first partner.
            kept = np.arange(len(at))
        else:
            lo_from[:, 0], hi_to[:, 0] = near.lo_from, near.hi_to
            kept = np.flatnonzero(~near.has_twin)
            on_column = codes[kept, side.ranged[0]]
            is_any = self._subscribers.any_within(self._by, near.lo_from[kept], on_column, near.hi_to[kept])
            kept = kept[is_any]
        return at[kept], Gaps(np.arange(len(kept) + 1), codes[kept], lo_from[kept], hi_to[kept])

    def _look_around(self, at: Int64Array, moves: Moves, cells: Int64Array) -> tuple[Int64Array, Gaps]:
        """For several range columns: the gaps around the subscriptions for which a row is the first partner.

        Only rows from before all changes that still exist, and the one that a row replaces, count as other partners: this may
        send too much, which is harmless.
        """
        columns, codes = list(self._side.ranged), moves.new_codes[at]
        ends = [self._side.first + 2 * column + end for column in columns for end in (0, 1)]
        kinds, kind = np.unique(cells, return_inverse=True)
        starts, entries, _ = self._index.lists.gather(kinds)
        is_old = ~np.isin(entries, moves.new)
        replaced = self._replaced(at, moves)
        boxes = Boxes.all(self._space, len(at)).hold(self._by, codes)
        first, slots = self._subscribers.found(boxes.lo, boxes.hi)
        turn = np.tile([-1, 0], len(columns))
        found = [np.empty((0, len(ends)), np.int64)]
        for i, cell in enumerate(kind.tolist()):
            inside = slice(starts[cell], starts[cell + 1])
            others = self._known[entries[inside][is_old[inside]]]
            if replaced[i]:
                others = np.concatenate([others, moves.old_codes[at[i : i + 1]]])
            ranges = self._subscribers.coords(slots[first[i] : first[i + 1]])[:, ends]
            has_other = holding(ranges, others[:, columns])
            found.append(corners(ranges[~has_other] ^ turn, ranges[has_other] ^ turn) ^ turn)
        sizes = np.array([len(gaps) for gaps in found[1:]], np.int64)
        kept = np.flatnonzero(sizes)
        around = np.concatenate(found)
        gap_starts = np.concatenate([[0], np.cumsum(sizes[kept])])
        gaps = Gaps(gap_starts, np.repeat(codes, sizes, axis=0), around[:, 0::2], around[:, 1::2])
        return at[kept], gaps

    def _replaced(self, at: Int64Array, moves: Moves) -> BoolArray:
        """Whether each change replaces a row that was a partner of the same rows, [at]."""
        has_old = moves.old[at] != NONE
        pinned = list(self._side.pinned)
        found: BoolArray = has_old & (moves.old_codes[at][:, pinned] == moves.new_codes[at][:, pinned]).all(axis=1)
        found[has_old] &= self._index.value_of(moves.old[at[has_old]]) == self._index.value_of(moves.new[at[has_old]])
        return found

    def _within(self, gaps: Gaps, of: Int64Array) -> Boxes:
        boxes = Boxes.all(self._space, len(of)).hold(self._by, gaps.codes[of])
        for i, column in enumerate(self._side.ranged):
            boxes.within(self._by, column, gaps.lo_from[of, i], gaps.hi_to[of, i])
        return boxes

    def wanted(self, gaps: Gaps, of: Int64Array, starts: Int64Array, codes: Int64Array) -> tuple[Int64Array, Boxes]:
        """(place, box) of the waiting rows that must be sent to a subscription because of new rows, by places.

        Rows starts[i]:starts[i + 1] wait for new row of[i]; codes: of the waiting rows. If few subscriptions have no other
        partner, which is usual, testing each of these is faster than testing each row.
        """
        side = self._space.sides[self._number]
        owner = np.repeat(of, np.diff(starts))
        if side.pinned or len(side.ranged) != 1 or len(self._side.ranged) > 1:
            place, gap = expand((gaps.starts, np.arange(gaps.starts[-1])), owner)
            boxes = self._within(gaps, gap).hold(self._number, codes[place])
            kept = np.flatnonzero(self._subscribers.any(boxes.lo, boxes.hi))
            return place[kept], boxes.take(kept)
        # Each new row has one gap.
        around = self._within(gaps, of)
        counts, slots = self._subscribers.few(around.lo, around.hi, _FEW)
        is_few = counts <= _FEW
        has = np.arange(_FEW) < np.where(is_few, counts, 0)[:, None]
        ends = self._subscribers.coords(slots[has])[:, side.coords]
        first = np.concatenate([[0], np.cumsum(has.sum(axis=1))])
        is_wanted = covered(starts, codes[:, 0].copy(), first, ends[:, 0].copy(), ends[:, 1].copy())
        is_sure = np.repeat(is_few, np.diff(starts))
        kept = np.flatnonzero(is_wanted | ~is_sure)
        boxes = self._within(gaps, owner[kept]).hold(self._number, codes[kept])
        unsure = np.flatnonzero(~is_sure[kept])
        is_wanted[kept[unsure]] = self._subscribers.any(boxes.lo[unsure], boxes.hi[unsure])
        still = np.flatnonzero(is_wanted[kept])
        return kept[still], boxes.take(still)
