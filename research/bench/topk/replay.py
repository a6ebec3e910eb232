"""Replays the changes of a scene on the range top-k index: counts boxes, receivers, and bytes of messages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from research.bench.topk.data import TopkData
from research.servers.message import MessageBatch
from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.range_topk import Sends
from research.strategies.topk.kernels.rectangle_cover import RectangleCover
from research.strategies.topk.reformulate import PLACED
from research.strategies.topk.sparse_index import SparseRangeTopkIndex
from research.wire import wire_sizes
from research.workloads.topk.scene import Scene
from research.workloads.topk.table import ITEMS
from tidings.kernels.point_index import PointIndex
from tidings.model.change import Op
from tidings.model.codes import Int64Array, codes_of_doubles
from tidings.model.region import Regions

PAPER_BOX, PAPER_UNICAST = 24, 16
"""The paper's messages: six numbers of four bytes (two ranges and an object) for a box; what it sends to one subscription
(an id and an object) must have 16: its largest unicast traffic of one event, 39,998,000 bytes of 5,000,000 subscriptions,
is 16 bytes for every second one, which is as many as can hold an object in the middle."""
_SIZED_MAX = 10_000


def crowds_of(points: Int64Array) -> PlaneKdTree:
    """All points in the set that a replay's rows are in."""
    crowds = PlaneKdTree()
    crowds.add(np.zeros(len(points), np.int64), points[:, 0], points[:, 1])
    return crowds


@dataclass(frozen=True)
class Changed:
    """Changes first, first + 1, .. and their sends."""

    first: int
    sends: Sends

    def __len__(self) -> int:
        return len(self.sends.send_starts) - 1


class TopkReplay:
    """Rankings with a scene's rows as they are after the changes made so far."""

    def __init__(
        self, scene: Scene, groups: int | None = None, among: PlaneKdTree | RectangleCover | None = None
    ) -> None:
        """groups: highest number of boxes of a region; None: no limit. among: points that boxes are drawn around, or None."""
        self.scene = scene
        self.rankings = SparseRangeTopkIndex(scene.k, groups=groups)
        self._among = among
        self._place, self._new_score = codes_of_doubles(scene.place), codes_of_doubles(scene.new_score)
        rows = np.arange(scene.rows)
        sets, present = np.full(len(rows), self.rankings.new_set()), np.ones(len(rows), np.bool_)
        self.rankings.change(sets, rows, self._place, codes_of_doubles(scene.score), rows, present)
        self.at = 0
        """Changes made."""

    def skip(self, count: int) -> None:
        """Makes `count` changes, ignoring `among`."""
        self._play(count, None)

    def play(self, count: int) -> Changed:
        """Makes `count` changes, or all that are left."""
        return self._play(count, self._among)

    def _play(self, count: int, among: PlaneKdTree | RectangleCover | None) -> Changed:
        first, stop = self.at, min(self.at + count, self.scene.changes)
        self.at = stop
        row = self.scene.changed[first:stop]
        sets, present = np.zeros(stop - first, np.int64), np.ones(stop - first, np.bool_)
        columns = (sets, row, self._place[row], self._new_score[first:stop], row, present)
        sends = self.rankings.change(*columns) if among is None else self.rankings.change_among(among, *columns)
        return Changed(first, sends)


