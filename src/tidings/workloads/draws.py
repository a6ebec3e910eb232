"""Random numbers that several workloads draw: shares by rank."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def zipf(count: int, exponent: float, shift: float) -> FloatArray:
    """Shares that fall with rank: 1 / (rank + shift) ** exponent, summing to 1."""
    shares: FloatArray = np.power(np.arange(1, count + 1) + shift, -exponent, dtype=np.float64)
    return shares / float(shares.sum())


def draw(cumulated: FloatArray, uniform: FloatArray) -> IntArray:
    """Indices drawn by shares. cumulated: running sum of the shares; uniform: random numbers from 0 to 1."""
    found = np.searchsorted(cumulated, uniform * cumulated[-1], side="right")
    drawn: IntArray = np.minimum(found, len(cumulated) - 1).astype(np.int64)
    return drawn
