"""Plays a timeline on the index, everybody coming at the right moment, and counts who is touched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.bench.drift_members import Members, box_moves, sums
from tidings.bench.drift_timeline import Timeline
from tidings.families.drift.kernels.baselines import BaselineIndex
from tidings.families.drift.kernels.threshold_index import ABSOLUTE, CHOOSE, NO_TIME, ThresholdIndex, Touched
from tidings.model.codes import Int64Array

_PAIRS_MAX = 4_000_000
"""Newcomers times boxes that are compared at a time."""


@dataclass(frozen=True)
class Played:
    """Moves first, first + 1, .. and what they touched; `joined` members were there before the first of them."""

    first: int
    joined: int
    touched: Touched

    def __len__(self) -> int:
        return len(self.touched.starts) - 1


class Player:
    """An index with a timeline's items and the members that have come so far."""

    def __init__(self, timeline: Timeline, index: ThresholdIndex | BaselineIndex | None = None) -> None:
        """On a new index, or on an empty one of the plain kind."""
        self.timeline = timeline
        self.index = index or ThresholdIndex(ABSOLUTE)
        count = len(timeline.names)
        self._audience = np.array([self.index.new_audience() for _ in range(count)], np.int64)
        self._item = self.index.new_items(self._audience, np.full(count, np.nan), np.full(count, NO_TIME))
        self.at = 0
        """Moves made."""
        self.joined = 0
        """Members that have come."""
        self.label = np.zeros(timeline.size, np.int64)
        self._members: tuple[int, Members] | None = None

    @property
    def anchors(self) -> ThresholdIndex:
        """The index, where it is not of the plain kind."""
        assert isinstance(self.index, ThresholdIndex)
        return self.index

    def play(self, count: int) -> Played:
        """Makes so many moves, or all that are left."""
        first, joined = self.at, self.joined
        stop = min(first + count, self.timeline.moves)
        parts = []
        while self.at < stop:
            self._let_in()
            after = self.timeline.member_after
            until = min(stop, int(after[self.joined])) if self.joined < len(after) else stop
            parts.append(self._move(until))
        return Played(first, joined, _concat(parts))

    def settle(self) -> None:
        """Goes to the moment from which on nobody comes any more."""
        self.play(self.timeline.settled - self.at)
        self._let_in()

    def members(self) -> Members:
        """The members that have come."""
        if self._members is None or self._members[0] != self.joined:
            come, timeline = slice(self.joined), self.timeline
            found = Members(timeline.member_item[come], timeline.member_reach[come], self.label[come])
            self._members = self.joined, found
        return self._members[1]

    def told(self, played: Played, members: Members) -> Int64Array:
        """How many members every move touched; `members` are those that were there before the first."""
        assert len(members.order) == played.joined
        touched, timeline = played.touched, self.timeline
        moves = box_moves(touched)
        item = timeline.move_item[played.first + moves]
        start, stop = members.ranges(item, touched)
        counts = stop - start
        size = max(1, _PAIRS_MAX // max(1, len(item)))
        for begin in range(played.joined, self.joined, size):
            new = slice(begin, min(begin + size, self.joined))
            reach, label = timeline.member_reach[new, None], self.label[new, None]
            is_in = (touched.reach_lo <= reach) & (reach <= touched.reach_hi)
            is_in &= (touched.label_lo <= label) & (label <= touched.label_hi)
            is_in &= (timeline.member_item[new, None] == item) & (
                timeline.member_after[new, None] <= played.first + moves
            )
            counts += is_in.sum(axis=0)
        return sums(touched, counts)

    def _let_in(self) -> None:
        """Those come for whom it is time."""
        stop = int(np.searchsorted(self.timeline.member_after, self.at, "right"))
        if stop > self.joined:
            new = slice(self.joined, stop)
            audience = self._audience[self.timeline.member_item[new]]
            is_plain = isinstance(self.index, BaselineIndex)
            wanted = np.arange(self.joined, stop) if is_plain else np.full(stop - self.joined, CHOOSE)
            self.label[new] = self.index.add(audience, self.timeline.member_reach[new], wanted)
            self.joined = stop

    def _move(self, stop: int) -> Touched:
        part = slice(self.at, stop)
        times = np.full(stop - self.at, NO_TIME)
        self.at = stop
        return self.index.move(self._item[self.timeline.move_item[part]], self.timeline.move_value[part], times)


def _concat(parts: list[Touched]) -> Touched:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum(np.concatenate([[0], *(np.diff(part.starts) for part in parts)])).astype(np.int64)
    columns = [np.concatenate([nothing, *(part[i] for part in parts)]) for i, nothing in enumerate(_NOTHING, 1)]
    return Touched(starts, *columns)


_NOTHING = (np.empty(0), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
