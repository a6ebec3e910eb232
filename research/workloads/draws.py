"""Random numbers that several workloads draw: truncated normals, and how many rows suit how many changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.workloads.draws import FloatArray

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


def rows_for(changes: int, rows_max: int) -> int:
    """A number of rows that suits the number of changes."""
    return max(_ROWS_MIN, min(rows_max, changes // _ROWS_SHARE))
