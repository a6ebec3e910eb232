"""Who follows which row, for the baselines: every subscription by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.protocols import ColumnarRows
from research.strategies.drift.follower_index import KINDS, Followers
from research.strategies.drift.kernels.baselines import BaselineIndex
from tidings.families.drift.subscription import Space
from tidings.model.codes import Int64Array
from tidings.model.points import PointBatch


class BaselineFollowers(Followers):
    """Followers for the baselines: every point has a label of its own, by which its subscription is found."""

    index: BaselineIndex  # type: ignore[assignment]

    def __init__(self, space: Space, *, with_heaps: bool) -> None:
        super().__init__(space)
        self.index = BaselineIndex(KINDS[space.kind], space.patience, with_heaps=with_heaps)
        self._last_label = 0
        self._ids: dict[int, str] = {}

    def names(self, labels: Int64Array) -> pa.Array:
        """Ids of the subscriptions with these labels, [labels]."""
        return pa.array([self._ids[label] for label in labels.tolist()], pa.string())

    def add(self, points: PointBatch, rows: ColumnarRows) -> PointBatch:
        placed = super().add(points, rows)
        self._ids.update(zip(placed.coords[:, 1].tolist(), placed.id.to_pylist(), strict=True))
        self._ids.pop(0, None)
        return placed

    def remove(self, points: PointBatch) -> None:
        super().remove(points)
        if len(self._ids) > 2 * len(self._labels):
            living = set(self._labels.values())
            self._ids = {label: id for label, id in self._ids.items() if label in living}

    def dump(self) -> dict[str, Any]:
        return super().dump() | {"last_label": self._last_label}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self._last_label = state["last_label"]
        self._ids = {label: id for (id, _), label in self._labels.items()}

    def _wanted_labels(self, points: PointBatch) -> Int64Array:
        first = self._last_label + 1
        self._last_label += len(points)
        return np.arange(first, first + len(points))
