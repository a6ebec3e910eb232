"""Labels given anew where none is left between two neighbours: section 4.3 of the paper on value-based notification.

The order of labels stays as it is, so that only those near the full place change: the members in the smallest surrounding
range of labels that is not too full for its size spread over all of it (M. A. Bender and others, 2002: two simplified
algorithms for maintaining order in a list). A label is changed O(log^2 n) times on average, however newcomers arrive.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from research.strategies.drift.kernels.threshold_index.layout import (
    FIRST_ITEM,
    L1,
    L2,
    LABEL_HI,
    LABEL_LO,
    LABEL_MAX,
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


class Used(NamedTuple):
    """The labels that members of one reach have, ascending, and how many have each."""

    labels: I64
    counts: I64


class LabelBook:
    """Which labels members have, by audience and reach; labels do not change without it."""

    def __init__(self) -> None:
        self._used: dict[tuple[int, float], Used] = {}

    def enter(self, audiences: I64, reaches: F64, labels: I64) -> None:
        for audience, reach, label in zip(audiences.tolist(), reaches.tolist(), labels.tolist(), strict=True):
            used = self._used.get((audience, reach))
            if used is None:
                self._used[audience, reach] = Used(np.array([label]), np.ones(1, np.int64))
                continue
            at = int(np.searchsorted(used.labels, label))
            if at < len(used.labels) and used.labels[at] == label:
                used.counts[at] += 1
            else:
                self._used[audience, reach] = Used(np.insert(used.labels, at, label), np.insert(used.counts, at, 1))

    def withdraw(self, audiences: I64, reaches: F64, labels: I64) -> None:
        for audience, reach, label in zip(audiences.tolist(), reaches.tolist(), labels.tolist(), strict=True):
            used = self._used[audience, reach]
            at = int(np.searchsorted(used.labels, label))
            used.counts[at] -= 1
            if not used.counts[at] and len(used.labels) == 1:
                del self._used[audience, reach]
            elif not used.counts[at]:
                self._used[audience, reach] = Used(np.delete(used.labels, at), np.delete(used.counts, at))

    def dump(self) -> dict[str, NDArray[Any]]:
        sizes = [len(used.labels) for used in self._used.values()]
        return {
            "book_audience": np.array([audience for audience, _ in self._used], np.int64).repeat(sizes),
            "book_reach": np.array([reach for _, reach in self._used], np.float64).repeat(sizes),
            "book_labels": np.concatenate([np.empty(0, np.int64), *(used.labels for used in self._used.values())]),
            "book_counts": np.concatenate([np.empty(0, np.int64), *(used.counts for used in self._used.values())]),
        }

    def load(self, state: dict[str, NDArray[Any]]) -> None:
        audiences, reaches = state["book_audience"], state["book_reach"]
        cuts = np.flatnonzero((np.diff(audiences) != 0) | (np.diff(reaches) != 0)) + 1
        for start, stop in pairwise([0, *cuts.tolist(), len(audiences)] if len(audiences) else []):
            part = slice(start, stop)
            used = Used(state["book_labels"][part].copy(), state["book_counts"][part].copy())
            self._used[int(audiences[start]), float(reaches[start])] = used

    def renew(self, audience: int, reach: float, gap: int) -> tuple[Renewal, I64, I64]:
        """Makes room behind the label `gap`.

        Returns what changes; and, as they were and as they are now, all labels from the last before those that change to the
        first behind them, or to one that nobody has.
        """
        labels = self._used[audience, reach].labels
        for size in range(1, 63):
            low = gap >> size << size
            first, stop = np.searchsorted(labels, [low, low + (1 << size)]).tolist()
            wanted = stop - first + 1
            if wanted <= (2 / FULL) ** size and (1 << size) // wanted >= 2:
                break
        below = labels[first - 1] if first else LABEL_MIN
        above = labels[stop] if stop < len(labels) else LABEL_MAX
        old = np.concatenate([[below], labels[first:stop], [above]])
        labels[first:stop] = low + np.arange(stop - first) * ((1 << size) // wanted)
        new = np.concatenate([[below], labels[first:stop], [above]])
        is_moved = new != old
        return Renewal(audience, reach, old[is_moved], new[is_moved]), old, new


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
    """Gives the parts of a reach, of an audience with one item, their new labels. old, new: as `LabelBook.renew` returns them.

    Ends of parts that no member has are drawn in to the next label that one has.
    """
    s = pointers(head, items, values, audiences, m, f)
    place, stride = reach_at(s, audience, reach)
    m[place + LABEL_LO * stride] = min(m[place + LABEL_LO * stride], new[1])
    m[place + LABEL_HI * stride] = max(m[place + LABEL_HI * stride], new[-2])
    item = audiences[audience, FIRST_ITEM]
    ni, bi, i = find(s, item, reach, old[0])
    if i < 0:
        ni, bi, i = 0, 0, 0
    while ni >= 0:
        offset, _, k = block_of(s, item, ni, bi)
        first, last = offset + (L1 << k) + i, offset + (L2 << k) + i
        if f[offset + (LO << k) + i] > reach or (f[offset + (LO << k) + i] == reach and m[first] > old[-1]):
            break
        if f[offset + (LO << k) + i] == reach and m[offset + (N << k) + i]:
            if m[first] > old[0]:
                m[first] = new[np.searchsorted(old, m[first])]
            if old[0] <= m[last] < old[-1]:
                m[last] = new[np.searchsorted(old, m[last], "right") - 1]
            refresh(s, item, ni, bi)
        ni, bi, i = step(s, item, ni, bi, i)
