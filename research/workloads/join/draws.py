"""Random numbers of the join workloads: values and ranges around two hot spots of the domain, and rows per join value.

Doubles with two decimals: the columns are DOUBLE, numbers stay as short as people write them, and two of them are seldom
the same. Every kind of number has a generator of its own, so that the first draws are the same however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from research.workloads.draws import TruncatedNormal
from tidings.workloads.draws import FloatArray, IntArray, zipf

DOMAIN = 100_000.0
"""Values and ends of ranges lie in [0, DOMAIN]."""
DECIMALS = 2

Seed = Sequence[int]


@dataclass(frozen=True)
class HotSpots:
    """Numbers around two spots, one low and one high in the domain, with equal shares."""

    sigma: float
    low: float = 25_000.0
    """The other spot is as far from the upper end of the domain."""

    def draw(self, seed: Seed, count: int) -> FloatArray:
        near_low = TruncatedNormal(self.low, self.sigma, 0.0, DOMAIN).draw(generator(seed, 0), count)
        is_high = generator(seed, 1).random(count) < 0.5
        return np.where(is_high, DOMAIN - near_low, near_low).round(DECIMALS)


@dataclass(frozen=True)
class Middle:
    """Numbers around the middle of the domain, most of them between the hot spots."""

    sigma: float

    def draw(self, seed: Seed, count: int) -> FloatArray:
        drawn = TruncatedNormal(DOMAIN / 2, self.sigma, 0.0, DOMAIN).draw(generator(seed, 0), count)
        return drawn.round(DECIMALS)


Values = HotSpots | Middle


@dataclass(frozen=True)
class HotRanges:
    """Ranges with their centres around the hot spots, cut off at the ends of the domain."""

    centre: HotSpots
    width: TruncatedNormal

    def draw(self, seed: Seed, count: int) -> FloatArray:
        """[count, 2], low end first."""
        centre = self.centre.draw([*seed, 0], count)
        half = self.width.draw(generator(seed, 1), count) / 2
        return np.stack([centre - half, centre + half], axis=1).clip(0.0, DOMAIN).round(DECIMALS)


def widths(mean: float) -> TruncatedNormal:
    """Widths of ranges: a normal distribution around the mean, bounded and positive."""
    return TruncatedNormal(mean, mean / 5, mean / 5, mean * 9 / 5)


def generator(seed: Seed, number: int) -> np.random.Generator:
    """One of the generators of a seed."""
    return np.random.default_rng([*seed, number])


def below(rng: np.random.Generator, bound: int, count: int) -> IntArray:
    """`count` uniformly random numbers from 0 to bound - 1."""
    drawn: IntArray = (rng.random(count) * bound).astype(np.int64)
    return drawn


def zipf_counts(total: int, values: int, exponent: float) -> IntArray:
    """[values]: number of rows of each value by Zipf's law, descending, with sum `total`."""
    ends = np.zeros(values + 1, np.int64)
    ends[1:] = (np.cumsum(zipf(values, exponent, 0.0)) * total).round()
    counts: IntArray = ends[1:] - ends[:-1]
    return counts
