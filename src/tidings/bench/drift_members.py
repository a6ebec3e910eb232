"""Members in the order of their keys, to see who is in the boxes that moves touch."""

from __future__ import annotations

import numpy as np

from tidings.bench.drift_timeline import FloatArray
from tidings.families.drift.kernels.threshold_index import Runs, Touched
from tidings.model.codes import Int64Array


class Members:
    """Members sorted by item, reach and label: the members of a box stand next to each other.

    `order[k]` is the number of the k-th in this order.
    """

    def __init__(self, item: Int64Array, reach: FloatArray, label: Int64Array) -> None:
        self.order = np.lexsort((label, reach, item))
        self._reaches, reach_rank = np.unique(reach, return_inverse=True)
        self._labels, label_rank = np.unique(label, return_inverse=True)
        self._keys = self._key(item, reach_rank, label_rank)[self.order]

    def ranges(self, item: Int64Array, boxes: Touched | Runs) -> tuple[Int64Array, Int64Array]:
        """Where in the order the members of every box begin and end, given the item each box is about."""
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
    """What is known of every box, summed up for every move."""
    ends = np.concatenate([[0], np.cumsum(per_box)])
    total: Int64Array = ends[touched.starts[1:]] - ends[touched.starts[:-1]]
    return total
