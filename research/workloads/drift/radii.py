"""Different radii: all subscriptions start from the same value, but no two on an item have the same radius.

The first experiment of the paper on value-based notification. Its table of parameters is not in our copy of the text;
what is not said elsewhere in it is chosen here, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from research.workloads.draws import BLOCK, TruncatedNormal
from research.workloads.drift import quotes
from research.workloads.drift.quotes import Walk
from tidings.workloads.draws import FloatArray
from tidings.workloads.subscribers import steady
from tidings.workloads.workload import WorkloadLines

RADII = TruncatedNormal(mean=100_000.0, sd=50_000.0, low=1.0, high=200_000.0)
"""The range is the paper's; its middle, and a quarter of it. The most that one change tells of 10,000 is then a few
thousand, with luck playing a large part; the paper saw 1,984."""
WALK = Walk(start=1_000_000.0, sigma=1_000.0)
"""Without drift. Sigma: one step passes a radius in a thousand, a hundred thousand steps pass the largest. The start is
far from zero, below which a price would look odd."""


@dataclass(frozen=True)
class RadiiCase:
    """What can be varied in an experiment."""

    radii: TruncatedNormal = RADII
    walk: Walk = WALK


DEFAULT = RadiiCase()


def drift_radii(
    *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000, case: RadiiCase = DEFAULT
) -> WorkloadLines:
    """`rows` items (default: one). All subscriptions exist from the start."""
    items = rows or 1
    rng = np.random.default_rng([seed, 1])
    rounds = chain([case.walk.first(items)], case.walk.rounds(np.random.default_rng([seed, 2]), items))
    return WorkloadLines(
        quotes.CATALOG_SQL,
        steady(_queries(case.radii.draw_distinct(rng, subscriptions, decimals=2), items), subscriptions),
        quotes.following(quotes.symbols(items), rounds, changes, seed),
    )


def _queries(radii: FloatArray, items: int) -> Iterator[str]:
    for start in range(0, len(radii), BLOCK):
        for number, radius in enumerate(radii[start : start + BLOCK].tolist(), start):
            yield f"SELECT * FROM quotes WHERE symbol = 'S{number % items}' AND moved(price) >= {radius}"
