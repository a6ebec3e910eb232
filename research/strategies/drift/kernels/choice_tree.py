"""ChoiceTree: who is told of a value, if each member may be told from one reach on, and must be from another?

A run goes from a member that must be told to another such, over members that may be. The idea is that of section 6.1 of the
paper on value-based notification, with the two thresholds of a member kept apart: a segment tree over members in the order of
(may, must), in which a node that was told as a whole has one anchor, and is entered only if its members differ.

Nodes are numbered as in a heap, with the root at 1 and the members' leaves from `len(may) / 2` on.
"""

from __future__ import annotations

import numpy as np

from research.strategies.drift.kernels.threshold_index.layout import thresholds
from tidings.kernels.arrays import F64, I64, Float, Int
from tidings.kernels.jit import kernel

MUST_UP, MUST_DN, MAY_UP, MAY_DN, ANCHOR = range(5)
"""Rows of `told` [5, nodes]: from which value on up, and down, one member must and all may be told; the last value all were."""
MAY_LO, MAY_HI, MUST_LO, MUST_HI = range(4)
"""Rows of `reach` [4, nodes]: the ends of the reaches of the members below."""


class ChoiceTree:
    """The members of one item, in the order given, which is that of (may, must). An anchor is a value and a time."""

    def __init__(self, kind: int, may: F64, must: F64, anchor: F64, time: I64) -> None:
        self._kind = kind
        self._count = len(may)
        nodes = 2 << max(0, len(may) - 1).bit_length()
        self._reach = np.empty((4, nodes))
        self._told = np.full((5, nodes), np.nan)
        self._time = np.zeros(nodes, np.int64)
        self._runs = np.empty((len(may), 2), np.int64)
        build(kind, may, must, anchor, time, self._reach, self._told, self._time)

    def move(self, value: float, time: int) -> I64:
        """Moves to a value. Returns the first and the last member of each run that is told, [runs, 2]."""
        if not self._count:
            return self._runs
        found = find_runs(self._kind, self._reach, self._told, self._time, value, self._runs)
        runs = self._runs[:found].copy()
        for first, last in runs.tolist():
            assign(self._kind, self._reach, self._told, self._time, first, last, value, time)
        return runs

    def anchors(self) -> tuple[F64, I64]:
        """Value and time at which each member is anchored."""
        settle(self._kind, self._reach, self._told, self._time)
        first = self._told.shape[1] // 2
        members = slice(first, first + self._count)
        return self._told[ANCHOR, members].copy(), self._time[members].copy()


# --- Kernels ---


@kernel(error_model="numpy")
def set_told(kind: Int, reach: F64, told: F64, times: I64, node: Int, value: Float, time: Int) -> None:
    """All members below a node were told the value. A node without members keeps what nobody reaches."""
    if np.isnan(reach[MAY_LO, node]):
        return
    told[MUST_UP, node], told[MUST_DN, node] = thresholds(kind, value, reach[MUST_LO, node])
    told[MAY_UP, node], told[MAY_DN, node] = thresholds(kind, value, reach[MAY_HI, node])
    told[ANCHOR, node] = value
    times[node] = time


@kernel
def push(kind: Int, reach: F64, told: F64, times: I64, node: Int) -> None:
    """Below a node with one anchor, gives it to both halves."""
    if not np.isnan(told[ANCHOR, node]):
        set_told(kind, reach, told, times, 2 * node, told[ANCHOR, node], times[node])
        set_told(kind, reach, told, times, 2 * node + 1, told[ANCHOR, node], times[node])
        told[ANCHOR, node] = np.nan


@kernel
def pull(told: F64, node: Int) -> None:
    """What a node whose halves may have different anchors says of both."""
    left, right = 2 * node, 2 * node + 1
    told[MUST_UP, node] = min(told[MUST_UP, left], told[MUST_UP, right])
    told[MUST_DN, node] = max(told[MUST_DN, left], told[MUST_DN, right])
    told[MAY_UP, node] = max(told[MAY_UP, left], told[MAY_UP, right])
    told[MAY_DN, node] = min(told[MAY_DN, left], told[MAY_DN, right])


