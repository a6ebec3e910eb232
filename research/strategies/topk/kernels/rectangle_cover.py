"""A sketch of where points of the plane are: a few rectangles for each set, with every point in at least one.

Memory grows with sets and rectangles, not with points. A set that is filled at once is divided like a kd-tree, into parts of
as many points; a point that comes later and is in no rectangle makes the one larger that grows least. Rectangles never get
smaller: what they cover for nothing makes messages more, but nobody is missed. One goes when none of its points can be left.

The idea is from Yu, Agarwal and Yang, "Processing and notifying range top-k subscriptions" (ICDE 2012), III-B.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from research.strategies.topk.kernels.plane_kdtree.layout import (
    I64,
    INT64_MAX,
    INT64_MIN,
    RECTANGLES,
    SET_TOP,
    Arrays,
    Int,
    TreePointers,
    empty_arrays,
)
from tidings.kernels.arguments import as_ints, check_lengths
from tidings.kernels.jit import kernel

# Fields of a rectangle. TIMES is how many points it may have: at least as many as were counted for it and are left.
LO_MIN, LO_MAX, HI_MIN, HI_MAX, TIMES, FIELDS = range(6)


@kernel
def used(c: TreePointers, of: Int) -> tuple[Int, Int]:
    """Where the rectangles of a set begin and end."""
    if not 0 <= of < c.head[SET_TOP]:
        return 0, 0
    at = of * c.head[RECTANGLES] * FIELDS
    return at, at + c.sets[of] * FIELDS


@kernel
def tighten(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[Int, Int, Int, Int]:
    """The least bounds of all parts of rectangles in a box."""
    lo1 = hi1 = INT64_MAX
    lo2 = hi2 = INT64_MIN
    start, end = used(c, of)
    for at in range(start, end, FIELDS):
        first, last = max(lo_min, c.m[at + LO_MIN]), min(lo_max, c.m[at + LO_MAX])
        bottom, top = max(hi_min, c.m[at + HI_MIN]), min(hi_max, c.m[at + HI_MAX])
        if first <= last and bottom <= top:
            lo1, lo2, hi1, hi2 = min(lo1, first), max(lo2, last), min(hi1, bottom), max(hi2, top)
    return lo1, lo2, hi1, hi2


@kernel
def leftmost(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[bool, Int, Int]:
    """True and the place in a box with the least lo, and of these the least hi, or False."""
    is_found, lo, hi = False, 0, 0
    start, end = used(c, of)
    for at in range(start, end, FIELDS):
        first, last = max(lo_min, c.m[at + LO_MIN]), min(lo_max, c.m[at + LO_MAX])
        bottom, top = max(hi_min, c.m[at + HI_MIN]), min(hi_max, c.m[at + HI_MAX])
        if first <= last and bottom <= top and (not is_found or first < lo or (first == lo and bottom < hi)):
            is_found, lo, hi = True, first, bottom
    return is_found, lo, hi


@kernel
def rightmost(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[bool, Int, Int]:
    """True and the place in a box with the greatest hi, and of these the greatest lo, or False."""
    is_found, lo, hi = False, 0, 0
    start, end = used(c, of)
    for at in range(start, end, FIELDS):
        first, last = max(lo_min, c.m[at + LO_MIN]), min(lo_max, c.m[at + LO_MAX])
        bottom, top = max(hi_min, c.m[at + HI_MIN]), min(hi_max, c.m[at + HI_MAX])
        if first <= last and bottom <= top and (not is_found or top > hi or (top == hi and last > lo)):
            is_found, lo, hi = True, last, top
    return is_found, lo, hi


@kernel
def growth(rectangle: I64, lo: Int, hi: Int) -> float:
    """By how much a rectangle's area grows if it takes in a point."""
    width, height = (
        float(rectangle[LO_MAX]) - float(rectangle[LO_MIN]),
        float(rectangle[HI_MAX]) - float(rectangle[HI_MIN]),
    )
    wider = max(float(rectangle[LO_MAX]), float(lo)) - min(float(rectangle[LO_MIN]), float(lo))
    higher = max(float(rectangle[HI_MAX]), float(hi)) - min(float(rectangle[HI_MIN]), float(hi))
    return wider * higher - width * height


@kernel
def contains(rectangle: I64, lo: Int, hi: Int) -> bool:
    return bool(rectangle[LO_MIN] <= lo <= rectangle[LO_MAX] and rectangle[HI_MIN] <= hi <= rectangle[HI_MAX])


@kernel
def include(counts: I64, rectangles: I64, of: I64, los: I64, his: I64) -> None:
    """Adds points to the rectangles [sets, rectangles, FIELDS], of which each set has `counts`."""
    for i in range(len(of)):
        own, lo, hi = rectangles[of[i]], los[i], his[i]
        chosen = -1
        for r in range(counts[of[i]]):
            if contains(own[r], lo, hi):
                chosen = r
                break
        if chosen < 0 and counts[of[i]] < len(own):
            chosen = counts[of[i]]
            counts[of[i]] += 1
            own[chosen, LO_MIN], own[chosen, LO_MAX], own[chosen, HI_MIN], own[chosen, HI_MAX] = lo, lo, hi, hi
            own[chosen, TIMES] = 0
        if chosen < 0:
            chosen = 0
            for r in range(1, len(own)):
                if growth(own[r], lo, hi) < growth(own[chosen], lo, hi):
                    chosen = r
        own[chosen, LO_MIN], own[chosen, LO_MAX] = min(own[chosen, LO_MIN], lo), max(own[chosen, LO_MAX], lo)
        own[chosen, HI_MIN], own[chosen, HI_MAX] = min(own[chosen, HI_MIN], hi), max(own[chosen, HI_MAX], hi)
        own[chosen, TIMES] += 1


