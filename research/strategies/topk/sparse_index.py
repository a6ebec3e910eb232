"""A range top-k index that sends entries only to points that are known."""

from __future__ import annotations

from numpy.typing import ArrayLike

from research.strategies.topk.kernels import sparse_change
from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.range_topk import RangeTopkIndex, Sends
from research.strategies.topk.kernels.rectangle_cover import RectangleCover
from research.strategies.topk.kernels.sparse_layout import SNAPS, widened


class SparseRangeTopkIndex(RangeTopkIndex):
    """As `RangeTopkIndex`, with boxes drawn around the points of a kd-tree, and joined where no other point is in between."""

    def __init__(self, k: int, groups: int | None = None) -> None:
        super().__init__(k, groups)
        self._arrays = widened(self._arrays)
        self._head = self._arrays.head

    @property
    def snaps(self) -> int:
        """How many boxes have been looked at for points of a kd-tree."""
        return int(self._head[SNAPS])

    def change_among(
        self,
        points: PlaneKdTree | RectangleCover,
        sets: ArrayLike,
        entries: ArrayLike,
        xs: ArrayLike,
        ys: ArrayLike,
        ties: ArrayLike,
        is_present: ArrayLike,
    ) -> Sends:
        """As `change`, among the points of a kd-tree, or of a cover, whose sets have the same numbers: nobody else counts."""
        return self._change(sparse_change.change, points.arrays, sets, entries, xs, ys, ties, is_present)