@kernel
def build(kind: Int, may: F64, must: F64, anchor: F64, time: I64, reach: F64, told: F64, times: I64) -> None:
    """Fills the arrays of a new tree."""
    leaves = told.shape[1] // 2
    reach[:] = np.nan
    told[MUST_UP], told[MUST_DN], told[MAY_UP], told[MAY_DN] = np.inf, -np.inf, -np.inf, np.inf
    for i in range(len(may)):
        reach[MAY_LO, leaves + i] = reach[MAY_HI, leaves + i] = may[i]
        reach[MUST_LO, leaves + i] = reach[MUST_HI, leaves + i] = must[i]
        set_told(kind, reach, told, times, leaves + i, anchor[i], time[i])
    for node in range(leaves - 1, 0, -1):
        for end in (MAY_LO, MUST_LO):
            reach[end, node] = np.fmin(reach[end, 2 * node], reach[end, 2 * node + 1])
            reach[end + 1, node] = np.fmax(reach[end + 1, 2 * node], reach[end + 1, 2 * node + 1])
        pull(told, node)


@kernel(error_model="numpy")
def find_runs(kind: Int, reach: F64, told: F64, times: I64, value: Float, runs: I64) -> Int:
    """Puts the runs of members that are told of a value into `runs`; returns their number."""
    leaves = told.shape[1] // 2
    stack = np.empty(130, np.int64)
    stack[0], top, found, is_open = 1, 1, 0, False
    while top:
        top -= 1
        node = stack[top]
        anchor = told[ANCHOR, node]
        if np.isnan(reach[MAY_LO, node]):
            continue
        if value < told[MUST_UP, node] and value > told[MUST_DN, node]:
            # Nobody must. Those who all may, leave an open run as it is.
            if not is_open or value >= told[MAY_UP, node] or value <= told[MAY_DN, node]:
                continue
            if not np.isnan(anchor):
                is_open = False
                continue
        elif not np.isnan(anchor):
            up, dn = thresholds(kind, anchor, reach[MUST_HI, node])
            if value >= up or value <= dn:
                first, last = node, node
                while first < leaves:
                    first, last = 2 * first, 2 * last + 1
                    # Behind the last member there are leaves without one.
                    while np.isnan(reach[MAY_LO, last]):
                        last -= 1
                if not is_open:
                    runs[found, 0] = first - leaves
                    found += 1
                    is_open = True
                runs[found - 1, 1] = last - leaves
                continue
        push(kind, reach, told, times, node)
        stack[top] = 2 * node + 1
        stack[top + 1] = 2 * node
        top += 2
    return found


@kernel
def assign(kind: Int, reach: F64, told: F64, times: I64, first: Int, last: Int, value: Float, time: Int) -> None:
    """Anchors the members first..last at a value."""
    leaves = told.shape[1] // 2
    lo, hi = leaves + first, leaves + last
    depth = 0
    while (leaves >> depth) > 1:
        depth += 1
    for up in range(depth, 0, -1):
        push(kind, reach, told, times, lo >> up)
        push(kind, reach, told, times, hi >> up)
    left, right = lo, hi + 1
    while left < right:
        if left & 1:
            set_told(kind, reach, told, times, left, value, time)
            left += 1
        if right & 1:
            right -= 1
            set_told(kind, reach, told, times, right, value, time)
        left >>= 1
        right >>= 1
    for up in range(1, depth + 1):
        # A node that has just been told as a whole says so itself.
        for node in (lo >> up, hi >> up):
            if np.isnan(told[ANCHOR, node]):
                pull(told, node)


@kernel
def settle(kind: Int, reach: F64, told: F64, times: I64) -> None:
    """Gives every leaf the anchor it has."""
    for node in range(1, told.shape[1] // 2):
        push(kind, reach, told, times, node)
