"""How many ends of boxes say something new: neither open, nor as an end before them, nor among numbers known anyway.

In a box the ends come as lo and hi of the first dimension, lo and hi of the next, .. Open are a lo that is the lowest
number and a hi that is the highest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tidings.kernels.anchors_arrays import I64

OPEN_LO = np.int64(-(2**63))
OPEN_HI = np.int64(2**63 - 1)
_ONE = np.uint64(1)

# Places are unsigned throughout: signed ones would be checked for being negative. Nor are there branches on ends, of which
# all kinds come mixed. `last_lo` and `last_hi` are the bounded end before; until there is one, what does not count anyway.


@njit(cache=True)
def count_fresh(lo: I64, hi: I64, starts: I64, known: I64) -> tuple[I64, I64]:
    """For every group of boxes: (ends that say something new, ends of its first box that would but are known).

    Group g has boxes starts[g]:starts[g + 1]; lo, hi: (boxes, dims). An end says nothing new if it is open, as the bounded
    one before it in its box or, in all boxes but the first of a group, as the same end in the box before. Known are the
    numbers known[g], but OPEN_LO, which stands for none; known: (groups, numbers).
    """
    dims, flat_lo, flat_hi = lo.shape[1], lo.reshape(-1), hi.reshape(-1)
    fresh, found = _count_first(flat_lo, flat_hi, dims, starts, known.reshape(-1), known.shape[1])
    later = _count_later(flat_lo, flat_hi, dims, len(lo))
    for group in range(len(fresh)):
        for box in range(starts[group] + 1, starts[group + 1]):
            fresh[group] += later[box]
    return fresh, found


@njit(cache=True)
def _count_first(lo: I64, hi: I64, dims: int, starts: I64, known: I64, numbers: int) -> tuple[I64, I64]:
    """The counts of first boxes alone."""
    fresh = np.zeros(len(starts) - 1, np.int64)
    found = np.zeros(len(starts) - 1, np.int64)
    for group in range(np.uint64(len(fresh))):
        if starts[group] == starts[group + _ONE]:
            continue
        last_lo, last_hi = OPEN_LO, OPEN_HI
        news, known_news = np.int64(0), np.int64(0)
        row, next_row = group * np.uint64(numbers), (group + _ONE) * np.uint64(numbers)
        start = np.uint64(starts[group]) * np.uint64(dims)
        for at in range(start, start + np.uint64(dims)):
            end = lo[at]
            is_bounded = end != OPEN_LO
            is_news = is_bounded & (end != last_lo)
            news += np.int64(is_news)
            known_news += np.int64(is_news & _is_among(known, row, next_row, end))
            last_lo = end if is_bounded else last_lo
            last_hi = end if is_bounded else last_hi
            end = hi[at]
            is_bounded = end != OPEN_HI
            is_news = is_bounded & (end != last_hi)
            news += np.int64(is_news)
            known_news += np.int64(is_news & (end != OPEN_LO) & _is_among(known, row, next_row, end))
            last_lo = end if is_bounded else last_lo
            last_hi = end if is_bounded else last_hi
        fresh[group], found[group] = news - known_news, known_news
    return fresh, found


@njit(inline="always")
def _is_among(numbers: I64, start: Any, stop: Any, number: Any) -> Any:
    is_found = False
    for i in range(start, stop):
        is_found |= numbers[i] == number
    return is_found


@njit(cache=True)
def _count_later(lo: I64, hi: I64, dims: int, boxes: int) -> I64:
    """The count of every box but the first of all, as if it were in a group with the one before."""
    fresh = np.zeros(boxes, np.int64)
    # With one of these numbers of dimensions, if it knows it, the compiler does several boxes at once.
    if dims == 1:
        _fill_later(lo, hi, np.uint64(1), fresh)
    elif dims == 2:
        _fill_later(lo, hi, np.uint64(2), fresh)
    elif dims == 4:
        _fill_later(lo, hi, np.uint64(4), fresh)
    else:
        _fill_later(lo, hi, np.uint64(dims), fresh)
    return fresh


@njit(inline="always")
def _fill_later(lo: I64, hi: I64, dims: Any, fresh: I64) -> None:
    for box in range(_ONE, np.uint64(len(fresh))):
        last_lo, last_hi = OPEN_LO, OPEN_HI
        news = np.int64(0)
        for d in range(dims):
            at = box * dims + d
            end = lo[at]
            is_bounded = end != OPEN_LO
            news += np.int64(is_bounded & (end != last_lo) & (end != lo[at - dims]))
            last_lo = end if is_bounded else last_lo
            last_hi = end if is_bounded else last_hi
            end = hi[at]
            is_bounded = end != OPEN_HI
            news += np.int64(is_bounded & (end != last_hi) & (end != hi[at - dims]))
            last_lo = end if is_bounded else last_lo
            last_hi = end if is_bounded else last_hi
        fresh[box] = news
