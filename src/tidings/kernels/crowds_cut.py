"""Where to cut points in two: by lo and by hi in turn, so that it does not matter how either is spread.

A cut falls between different coordinates. Points are all different, so if more than half have the same lo, they have
different hi: one of the two leaves at least a quarter on each side.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.crowds_arrays import Int
from tidings.kernels.jit import kernel


@kernel
def swap(keys: Any, others: Any, times: Any, i: Int, j: Int) -> None:
    """Let two points change places."""
    keys[i], keys[j] = keys[j], keys[i]
    others[i], others[j] = others[j], others[i]
    times[i], times[j] = times[j], times[i]


@kernel
def select(keys: Any, others: Any, times: Any, start: Int, end: Int, target: Int) -> None:
    """Order points so that none before `target` has a greater key, and none behind it a lower one (quickselect)."""
    lo, hi = start, end - 1
    while lo < hi:
        a, b, c = keys[lo], keys[(lo + hi) >> 1], keys[hi]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = lo, hi
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                swap(keys, others, times, i, j)
                i += 1
                j -= 1
        if target <= j:
            hi = j
        elif target >= i:
            lo = i
        else:
            break


@kernel
def divide(keys: Any, others: Any, times: Any, start: Int, end: Int, target: Int) -> tuple[Int, Int]:
    """Cut points by their keys, at `target` or beside the points with the same key there.

    Returns where the second part starts, and the greatest key of the first; `start` if all keys are the same.
    """
    select(keys, others, times, start, end, target)
    value = keys[target]
    # Those with just this key go to the middle, and then to the one side or the other.
    below = target
    for i in range(target - 1, start - 1, -1):
        if keys[i] == value:
            below -= 1
            swap(keys, others, times, i, below)
    above = target + 1
    for i in range(target + 1, end):
        if keys[i] == value:
            swap(keys, others, times, i, above)
            above += 1
    if min(below - start, end - below) >= min(above - start, end - above):
        if below == start:
            return start, value
        value = keys[start]
        for i in range(start + 1, below):
            value = max(value, keys[i])
        return below, value
    return above, value


@kernel
def cut(los: Any, his: Any, times: Any, start: Int, end: Int, target: Int, first: Int) -> tuple[Int, Int, Int]:
    """Cut different points, at least two, near to `target`, rather by the coordinate `first`.

    Returns by which coordinate, where the second part starts, and the greatest coordinate of the first.
    """
    best, dim = -1, first
    for turn in range(3):
        # If the second way is no better either, it is the first one again.
        d = (first + turn) & 1 if turn < 2 else dim
        middle, value = divide(his if d else los, los if d else his, times, start, end, target)
        smaller = min(middle - start, end - middle)
        if 4 * smaller >= end - start or turn == 2 or (turn == 1 and smaller > best):
            return d, middle, value
        if turn == 0:
            best = smaller
    raise AssertionError
