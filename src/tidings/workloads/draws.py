"""Random numbers that several workloads draw: truncated normals, shares by rank, and how many rows suit how many changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

BLOCK = 8_192
_REDRAWS_MAX = 50
_ROWS_MIN, _ROWS_SHARE = 20, 10


@dataclass(frozen=True)
class TruncatedNormal:
    """A normal distribution restricted to [low, high]."""

    mean: float
    sd: float
    low: float
    high: float

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        kept = np.empty(0)
        while len(kept) < count:
            drawn = rng.normal(self.mean, self.sd, size=count - len(kept) + 16)
            kept = np.concatenate([kept, drawn[(drawn >= self.low) & (drawn <= self.high)]])
        return kept[:count]

    def draw_distinct(self, rng: np.random.Generator, count: int, decimals: int) -> FloatArray:
        """Rounded draws, distinct as far as there are enough distinct values; else some repeat."""
        found = np.empty(0)
        for _ in range(_REDRAWS_MAX):
            if len(found) == count:
                break
            found = np.unique(np.concatenate([found, self.draw(rng, count - len(found)).round(decimals)]))
        repeated = self.draw(rng, count - len(found)).round(decimals)
        # Shuffled, as they are sorted so far: radii must not depend on the order of subscriptions.
        return rng.permutation(np.concatenate([found, repeated]))


def zipf(count: int, exponent: float, shift: float) -> FloatArray:
    """Shares that fall with rank: 1 / (rank + shift) ** exponent, summing to 1."""
    shares: FloatArray = np.power(np.arange(1, count + 1) + shift, -exponent, dtype=np.float64)
    return shares / float(shares.sum())


def draw(cumulated: FloatArray, uniform: FloatArray) -> IntArray:
    """Indices drawn by shares. cumulated: running sum of the shares; uniform: random numbers from 0 to 1."""
    found = np.searchsorted(cumulated, uniform * cumulated[-1], side="right")
    drawn: IntArray = np.minimum(found, len(cumulated) - 1).astype(np.int64)
    return drawn


def rows_for(changes: int, rows_max: int) -> int:
    """A number of rows that suits the number of changes."""
    return max(_ROWS_MIN, min(rows_max, changes // _ROWS_SHARE))
