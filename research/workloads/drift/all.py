"""All radii: some subscriptions share a radius, each is created at another time, prices are dollars and cents.

The third experiment of the paper on value-based notification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from research.workloads.draws import BLOCK, TruncatedNormal
from research.workloads.drift import quotes
from research.workloads.drift.quotes import Walk
from research.workloads.drift.timetable import Timetable, random_moments
from tidings.workloads.workload import WorkloadLines

DOLLARS = TruncatedNormal(mean=20.0, sd=20.0, low=0.5, high=100.4)
"""To be rounded to whole dollars, from 1 to 100: there is no radius of 0."""
WALK = Walk(start=500.0, sigma=0.5, floor=0.01)
"""Steps of a thousandth, as between two quotes of a lively stock; a hundred thousand steps pass the largest radius."""


@dataclass(frozen=True)
class DollarRadii:
    """Radii as people choose them: most are whole dollars."""

    on_cents: float = 0.1
    """Share of the radii that are any number of cents up to `cents_max`."""
    cents_max: int = 10_000
    dollars: TruncatedNormal = DOLLARS

    def queries(self, rng: np.random.Generator, names: Sequence[str]) -> Iterator[str]:
        """Endless SQL queries, for each item in turn."""
        number = 0
        while True:
            is_cents = rng.random(BLOCK) < self.on_cents
            cents = rng.integers(1, self.cents_max + 1, size=BLOCK) / 100
            dollars = self.dollars.draw(rng, BLOCK).round()
            for radius in np.where(is_cents, cents, dollars).tolist():
                name = names[number % len(names)]
                yield f"SELECT * FROM quotes WHERE symbol = '{name}' AND moved(price) >= {radius:.12g}"
                number += 1


@dataclass(frozen=True)
class AllCase:
    """What can be varied in an experiment."""

    radii: DollarRadii = DollarRadii()
    walk: Walk = WALK


DEFAULT = AllCase()


def drift_all(
    *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000, case: AllCase = DEFAULT
) -> WorkloadLines:
    """`rows` items (default: one). Subscriptions are created at random times and never dropped."""
    names = quotes.symbols(rows or 1)
    rng = np.random.default_rng([seed, 1])
    rounds = chain([case.walk.first(len(names))], case.walk.rounds(np.random.default_rng([seed, 2]), len(names)))
    return WorkloadLines(
        quotes.CATALOG_SQL,
        Timetable.of_creations(random_moments(rng, subscriptions, changes)).lines(case.radii.queries(rng, names)),
        quotes.following(names, rounds, changes, seed),
    )
