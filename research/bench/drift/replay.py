"""Replays a timeline on the drift index, with members created at their times: counts notified members and bytes of messages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from research.bench.drift.data import DriftData, Timeline
from research.strategies.drift.kernels.baselines import BaselineIndex
from research.strategies.drift.kernels.threshold_index import (
    ABSOLUTE,
    CHOOSE,
    NO_TIME,
    Renewal,
    Runs,
    ThresholdIndex,
    Touched,
)
from research.strategies.drift.reformulate import TOLD, messages_of, regions_of, tags_of
from research.wire import wire_sizes
from tidings.model.codes import Int64Array
from tidings.model.region import Regions
from tidings.workloads.draws import FloatArray

_PAIRS_MAX = 4_000_000
"""Pairs of a new member and a box that are compared at a time."""
_SIZED_MAX = 10_000
_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it modulo 1 are spread evenly, for any number of them and also for every n-th of them."""


class Members:
    """Members sorted by item, reach and label, so that the members of a box are adjacent.

    order[k] is the number of the k-th member in this order.
    """

    def __init__(self, item: Int64Array, reach: FloatArray, label: Int64Array) -> None:
        self.order = np.lexsort((label, reach, item))
        self._reaches, reach_rank = np.unique(reach, return_inverse=True)
        self._labels, label_rank = np.unique(label, return_inverse=True)
        self._keys = self._key(item, reach_rank, label_rank)[self.order]

    def ranges(self, item: Int64Array, boxes: Touched | Runs) -> tuple[Int64Array, Int64Array]:
        """(start, stop) of the members of every box in `order`, both [boxes]. item: [boxes]."""
        reach_lo = np.searchsorted(self._reaches, boxes.reach_lo, "left")
        reach_hi = np.searchsorted(self._reaches, boxes.reach_hi, "right") - 1
        label_lo = np.searchsorted(self._labels, boxes.label_lo, "left")
        label_hi = np.searchsorted(self._labels, boxes.label_hi, "right") - 1
        start = np.searchsorted(self._keys, self._key(item, reach_lo, label_lo), "left")
        stop = np.searchsorted(self._keys, self._key(item, reach_hi, label_hi), "right")
        return start, np.maximum(start, stop)

    def _key(self, item: Int64Array, reach_rank: Int64Array, label_rank: Int64Array) -> Int64Array:
        key: Int64Array = (item * len(self._reaches) + reach_rank) * len(self._labels) + label_rank
        return key


def box_moves(touched: Touched) -> Int64Array:
    """The move that every box belongs to."""
    return np.repeat(np.arange(len(touched.starts) - 1), np.diff(touched.starts))


def sums(touched: Touched, per_box: Int64Array) -> Int64Array:
    """Sums of `per_box` [boxes] for every move, [moves]."""
    ends = np.concatenate([[0], np.cumsum(per_box)])
    total: Int64Array = ends[touched.starts[1:]] - ends[touched.starts[:-1]]
    return total


@dataclass(frozen=True)
class Moved:
    """Moves first, first + 1, .. and the boxes they touched. joined: number of members before the first of them."""

    first: int
    joined: int
    touched: Touched

    def __len__(self) -> int:
        return len(self.touched.starts) - 1


