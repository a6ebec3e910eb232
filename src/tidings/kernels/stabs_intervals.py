"""Intervals as callers give them, as the kernels want them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidings.kernels.arguments import as_ints

I64 = NDArray[np.int64]


def as_intervals(los: ArrayLike, his: ArrayLike) -> tuple[I64, I64]:
    """Lower and upper ends; ValueError if some interval ends before it begins."""
    lo, hi = as_ints(los), as_ints(his)
    if len(lo) != len(hi):
        raise ValueError(f"{len(lo)} lower ends for {len(hi)} upper ends")
    if (lo > hi).any():
        raise ValueError("an interval must not end before it begins")
    return lo, hi
