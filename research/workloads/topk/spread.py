"""Distributions of the top-k workloads: places and ranges on an axis from 0 to 1, and how scores from 0 to 1 change.

The distributions of the paper on range top-k subscriptions: even ones, rows in ten clusters, and ranges that are in
clusters of their own, around those of the rows, or halfway between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidings.workloads.draws import FloatArray

CLUSTERS = 10
GAP = 1 / (CLUSTERS + 1)
"""The centres of the rows' clusters cut the axis into pieces of this length."""
CENTRES: FloatArray = np.array([GAP * i for i in range(1, CLUSTERS + 1)])
_SD = GAP / 8
_GRID = 10_000

Places = Callable[[np.random.Generator, int], FloatArray]
"""Draws the places of so many rows."""
Ranges = Callable[[np.random.Generator, int], FloatArray]
"""Draws so many ranges, [count, 2], low end first."""


def even_places(rng: np.random.Generator, count: int) -> FloatArray:
    return rng.random(count)


def clustered_places(rng: np.random.Generator, count: int) -> FloatArray:
    """Rows in turn in one of ten clusters."""
    return np.resize(CENTRES, count) + rng.normal(0.0, _SD, size=count)


def even_ranges(rng: np.random.Generator, count: int) -> FloatArray:
    """Points of the triangle low < high, each as likely as any other."""
    return np.sort(rng.random((count, 2)), axis=1)


@dataclass(frozen=True)
class ClusteredRanges:
    """Ten clusters somewhere in the triangle, of normal shape, cut at its borders, on a grid of 10,000 by 10,000."""

    width: float = 0.1
    """The paper's lambda, whose values it does not tell: a standard deviation is a quarter of it."""

    def __call__(self, rng: np.random.Generator, count: int) -> FloatArray:
        centre = even_ranges(rng, CLUSTERS)
        found = np.empty((0, 2))
        while len(found) < count:
            drawn = centre[rng.integers(CLUSTERS, size=count)] + rng.normal(0.0, self.width / 4, size=(count, 2))
            # All clusters are cut together: a cluster at the border loses what is beyond it to the others.
            drawn = drawn[(drawn[:, 0] >= 0) & (drawn[:, 0] <= drawn[:, 1]) & (drawn[:, 1] <= 1)]
            found = np.concatenate([found, drawn])
        return (found[:count] * _GRID).round() / _GRID


def correlated_ranges(rng: np.random.Generator, count: int) -> FloatArray:
    """Both ends near the centre of a cluster of rows."""
    return _around(rng, CENTRES, count)


def anticorrelated_ranges(rng: np.random.Generator, count: int) -> FloatArray:
    """Both ends near the middle between two clusters of rows."""
    return _around(rng, CENTRES[:-1] + GAP / 2, count)


def _around(rng: np.random.Generator, centres: FloatArray, count: int) -> FloatArray:
    centre = centres[rng.integers(len(centres), size=count)]
    return np.sort(centre[:, None] + rng.normal(0.0, _SD, size=(count, 2)), axis=1)


DECIMALS = 12
"""Enough to make ties rare, and shorter than all digits."""


class Scores(Protocol):
    def change(self, rng: np.random.Generator, score: list[float], row: list[int]) -> list[float]:
        """New scores of rows, one change after the other; `score` is kept up to date."""
        ...


@dataclass(frozen=True)
class Jumps:
    """A score rises or falls with equal probability; the new value is uniform on that side."""

    def change(self, rng: np.random.Generator, score: list[float], row: list[int]) -> list[float]:
        rises, how_far = (rng.random(len(row)) < 0.5).tolist(), rng.random(len(row)).tolist()
        changed = []
        for at, is_rise, share in zip(row, rises, how_far, strict=True):
            old = score[at]
            score[at] = round(old + (1 - old) * share if is_rise else old * share, DECIMALS)
            changed.append(score[at])
        return changed


JUMPS = Jumps()


@dataclass(frozen=True)
class SmallSteps:
    """A score moves by a normal step, and is reflected at both ends."""

    volatility: float = 1 / 8
    """The paper's c: the standard deviation of a step is an eighth of it."""

    def change(self, rng: np.random.Generator, score: list[float], row: list[int]) -> list[float]:
        steps = rng.normal(0.0, self.volatility / 8, size=len(row)).tolist()
        changed = []
        for at, step in zip(row, steps, strict=True):
            moved = abs(score[at] + step) % 2
            score[at] = round(2 - moved if moved > 1 else moved, DECIMALS)
            changed.append(score[at])
        return changed
