"""Labels given anew where none is left between two neighbours: section 4.3 of the paper on value-based notification.

The order of labels stays as it is, so that only those near the full place change: the members in the smallest surrounding
range of labels that is not too full for its size spread over all of it (M. A. Bender and others, 2002: two simplified
algorithms for maintaining order in a list). A label is changed O(log^2 n) times on average, however newcomers arrive.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from research.strategies.drift.kernels.threshold_index.layout import (
    FIRST_ITEM,
    L1,
    L2,
    LABEL_HI,
    LABEL_LO,
    LABEL_MIN,
    LO,
    N,
    pointers,
    reach_at,
)
from research.strategies.drift.kernels.threshold_index.runs import block_of, find, refresh, step
from tidings.kernels.arrays import F64, I64, Float, Int
from tidings.kernels.jit import kernel

FULL = 1.5
"""A range of 2**i labels is too full for so many members as (2 / FULL)**i."""


class Renewal(NamedTuple):
    """Labels of members of one reach that have changed: old[i] is new[i] now; both ascending."""

    audience: int
    reach: float
    old: I64
    new: I64

    def of(self, label: int) -> int:
        """What this label is now."""
        at = int(np.searchsorted(self.old, label))
        return int(self.new[at]) if at < len(self.old) and self.old[at] == label else label


class LabelBook:
    """Which labels members have, by audience and reach; labels do not change without it."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, float], Counter[int]] = {}

    def enter(self, audiences: I64, reaches: F64, labels: I64) -> None:
        for audience, reach, label in zip(audiences.tolist(), reaches.tolist(), labels.tolist(), strict=True):
            self._counts.setdefault((audience, reach), Counter())[label] += 1

    def withdraw(self, audiences: I64, reaches: F64, labels: I64) -> None:
        for audience, reach, label in zip(audiences.tolist(), reaches.tolist(), labels.tolist(), strict=True):
            counts = self._counts[audience, reach]
            counts[label] -= 1
            if not counts[label]:
                del counts[label]
            if not counts:
                del self._counts[audience, reach]

    def dump(self) -> dict[str, NDArray[Any]]:
        rows = [(*key, label, count) for key, counts in self._counts.items() for label, count in counts.items()]
        audience, reach, label, count = zip(*rows, strict=True) if rows else ((), (), (), ())
        ints = np.array([audience, label, count], np.int64)
        return {"book_reach": np.array(reach, np.float64), "book_ints": ints}

    def load(self, state: dict[str, NDArray[Any]]) -> None:
        for audience, label, count, reach in zip(
            *state["book_ints"].tolist(), state["book_reach"].tolist(), strict=True
        ):
            self._counts.setdefault((audience, reach), Counter())[label] = count

    def renew(self, audience: int, reach: float, gap: int) -> tuple[I64, Renewal]:
        """Makes room behind the label `gap`. Returns all labels of the reach as they were, ascending, and what changes."""
        counts = self._counts[audience, reach]
        used = np.array(sorted(counts), np.int64)
        for size in range(1, 63):
            low = gap >> size << size
            first, stop = np.searchsorted(used, [low, low + (1 << size)]).tolist()
            wanted = stop - first + 1
            if wanted <= (2 / FULL) ** size and (1 << size) // wanted >= 2:
                break
        new = low + (np.arange(stop - first) * ((1 << size) // wanted)).astype(np.int64)
        is_moved = new != used[first:stop]
        renewal = Renewal(audience, reach, used[first:stop][is_moved], new[is_moved])
        self._counts[audience, reach] = Counter({renewal.of(label): count for label, count in counts.items()})
        return used, renewal


@kernel
def relabel(
    head: I64,
    items: I64,
    values: F64,
    audiences: I64,
    m: I64,
    f: F64,
    audience: Int,
    reach: Float,
    old: I64,
    new: I64,
) -> None:
    """Gives the parts of a reach, of an audience with one item, their new labels. old, new: all of the reach, ascending.

    Ends of parts that no member has are drawn in to the next label that one has.
    """
    s = pointers(head, items, values, audiences, m, f)
    place, stride = reach_at(s, audience, reach)
    m[place + LABEL_LO * stride] = new[0]
    m[place + LABEL_HI * stride] = new[-1]
    item = audiences[audience, FIRST_ITEM]
    ni, bi, i = find(s, item, reach, LABEL_MIN)
    if i < 0:
        ni, bi, i = 0, 0, 0
    while ni >= 0:
        offset, _, k = block_of(s, item, ni, bi)
        if f[offset + (LO << k) + i] > reach:
            break
        if f[offset + (LO << k) + i] == reach and m[offset + (N << k) + i]:
            m[offset + (L1 << k) + i] = new[np.searchsorted(old, m[offset + (L1 << k) + i])]
            m[offset + (L2 << k) + i] = new[np.searchsorted(old, m[offset + (L2 << k) + i], "right") - 1]
            refresh(s, item, ni, bi)
        ni, bi, i = step(s, item, ni, bi, i)
