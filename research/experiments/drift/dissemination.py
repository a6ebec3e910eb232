"""What each change gives a network to do, by way of dissemination: ranges, messages, and moves of what is indexed.

Networks of brokers keep subscriptions in the order of keys, such as a distributed B-tree. A key is three numbers, compared one
after the other: the item, and

    r, lid, r,lid   the code of the radius, and the label     never changes, but for labels that are renewed
    lr              the code of an end of the interval, 0     two keys for each subscription; both change when it is told
    c               the code of the value last told, 0        changes when it is told; for one radius only
    unicast         none: the server knows whom to tell

`r`, `lid` and `r,lid` are one: where all radii differ labels are 0, and where all are the same the labels decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from research.bench.drift.data import Timeline
from research.bench.drift.replay import DriftReplay
from research.strategies.drift.kernels.end_points import EndPoints, reaching
from research.strategies.drift.kernels.threshold_index import ABSOLUTE, ThresholdIndex
from tidings.model.codes import Int64Array, codes_of_doubles
from tidings.workloads.draws import FloatArray

Way = Literal["unicast", "r", "lid", "r,lid", "lr", "c"]


class Registered(NamedTuple):
    """Entries of the index of a network: a key [n, 3] and the number of the member [n] that it leads to."""

    key: Int64Array
    member: Int64Array


class Sent(NamedTuple):
    """One change: what happens in the network before it, what is sent, and what must be moved after it."""

    move: int
    joined: Registered
    """Of the members that came since the last change; in the first `Sent`, of all who are there."""
    renewed: tuple[Registered, Registered]
    """Entries of earlier members before and after labels were renewed for newcomers, row by row."""
    ranges: Int64Array
    """[ranges, 2, 3]: first and last key of each range that the change is sent to, closed and ascending; none by unicast."""
    told: Int64Array
    """[members]: numbers of those told, ascending; by unicast each is sent a message."""
    left: Registered
    """Entries that are taken out, as their members have been told."""
    entered: Registered
    """Entries that are put in in their place, row by row."""


_NONE = Registered(np.empty((0, 3), np.int64), np.empty(0, np.int64))
_NO_RANGES = np.empty((0, 2, 3), np.int64)


def dissemination(timeline: Timeline, begin: int, way: Way) -> Iterator[Sent]:
    """Every change from number `begin` on, before which all items must have got a value; way c is for one radius only."""
    followed = _Followed(timeline)
    for move in range(begin):
        followed.join(move)
        followed.move(move)
    if way in ("r", "lid", "r,lid"):
        return _by_label(timeline, followed, begin)
    return _by_value(timeline, followed, begin, way)


def _by_label(timeline: Timeline, followed: _Followed, begin: int) -> Iterator[Sent]:
    replay = DriftReplay(timeline, ThresholdIndex(ABSOLUTE, renews=True))
    replay.play(begin)
    known = 0
    for move in range(begin, timeline.moves):
        followed.join(move)
        before, renewals = replay.label[:known].copy(), len(replay.renewals)
        touched = replay.play(1).touched
        entries = partial(_labelled, timeline)
        renewed = _NONE, _NONE
        if known and len(replay.renewals) > renewals:
            changed = np.flatnonzero(before != replay.label[:known])
            renewed = entries(changed, before), entries(changed, replay.label)
        joined = entries(np.arange(known, followed.joined), replay.label)
        known = followed.joined
        item = int(timeline.move_item[move])
        ends = (touched.reach_lo, touched.label_lo), (touched.reach_hi, touched.label_hi)
        ranges = np.stack([_keys(item, codes_of_doubles(reach), label) for reach, label in ends], axis=1)
        yield Sent(move, joined, renewed, ranges, followed.move(move)[0], _NONE, _NONE)


def _by_value(timeline: Timeline, followed: _Followed, begin: int, way: Way) -> Iterator[Sent]:
    entries = {"lr": _ends, "c": _centres, "unicast": _nowhere}[way]
    known = 0
    for move in range(begin, timeline.moves):
        followed.join(move)
        new = np.arange(known, followed.joined)
        joined = entries(timeline, new, followed.centre[new])
        known = followed.joined
        item, value = int(timeline.move_item[move]), float(timeline.move_value[move])
        last = followed.value(item)
        ranges = _NO_RANGES
        if way == "lr":
            ranges = _between(item, last, value)
        elif way == "c":
            radius = float(timeline.member_reach[0])
            ranges = _between(item, *(reaching(end, radius)[0 if value > last else 1] for end in (last, value)))
        told, before = followed.move(move)
        left, entered = (entries(timeline, told, centre) for centre in (before, followed.centre[told]))
        yield Sent(move, joined, (_NONE, _NONE), ranges, told, left, entered)


def _between(item: int, last: float, now: float) -> Int64Array:
    """The range of keys from one value, without it, to another."""
    first, stop = codes_of_doubles(np.array([last, now])).tolist()
    if first == stop:
        return _NO_RANGES
    low, high = (first + 1, stop) if stop > first else (stop, first - 1)
    return np.array([[[item, low, 0], [item, high, 0]]], np.int64)


def _keys(item: int | Int64Array, major: Int64Array, minor: int | Int64Array) -> Int64Array:
    return np.column_stack([np.broadcast_to(part, len(major)) for part in (item, major, minor)])


def _labelled(timeline: Timeline, members: Int64Array, label: Int64Array) -> Registered:
    """Entries of members by radius and label; label: [all members]."""
    reach = codes_of_doubles(timeline.member_reach[members])
    return Registered(_keys(timeline.member_item[members], reach, label[members]), members)


def _ends(timeline: Timeline, members: Int64Array, centre: FloatArray) -> Registered:
    """Entries of members by both ends: first all lower ones, then all upper ones. centre: [members]."""
    reach = timeline.member_reach[members]
    ends = codes_of_doubles(np.concatenate([centre - reach, centre + reach]))
    return Registered(_keys(np.tile(timeline.member_item[members], 2), ends, 0), np.tile(members, 2))


def _centres(timeline: Timeline, members: Int64Array, centre: FloatArray) -> Registered:
    return Registered(_keys(timeline.member_item[members], codes_of_doubles(centre), 0), members)


def _nowhere(timeline: Timeline, members: Int64Array, centre: FloatArray) -> Registered:
    return _NONE


class _Followed:
    """The members so far, and the value that each was last told."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.joined = 0
        self.centre = np.full(timeline.size, np.nan)
        """[members]"""
        self._index: dict[int, EndPoints] = {}
        self._members = [np.flatnonzero(timeline.member_item == item) for item in range(len(timeline.names))]
        """Item -> its members in order of creation: so `EndPoints` numbers them."""

    def join(self, move: int) -> None:
        """Lets those in who come before a move."""
        first, self.joined = self.joined, int(np.searchsorted(self._timeline.member_after, move, "right"))
        new = np.arange(first, self.joined)
        items = self._timeline.member_item[new]
        for item in np.unique(items).tolist():
            if item in self._index:
                self._add(item, new[items == item])

    def move(self, move: int) -> tuple[Int64Array, FloatArray]:
        """Makes a move. Returns the members told, ascending, and the values that they were told before."""
        item, value = int(self._timeline.move_item[move]), float(self._timeline.move_value[move])
        if item not in self._index:
            self._index[item] = EndPoints(value)
            told = self._members[item][: np.searchsorted(self._members[item], self.joined)]
            self._add(item, told)
            return told, np.full(len(told), np.nan)
        index = self._index[item]
        (count,) = index.move(np.array([value])).tolist()
        told = self._members[item][np.sort(index.told[:count])]
        before = self.centre[told]
        self.centre[told] = value
        return told, before

    def _add(self, item: int, members: Int64Array) -> None:
        self._index[item].add(self._timeline.member_reach[members])
        self.centre[members] = self._index[item].value

    def value(self, item: int) -> float:
        return self._index[item].value
