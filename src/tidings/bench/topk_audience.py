"""Counts who is in the boxes that changes are sent to."""

from __future__ import annotations

import numpy as np

from tidings.families.topk.kernels.range_topk import Sends
from tidings.kernels.forest import PointForest
from tidings.model.codes import Int64Array


class Audience:
    """The points (low, high) of subscriptions."""

    def __init__(self, points: Int64Array) -> None:
        self._lows, self._highs = np.sort(points[:, 0]), np.sort(points[:, 1])
        self.forest = PointForest(2)
        self.forest.add_many(np.zeros(len(points), np.int64), np.arange(len(points)), points)

    def deliveries(self, sends: Sends) -> Int64Array:
        """How many points the sends of every change reach; one that gets two of them counts twice."""
        per_send = self._count(sends.box_lo, sends.box_hi, sends.box_starts)
        return sums(per_send, sends.send_starts)

    def affected(self, sends: Sends) -> Int64Array:
        """How many points hold the changed entry before or after every change, if regions are exact.

        These are the points that its first send reaches: it is the entry's own, and others go to those who lose it.
        """
        boxes, starts = first_boxes(sends)
        return self._count(sends.box_lo[boxes], sends.box_hi[boxes], starts)

    def bounded(self, sends: Sends, x: Int64Array) -> Int64Array:
        """How many points there are in the least rectangle around that region with the corner (x, x)."""
        boxes, starts = first_boxes(sends)
        told = np.flatnonzero(np.diff(starts))
        lo, hi = np.stack([x, x], axis=1), np.stack([x, x], axis=1)
        lo[told, 0] = np.minimum.reduceat(sends.lo_min[boxes], starts[told]) if len(told) else lo[told, 0]
        hi[told, 1] = np.maximum.reduceat(sends.hi_max[boxes], starts[told]) if len(told) else hi[told, 1]
        return self._count(lo, hi, np.arange(len(x) + 1))

    def around(self, x: Int64Array) -> Int64Array:
        """How many points have x in their range: those that begin up to there, without those that end before."""
        begun: Int64Array = np.searchsorted(self._lows, x, "right") - np.searchsorted(self._highs, x, "left")
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
