"""The baseline Scan(r) of the paper on value-based notification: members sorted by radius, of which every one is looked at."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import F64, I64, Float, Int
from tidings.kernels.jit import kernel


class RadiusScan:
    """The members of one item with a value, numbered in order of creation."""

    def __init__(self, value: float, *, lists: bool) -> None:
        """lists: each move makes a list of those told, else ranges of radii."""
        self.value = value
        self._lists = lists
        self._reach, self._centre = np.empty(0), np.empty(0)
        self._member = np.empty(0, np.int64)
        self._told = np.empty(0, np.int64)
        self._ranges = np.empty((0, 2))

    def add(self, reaches: F64) -> None:
        joined = np.append(self._reach, reaches)
        order = np.argsort(joined, kind="stable")
        self._reach = joined[order]
        self._centre = np.append(self._centre, np.full(len(reaches), self.value))[order]
        self._member = np.append(self._member, np.arange(len(self._member), len(joined)))[order]
        self._told, self._ranges = np.empty(len(joined), np.int64), np.empty((len(joined), 2))

    def move(self, values: F64) -> I64:
        """Moves to these values, one after the other. Returns the entries of the list, or the ranges, that each makes."""
        counts = np.zeros(len(values), np.int64)
        made = self._told, self._ranges, counts
        scan_moves(self._reach, self._centre, self._member, values, self._lists, *made)
        if len(values):
            self.value = float(values[-1])
        return counts


@kernel
def scan_moves(
    reach: F64, centre: F64, member: I64, values: F64, lists: bool, told: I64, ranges: F64, counts: I64
) -> None:
    for at in range(len(values)):
        value: Float = values[at]
        count: Int = 0
        was_told = False
        for i in range(len(reach)):
            is_told = value >= centre[i] + reach[i] or value <= centre[i] - reach[i]
            if is_told:
                centre[i] = value
                if lists:
                    told[count] = member[i]
                    count += 1
                else:
                    if not was_told:
                        ranges[count, 0] = reach[i]
                        count += 1
                    ranges[count - 1, 1] = reach[i]
            was_told = is_told
        counts[at] = count
