"""Random numbers of the drift workloads: truncated normal draws, and values that walk, a value per item and round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

BLOCK = 8_192
_REDRAWS_MAX = 50


@dataclass(frozen=True)
class TruncatedNormal:
    """A normal distribution of which only what lies in [low, high] is kept."""

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
        """Rounded draws, no two the same as long as there is room for so many; beyond that some are drawn again."""
        found = np.empty(0)
        for _ in range(_REDRAWS_MAX):
            if len(found) == count:
                break
            found = np.unique(np.concatenate([found, self.draw(rng, count - len(found)).round(decimals)]))
        repeated = self.draw(rng, count - len(found)).round(decimals)
        # Sorted so far: who subscribes first must not tell the radius.
        return rng.permutation(np.concatenate([found, repeated]))


@dataclass(frozen=True)
class Walk:
    """How a value moves: U_i = drift + U_(i-1) + N(0, sigma)."""

    start: float
    sigma: float
    drift: float = 0.0
    floor: float | None = None
    """The value is reflected here; None: it may go anywhere."""

    def first(self, items: int) -> FloatArray:
        """The round in which every item gets its first value."""
        return np.full((1, items), self.start)

    def rounds(self, rng: np.random.Generator, items: int) -> Iterator[FloatArray]:
        """Blocks without end, [rounds, items]: in every round each item makes a step, the first from `start`."""
        at = np.full(items, self.start)
        while True:
            steps = rng.normal(self.drift, self.sigma, size=(rounds_of_block(items), items))
            walked = at + np.cumsum(steps, axis=0)
            at = walked[-1]
            yield walked if self.floor is None else reflected(walked, self.floor)


def rounds_of_block(items: int) -> int:
    """How many rounds make a block of about `BLOCK` values."""
    return max(1, BLOCK // items)


def reflected(values: FloatArray, floor: float) -> FloatArray:
    """A path folded up at the floor: below it every step goes the other way, at its full size."""
    folded: FloatArray = floor + np.abs(values - floor)
    return folded
