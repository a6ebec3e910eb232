"""Corners that separate wanted vectors from unwanted ones. A corner stands for all vectors that exceed it nowhere.

    w . . C . .        C stands for the three w (wanted) and for no u (unwanted);
    . . w . . .        D is needed for the fourth, as one corner for all would stand for u as well
    . w . . u .
    . . . . . D  <- w

The fewest corners are hard to find in several dimensions. Each vector raises the first corner that can be raised to it without
meeting an unwanted one; vectors that exceed others come first, so that most are below a corner already.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, Int
from tidings.model.codes import BoolArray, Int64Array

CORNERS_MAX = 64
"""Never more corners than this: from then on a vector raises the corner that it exceeds least, whatever that meets."""


def corners(wanted: Int64Array, unwanted: Int64Array, most: int = CORNERS_MAX) -> Int64Array:
    """Corners, [n, dims], that stand for all vectors `wanted` and, unless there are `most`, for none of `unwanted`."""
    order = np.argsort(-wanted.sum(axis=1, dtype=np.float64), kind="stable")
    # Vectors below many others are met first, which ends a search soonest.
    first = np.argsort(unwanted.sum(axis=1, dtype=np.float64), kind="stable")
    found: Int64Array = _corners(wanted[order], unwanted[first], most)
    return found


def holding(ranges: Int64Array, points: Int64Array) -> BoolArray:
    """Whether each of the ranges contains a point. ranges: [n, 2 * dims], lower and upper ends in turn; points: [m, dims]."""
    found: BoolArray = _holding(np.ascontiguousarray(ranges), points[np.argsort(points[:, 0], kind="stable")])
    return found


@kernel
def exceeds(vector: I64, corner: I64) -> bool:
    """Whether a vector is above a corner anywhere."""
    for i in range(vector.shape[0]):
        if vector[i] > corner[i]:
            return True
    return False


@kernel
def _corners(wanted: I64, unwanted: I64, most: Int) -> I64:
    dims = wanted.shape[1]
    found = np.empty((most, dims), np.int64)
    raised = np.empty(dims, np.int64)
    count = 0
    for w in range(wanted.shape[0]):
        vector = wanted[w]
        is_below = False
        for at in range(count):
            if not exceeds(vector, found[at]):
                is_below = True
                break
        if is_below:
            continue
        target, nearest, least = -1, 0, np.inf
        for at in range(count):
            growth = 0.0
            for i in range(dims):
                raised[i] = max(vector[i], found[at, i])
                growth += np.float64(raised[i]) - np.float64(found[at, i])
            if growth < least:
                nearest, least = at, growth
            is_free = True
            for u in range(unwanted.shape[0]):
                if not exceeds(unwanted[u], raised):
                    is_free = False
                    break
            if is_free:
                target = at
                break
        if target < 0 and count < most:
            found[count] = vector
            count += 1
            continue
        if target < 0:
            target = nearest
        for i in range(dims):
            found[target, i] = max(vector[i], found[target, i])
    return found[:count].copy()


@kernel
def _holding(ranges: I64, points: I64) -> BoolArray:
    found = np.zeros(ranges.shape[0], np.bool_)
    for r in range(ranges.shape[0]):
        for p in range(np.searchsorted(points[:, 0], ranges[r, 0]), points.shape[0]):
            if points[p, 0] > ranges[r, 1]:
                break
            is_inside = True
            for i in range(1, points.shape[1]):
                if points[p, i] < ranges[r, 2 * i] or points[p, i] > ranges[r, 2 * i + 1]:
                    is_inside = False
                    break
            if is_inside:
                found[r] = True
                break
    return found
