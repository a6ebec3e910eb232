"""How the scores of rows change, by which they are ranked: by jumps, or by small steps. Scores are from 0 to 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

DECIMALS = 12
"""Enough for ties to be rare, and shorter to write than all digits."""


class Scores(Protocol):
    def change(self, rng: np.random.Generator, score: list[float], row: list[int]) -> list[float]:
        """New scores of rows, one change after the other; `score` is kept up to date."""
        ...


@dataclass(frozen=True)
class Jumps:
    """A coin says whether a score rises or falls; any value on that side is as likely as any other."""

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
class Steps:
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
