"""Numbers that sort like values which have no exact code: texts, and keys of several columns (order-maintenance labels)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tidings.model.codes import Int64Array

_STEP = 2**31


class OrderLabels:
    """Gives every value a number (label) such that labels sort like values. All are renumbered when a gap is used up.

    After Dietz and Sleator, "Two algorithms for maintaining order in a list" (1987), without their bounds.
    """

    def __init__(self) -> None:
        self._values = np.empty(0, object)
        self._labels = np.empty(0, np.int64)
        self._label_of: dict[Any, int] = {}

    def add(self, values: Iterable[Any]) -> bool:
        """Adds values. Returns whether labels given before have changed."""
        fresh = sorted({value for value in values if value not in self._label_of})
        if not fresh:
            return False
        column = np.fromiter(fresh, object, len(fresh))
        at = np.searchsorted(self._values, column)
        self._values = np.insert(self._values, at, column)
        labels = self._between(at, len(fresh))
        if labels is None:
            self._labels = np.arange(len(self._values), dtype=np.int64) * _STEP
            self._label_of = dict(zip(self._values.tolist(), self._labels.tolist(), strict=True))
            return True
        self._labels = np.insert(self._labels, at, labels)
        self._label_of.update(zip(fresh, labels.tolist(), strict=True))
        return False

    def of(self, values: Iterable[Any]) -> Int64Array:
        return np.array([self._label_of[value] for value in values], np.int64)

    def _between(self, at: Int64Array, count: int) -> Int64Array | None:
        """Labels for `count` new values that go before the known ones at these places; None if a gap is used up."""
        known = self._labels
        first = known[0] if len(known) else 0
        last = known[-1] if len(known) else -_STEP
        # Several new values may be in one gap: each one's rank among these.
        starts = np.searchsorted(at, at)
        rank, size = np.arange(count) - starts + 1, np.searchsorted(at, at, "right") - starts
        below = np.where(at > 0, known[np.maximum(at - 1, 0)] if len(known) else 0, first - (size + 1) * _STEP)
        above = np.where(
            at < len(known), known[np.minimum(at, len(known) - 1)] if len(known) else 0, last + (size + 1) * _STEP
        )
        gap = (above - below) // (size + 1)
        return None if (gap < 1).any() else below + rank * gap
