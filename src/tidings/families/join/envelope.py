"""The rows around a row that stand for all others: whoever has any other row in their ranges beside it has one of these."""

from __future__ import annotations

import numpy as np

from tidings.model.codes import BoolArray, Int64Array


def envelope(center: Int64Array, others: Int64Array) -> Int64Array:
    """Of the other points [n, columns], those with no further one in the smallest box that holds them and the center."""
    points = np.unique(others, axis=0)
    low, high = np.minimum(points, center), np.maximum(points, center)
    # [i, j]: point j lies in the box of point i.
    inside = ((points[None] >= low[:, None]) & (points[None] <= high[:, None])).all(axis=2)
    found: Int64Array = points[inside.sum(axis=1) == 1]
    return found


def sees_only(center_holders: Int64Array, around: Int64Array) -> BoolArray:
    """Which ranges, all of which hold the center, hold none of the points around it; [n, 2 * columns], ends in turn."""
    lo, hi = center_holders[:, None, 0::2], center_holders[:, None, 1::2]
    holds: BoolArray = np.all((around[None] >= lo) & (around[None] <= hi), axis=2)
    found: BoolArray = ~np.any(holds, axis=1)
    return found
