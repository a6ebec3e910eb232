"""ChoiceIndex: a member with key (may, must) may be told from one reach on, and must be from the other.

Who is told of a move is decided by the rule of section 6.1 of the paper on value-based notification, among the members of the
item: with those that must be told, those that may be and stand between two of them in the order of keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from research.strategies.drift.kernels.baselines import BaselineIndex, Item
from research.strategies.drift.kernels.choice_tree import ChoiceTree
from tidings.kernels.arrays import F64, I64
from tidings.model.codes import doubles_of_codes


class ChoiceIndex(BaselineIndex):
    """Used like `ThresholdIndex`: may is the reach, and the code of must the label, of a member. No two have the same key."""

    def __init__(self, kind: int) -> None:
        super().__init__(kind)

    def add(self, audiences: I64, reaches: F64, labels: I64) -> I64:
        self._settle(np.unique(audiences).tolist())
        return super().add(audiences, reaches, labels)

    def remove(self, audiences: I64, reaches: F64, labels: I64) -> None:
        self._settle(np.unique(audiences).tolist())
        super().remove(audiences, reaches, labels)

    def anchor(self, item: int, reach: float, label: int) -> tuple[float, int] | None:
        """Value and time at which a member is anchored; None if the item is void."""
        found = self._items[item]
        if np.isnan(found.value):
            return None
        self._settle_item(found)
        (at,) = np.flatnonzero((found.members.reach == reach) & (found.members.label == label))
        return float(found.anchor[at]), int(found.anchor_time[at])

    def times(self, item: int) -> I64:
        """The times of all anchors of an item."""
        self._settle_item(self._items[item])
        return self._items[item].anchor_time

    def dump(self) -> dict[str, Any]:
        self._settle(range(len(self._members)))
        return super().dump()

    def _touch(self, item: Item, value: float, time: int) -> I64:
        members = item.members
        if item.finder is None:
            must = doubles_of_codes(members.label)
            item.finder = ChoiceTree(self._kind, members.reach, must, item.anchor, item.anchor_time)
        runs = item.finder.move(value, time)
        return np.concatenate([np.empty(0, np.int64), *(np.arange(first, last + 1) for first, last in runs.tolist())])

    def _settle(self, audiences: Iterable[int]) -> None:
        for audience in audiences:
            for item in self._members[audience].items:
                self._settle_item(item)

    def _settle_item(self, item: Item) -> None:
        """Writes the anchors that are in the tree of an item."""
        if item.finder is not None:
            item.anchor, item.anchor_time = item.finder.anchors()