class RangeSubscribers:
    """The points (low, high) of subscriptions, in indexes that are made when first used; counts points in boxes."""

    def __init__(self, scene: Scene) -> None:
        self.points = codes_of_doubles(scene.ranges)

    @cached_property
    def forest(self) -> PointIndex:
        forest, count = PointIndex(2), len(self.points)
        forest.add_many(np.zeros(count, np.int64), np.arange(count), self.points)
        return forest

    @cached_property
    def crowds(self) -> PlaneKdTree:
        return crowds_of(self.points)

    @cached_property
    def _ends(self) -> tuple[Int64Array, Int64Array]:
        return np.sort(self.points[:, 0]), np.sort(self.points[:, 1])

    def deliveries(self, sends: Sends) -> Int64Array:
        """[changes]: points that the sends of the change reach; a point that gets two of them counts twice."""
        per_send = self._count(sends.box_lo, sends.box_hi, sends.box_starts)
        return sums(per_send, sends.send_starts)

    def affected(self, sends: Sends) -> Int64Array:
        """[changes]: points that hold the changed entry before or after the change, if regions are exact.

        These are the points that the first send reaches: it has the changed entry, later ones have entries in its place.
        """
        boxes, starts = first_boxes(sends)
        return self._count(sends.box_lo[boxes], sends.box_hi[boxes], starts)

    def bounded(self, sends: Sends, x: Int64Array) -> Int64Array:
        """[changes]: points in the smallest rectangle around the region of the first send that has its corner at (x, x)."""
        boxes, starts = first_boxes(sends)
        told = np.flatnonzero(np.diff(starts))
        lo, hi = np.stack([x, x], axis=1), np.stack([x, x], axis=1)
        lo[told, 0] = np.minimum.reduceat(sends.lo_min[boxes], starts[told]) if len(told) else lo[told, 0]
        hi[told, 1] = np.maximum.reduceat(sends.hi_max[boxes], starts[told]) if len(told) else hi[told, 1]
        return self._count(lo, hi, np.arange(len(x) + 1))

    def around(self, x: Int64Array) -> Int64Array:
        """Number of points whose range contains x: those that begin at or before x, less those that end before x."""
        lows, highs = self._ends
        begun: Int64Array = np.searchsorted(lows, x, "right") - np.searchsorted(highs, x, "left")
        return begun

    def _count(self, lo: Int64Array, hi: Int64Array, starts: Int64Array) -> Int64Array:
        return self.forest.count(np.zeros(len(starts) - 1, np.int64), lo, hi, starts)


def first_boxes(sends: Sends) -> tuple[Int64Array, Int64Array]:
    """(places of boxes, starts): the boxes of the first send of every change, none where it has no sends."""
    starts = sends.send_starts
    begin = sends.box_starts[starts[:-1]]
    end = sends.box_starts[np.minimum(starts[:-1] + 1, starts[1:])]
    cuts = np.concatenate([[0], np.cumsum(end - begin)])
    return np.repeat(begin - cuts[:-1], end - begin) + np.arange(cuts[-1]), cuts


def boxes_per_change(sends: Sends) -> Int64Array:
    return np.diff(sends.box_starts[sends.send_starts])


def sums(values: Int64Array, starts: Int64Array) -> Int64Array:
    """Sums of the parts values[starts[i]:starts[i + 1]]."""
    ends = np.concatenate([[0], np.cumsum(values)])
    total: Int64Array = ends[starts[1:]] - ends[starts[:-1]]
    return total


def region_bytes(data: TopkData, sends: Sends) -> Int64Array:
    """[sends]: bytes of a message with all boxes of the send. All get the seq of the middle change, as sizes differ little."""
    scene = data.scene
    tags = np.full(len(sends.box_lo), PLACED, np.uint8)
    regions = Regions(sends.box_lo, sends.box_hi, tags, sends.box_starts)
    return wire_sizes(_messages(data, np.full(len(sends.entry), scene.changes // 2), sends.entry, regions))


def unicast_bytes(data: TopkData) -> float:
    """Mean bytes of a message to a single subscription, over subscriptions and changes evenly taken from all."""
    scene, count = data.scene, min(data.size, _SIZED_MAX)
    some = np.arange(count) * data.size // max(1, count)
    change = np.arange(count) * scene.changes // max(1, count)
    points = data.coords()[some]
    regions = Regions(points, points, np.full(count, PLACED, np.uint8), np.arange(count + 1))
    # A row that takes the place of another is not the changed one, but as likely to be any.
    messages = _messages(data, change, scene.changed[change], regions)
    return float(wire_sizes(replace(messages, target=data.ids.take(pa.array(some)))).mean())


def _messages(data: TopkData, change: Int64Array, row: Int64Array, regions: Regions) -> MessageBatch:
    """Messages with these rows for these changes, counted from the first change after the inserts."""
    # Which score a row has does not matter to its size.
    rows = data.batch(ITEMS.name, Op.UPDATE, 0, data.columns(row, data.scene.score[row])).rows
    payload = rows.select(list(data.space.payload))
    return MessageBatch(data.space.key, data.scene.rows + change + 1, (), regions, payload)