class DriftReplay:
    """An index with a timeline's items, and the members created so far."""

    def __init__(self, timeline: Timeline, index: ThresholdIndex | BaselineIndex | None = None) -> None:
        """index: an empty one; None for a new `ThresholdIndex`."""
        self.timeline = timeline
        self.index = index or ThresholdIndex(ABSOLUTE)
        count = len(timeline.names)
        self._audience = np.array([self.index.new_audience() for _ in range(count)], np.int64)
        self._item = self.index.new_items(self._audience, np.full(count, np.nan), np.full(count, NO_TIME))
        self.at = 0
        """Moves made."""
        self.joined = 0
        """Members created so far."""
        self.label = np.zeros(timeline.size, np.int64)
        self._members: tuple[int, Members] | None = None
        self.renewals: list[Renewal] = []
        """What an index that renews labels has made of those of earlier members; `told` is for others only."""

    @property
    def anchors(self) -> ThresholdIndex:
        """The index, which must be a `ThresholdIndex`."""
        assert isinstance(self.index, ThresholdIndex)
        return self.index

    def play(self, count: int) -> Moved:
        """Makes so many moves, or all that are left."""
        first, joined = self.at, self.joined
        stop = min(first + count, self.timeline.moves)
        parts = []
        while self.at < stop:
            self._let_in()
            after = self.timeline.member_after
            until = min(stop, int(after[self.joined])) if self.joined < len(after) else stop
            parts.append(self._move(until))
        return Moved(first, joined, _concat(parts))

    def settle(self) -> None:
        """Plays until all members are created and all items have values."""
        self.play(self.timeline.settled - self.at)
        self._let_in()

    def members(self) -> Members:
        """The members created so far."""
        if self._members is None or self._members[0] != self.joined:
            come, timeline = slice(self.joined), self.timeline
            found = Members(timeline.member_item[come], timeline.member_reach[come], self.label[come])
            self._members = self.joined, found
        return self._members[1]

    def told(self, played: Moved, members: Members) -> Int64Array:
        """[moves]: members that each move touched. members: those from before the first move."""
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
        """Adds the members that are created at the present move."""
        stop = int(np.searchsorted(self.timeline.member_after, self.at, "right"))
        if stop > self.joined:
            new = slice(self.joined, stop)
            audience = self._audience[self.timeline.member_item[new]]
            is_plain = isinstance(self.index, BaselineIndex)
            wanted = np.arange(self.joined, stop) if is_plain else np.full(stop - self.joined, CHOOSE)
            self.label[new] = self.index.add(audience, self.timeline.member_reach[new], wanted)
            if not is_plain:
                self._renew()
            self.joined = stop

    def _renew(self) -> None:
        """Changes the labels of earlier members as an index has that renews them."""
        for renewal in self.anchors.take_renewals():
            self.renewals.append(renewal)
            come = slice(self.joined)
            item = self.timeline.member_item[come]
            mine = np.flatnonzero((item == renewal.audience) & (self.timeline.member_reach[come] == renewal.reach))
            at = np.minimum(np.searchsorted(renewal.old, self.label[mine]), len(renewal.old) - 1)
            has_changed = renewal.old[at] == self.label[mine] if len(renewal.old) else np.zeros(len(mine), np.bool_)
            self.label[mine[has_changed]] = renewal.new[at[has_changed]]

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


def region_bytes(data: DriftData, played: Moved) -> Int64Array:
    """[moves]: bytes of the message with all ranges of the move; 0 if there is none."""
    stop = played.first + len(played)
    sizes = np.zeros(len(played), np.int64)
    reached = np.flatnonzero(np.diff(played.touched.starts))
    if len(reached):
        regions = regions_of(played.touched, tags_of(data.timeline.move_value[played.first : stop]))
        changes = data.images(played.first, stop)
        sizes[reached] = wire_sizes(messages_of(data.space, changes, reached, regions.take(reached)))
    return sizes


def unicast_bytes(data: DriftData) -> float:
    """Mean bytes of a unicast message, over subscriptions evenly sampled from all, with one move each."""
    count = min(data.size, _SIZED_MAX)
    some = np.arange(count) * data.size // max(1, count)
    points = data.coords()[some]
    # Labels as the strategy unicast gives them: from 1 on, so that no end is open.
    points[:, 1] = some + 1
    regions = Regions(points, points, np.full(count, TOLD, np.uint8), np.arange(count + 1))
    move = _moves_of(data.timeline, data.timeline.member_item[some])
    messages = messages_of(data.space, data.images(0, data.timeline.moves), move, regions)
    return float(wire_sizes(replace(messages, target=data.ids.take(pa.array(some)))).mean())


def _moves_of(timeline: Timeline, item: Int64Array) -> Int64Array:
    """A move of each of these items, evenly spread over early and late moves."""
    order = np.argsort(timeline.move_item, kind="stable")
    starts = np.searchsorted(timeline.move_item[order], np.arange(len(timeline.names) + 1))
    share = np.arange(len(item)) * _GOLDEN % 1
    return order[starts[item] + (share * np.diff(starts)[item]).astype(np.int64)]