@kernel
def forget(counts: I64, rectangles: I64, of: I64, los: I64, his: I64) -> None:
    """Removes points. One that is in several rectangles is still counted, as it is not known for which it was."""
    for i in range(len(of)):
        own, holder, holders = rectangles[of[i]], -1, 0
        for r in range(counts[of[i]]):
            if contains(own[r], los[i], his[i]):
                holder = r
                holders += 1
        if holders == 1:
            own[holder, TIMES] -= 1
            if own[holder, TIMES] == 0:
                counts[of[i]] -= 1
                own[holder] = own[counts[of[i]]]


class RectangleCover:
    """Sets of points (lo, hi) as up to so many rectangles each; for kernels that look for points in a `PlaneKdTree`.

    Sets are small non-negative integers chosen by the caller. Only points that were added may be removed.
    """

    def __init__(self, rectangles: int) -> None:
        if rectangles < 1:
            raise ValueError(f"{rectangles} rectangles, must be at least 1")
        self._most = rectangles
        self._arrays = empty_arrays()
        self._arrays.head[RECTANGLES] = rectangles
        self._sizes = np.zeros(0, np.int64)
        """[sets] number of points."""

    def __len__(self) -> int:
        """Number of points of all sets."""
        return int(self._sizes.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of what is known of points."""
        return self._arrays.m.nbytes + self._arrays.sets.nbytes + self._sizes.nbytes

    @property
    def arrays(self) -> Arrays:
        """What kernels work on."""
        return self._arrays

    def add(self, sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> None:
        of, first, last = as_ints(sets), as_ints(los), as_ints(his)
        check_lengths(of, first, last)
        self._cover_sets(of)
        rest = np.ones(len(of), np.bool_)
        for number in np.flatnonzero((np.bincount(of, minlength=len(self._sizes)) > self._most) & (self._sizes == 0)):
            own = of == number
            self._fill(int(number), first[own], last[own])
            rest &= ~own
        include(self._arrays.sets, self._rectangles(), of[rest], first[rest], last[rest])
        np.add.at(self._sizes, of, 1)

    def remove(self, sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> None:
        of, first, last = as_ints(sets), as_ints(los), as_ints(his)
        check_lengths(of, first, last)
        forget(self._arrays.sets, self._rectangles(), of, first, last)
        np.subtract.at(self._sizes, of, 1)
        self._arrays.sets[self._sizes == 0] = 0

    def dump(self) -> dict[str, NDArray[Any]]:
        """Everything, for `load`."""
        counts = self._arrays.sets
        number = np.repeat(np.arange(len(counts)), counts)
        is_used = np.arange(self._most) < counts[:, None]
        return {"set": number, "rectangle": self._rectangles()[is_used], "times": self._sizes[number]}

    def load(self, state: dict[str, NDArray[Any]]) -> None:
        """Becomes what was dumped; only if there are no points yet."""
        of, rectangles = as_ints(state["set"]), np.asarray(state["rectangle"], np.int64).reshape(-1, FIELDS)
        self._cover_sets(of)
        self._sizes[of] = state["times"]
        for number, rectangle in zip(of.tolist(), rectangles, strict=True):
            self._rectangles()[number, self._arrays.sets[number]] = rectangle
            self._arrays.sets[number] += 1

    def _rectangles(self) -> I64:
        rectangles: I64 = self._arrays.m.reshape(-1, self._most, FIELDS)
        return rectangles

    def _cover_sets(self, of: I64) -> None:
        if len(of):
            if of.min() < 0:
                raise ValueError(f"set {of.min()} must not be negative")
            size, before = int(of.max()) + 1, len(self._sizes)
            if size > before:
                size = max(size, before * 5 // 4)
                m = np.append(self._arrays.m, np.zeros((size - before) * self._most * FIELDS, np.int64))
                added = np.zeros(size - before, np.int64)
                self._arrays = self._arrays._replace(m=m, sets=np.append(self._arrays.sets, added))
                self._sizes = np.append(self._sizes, added)

    def _fill(self, number: int, los: I64, his: I64) -> None:
        """Covers the points of a set that has none yet, more than there are rectangles."""
        parts = [(np.arange(len(los)), self._most, 0)]
        count = 0
        while parts:
            chosen, share, axis = parts.pop()
            if share > 1:
                middle = len(chosen) * (share // 2) // share
                chosen = chosen[np.argpartition((los, his)[axis][chosen], middle)]
                parts += [(chosen[middle:], share - share // 2, 1 - axis), (chosen[:middle], share // 2, 1 - axis)]
                continue
            lo, hi = los[chosen], his[chosen]
            self._rectangles()[number, count] = (lo.min(), lo.max(), hi.min(), hi.max(), len(chosen))
            count += 1
        self._arrays.sets[number] = count
