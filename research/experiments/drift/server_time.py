"""How long a server takes to find whom to tell: the paper's structures and its baselines, on the same moves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from research.bench.drift.data import Timeline
from research.strategies.drift.kernels.end_points import Centres, EndPoints
from research.strategies.drift.kernels.radius_scan import RadiusScan
from research.strategies.drift.kernels.threshold_index import ABSOLUTE, CHOOSE, NO_TIME, ThresholdIndex
from tidings.kernels.arrays import F64, I64, Float, Int
from tidings.kernels.jit import kernel

_GROUPED = 100
"""People come in groups after so many moves: a call per move would measure the caller."""

_RUNS, _LONG_US = 5, 50_000.0
"""A run that takes less is repeated: it is about as short as what the clock and other work make of it."""


class Structure(Protocol):
    """Members of one item that has a value."""

    def add(self, reaches: F64) -> None: ...

    def move(self, values: F64) -> I64:
        """Moves to these values, one after the other. Returns how many entries of a list, or ranges, each makes."""
        ...


class Tree:
    """BA-tree(r), BW-tree(lid) and B2-tree(r,lid): all are `ThresholdIndex`, which renews labels and makes ranges."""

    def __init__(self, value: float) -> None:
        self._index = ThresholdIndex(ABSOLUTE, renews=True)
        self._index.new_audience()
        self._index.new_items([0], [value], [NO_TIME])
        self._reach, self._label = np.empty(0), np.empty(0, np.int64)

    def add(self, reaches: F64) -> None:
        new = self._index.add(np.zeros(len(reaches), np.int64), reaches, np.full(len(reaches), CHOOSE))
        for renewal in self._index.take_renewals():
            mine = np.flatnonzero((self._reach == renewal.reach) & np.isin(self._label, renewal.old))
            self._label[mine] = renewal.new[np.searchsorted(renewal.old, self._label[mine])]
        self._reach, self._label = np.append(self._reach, reaches), np.append(self._label, new)

    def move(self, values: F64) -> I64:
        touched = self._index.move(np.zeros(len(values), np.int64), values, np.full(len(values), NO_TIME))
        return np.diff(touched.starts)


class ListingTree(Tree):
    """The same, with the list of those in the ranges."""

    def __init__(self, value: float) -> None:
        super().__init__(value)
        self.add(np.empty(0))

    def add(self, reaches: F64) -> None:
        super().add(reaches)
        order = np.lexsort((self._label, self._reach))
        self._sorted = self._reach[order], self._label[order], order
        self._told = np.empty(len(order), np.int64)

    def move(self, values: F64) -> I64:
        touched = self._index.move(np.zeros(len(values), np.int64), values, np.full(len(values), NO_TIME))
        counts = np.zeros(len(values), np.int64)
        list_members(*self._sorted, *touched, self._told, counts)
        return counts


@kernel
def list_members(
    reach: F64,
    label: I64,
    member: I64,
    starts: I64,
    reach_lo: F64,
    reach_hi: F64,
    label_lo: I64,
    label_hi: I64,
    told: I64,
    counts: I64,
) -> None:
    """Lists the members in the boxes of each move. reach, label, member: sorted by reach and label."""
    for move in range(len(starts) - 1):
        count: Int = 0
        for box in range(starts[move], starts[move + 1]):
            low: Float = reach_lo[box]
            at, stop = 0, len(reach)
            while at < stop:
                middle = (at + stop) >> 1
                if reach[middle] < low or (reach[middle] == low and label[middle] < label_lo[box]):
                    at = middle + 1
                else:
                    stop = middle
            high, last = reach_hi[box], label_hi[box]
            while at < len(reach) and (reach[at] < high or (reach[at] == high and label[at] <= last)):
                told[count] = member[at]
                count += 1
                at += 1
        counts[move] = count


Make = Callable[[float], Structure]
STRUCTURES: Mapping[str, Make] = {
    "tree": Tree,
    "tree_list": ListingTree,
    "scan": partial(RadiusScan, lists=False),
    "scan_list": partial(RadiusScan, lists=True),
    "end_points": EndPoints,
    "centres": Centres,
}
OF_CASE = {
    "radii": ("tree", "tree_list", "scan", "scan_list", "end_points"),
    "same": ("tree", "tree_list", "end_points", "centres"),
    "all": ("tree", "end_points"),
}
"""Case -> the structures that the paper compares there."""


class Timed(NamedTuple):
    us: float
    """Microseconds of the processor per event: blind to other work."""
    made: int
    """Entries of lists, or ranges, of all events."""
    spread: float
    """The greatest distance of two values last told, where the structure knows these."""


def timed(timeline: Timeline, begin: int, name: str) -> Timed:
    """The moves from `begin` on of a timeline with one item, which has a value after the first: the best of some runs."""
    runs = [_run(timeline, begin, name)]
    while len(runs) < _RUNS and runs[0].us * (timeline.moves - begin) < _LONG_US:
        runs.append(_run(timeline, begin, name))
    return min(runs)


def _run(timeline: Timeline, begin: int, name: str) -> Timed:
    structure = STRUCTURES[name](float(timeline.move_value[0]))
    groups = -(-timeline.member_after // _GROUPED) * _GROUPED
    stop = timeline.moves
    seconds, made, joined, at, spread = 0.0, 0, 0, 1, 0.0
    while at < stop:
        until = int(np.searchsorted(groups, at, "right"))
        if until > joined:
            structure.add(timeline.member_reach[joined:until])
            joined = until
            structure.move(timeline.move_value[at - 1 : at])
        following = int(groups[joined]) if joined < len(groups) else stop
        following = min(following, stop if at >= begin else begin)
        start = time.process_time()
        counts = structure.move(timeline.move_value[at:following])
        if at >= begin:
            seconds += time.process_time() - start
            made += int(counts.sum())
        if joined and isinstance(structure, Centres):
            spread = max(spread, float(np.ptp(structure.centre[:joined])))
        at = following
    return Timed(seconds / (stop - begin) * 1e6, made, spread)
