"""Random numbers one at a time, at the price of a list's: numpy makes them in blocks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

BLOCK = 8_192


class Uniforms:
    """Decisions of one generator. The same seed gives the same ones."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._block: list[float] = []

    def share(self) -> float:
        """From 0 up to, not including, 1."""
        if not self._block:
            self._block = self._rng.random(BLOCK).tolist()
        return self._block.pop()

    def below(self, count: int) -> int:
        """One of the numbers 0 .. count - 1."""
        return int(self.share() * count)

    def pick(self, cumulated: Sequence[float]) -> int:
        """An index, drawn by shares of which these are the running sums (`cumulated_zipf`)."""
        return min(bisect_right(cumulated, self.share()), len(cumulated) - 1)


def cumulated_zipf(count: int, exponent: float) -> tuple[float, ...]:
    """Running sums of shares that fall with rank, the last one 1."""
    return tuple(accumulate(zipf(count, exponent, 0.0).tolist()))


def zipf(count: int, exponent: float, shift: float) -> npt.NDArray[np.float64]:
    """Shares that fall with rank: 1 / (rank + shift) ** exponent, summing to 1."""
    shares: npt.NDArray[np.float64] = np.power(np.arange(1, count + 1) + shift, -exponent, dtype=np.float64)
    return shares / float(shares.sum())
