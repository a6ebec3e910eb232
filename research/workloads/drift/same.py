"""The same radius for all: subscriptions differ only in the value they were last told.

The second experiment of the paper on value-based notification. A new subscription gets the value at its creation (its centre),
so different centres need different values: first the item visits values around its first one while subscriptions are created
after each (the bootstrap), then it walks, and subscriptions keep being created.

Two centres are always less than a radius apart, as the later value would else have been notified to the earlier subscription.
So the bootstrap stays within half a radius of the first value, where it causes no notification and all centres survive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from research.workloads.draws import TruncatedNormal
from research.workloads.drift import quotes
from research.workloads.drift.quotes import Walk, rounds_of_block
from research.workloads.drift.radii import WALK
from research.workloads.drift.timetable import Timetable, even_moments
from tidings.workloads.draws import FloatArray, IntArray
from tidings.workloads.workload import WorkloadLines


@dataclass(frozen=True)
class SameCase:
    """What can be varied in an experiment."""

    radius: float = 10_000.0
    """Ten steps of the walk: an interval is left about every hundred changes, so that centres have time to diverge and to
    merge: among 100,000 changes, one notifies nearly all of 10,000 subscriptions at once (9,025 in the paper).
    """
    spread: float = 2_500.0
    """Standard deviation of the centres at the start; the bootstrap extends over two of these on both sides."""
    walk: Walk = WALK
    bootstrap_changes: float = 0.1
    """Share of the changes."""
    bootstrap_subscriptions: float = 0.5
    """Share of the subscriptions; larger if the others would exceed `arrivals_max`."""
    arrivals_max: float = 1.0
    """Subscriptions per change of the walk, on average: up to 2 in the paper, which expects fewer of them than changes
    in practice."""

    @property
    def centres(self) -> TruncatedNormal:
        # A little less than half, because values are rounded.
        reach = 0.49 * self.radius
        start = self.walk.start
        return TruncatedNormal(start, self.spread, start - reach, start + reach)


DEFAULT = SameCase()


def drift_same(
    *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000, case: SameCase = DEFAULT
) -> WorkloadLines:
    """`rows` items (default: one). A new subscription is to the item that has just changed."""
    items = rows or 1
    rounds = max(1, int(case.bootstrap_changes * changes) // items)
    bootstrap = min(changes, rounds * items)
    after = _arrivals(case, np.random.default_rng([seed, 1]), bootstrap, subscriptions, changes - bootstrap)
    return WorkloadLines(
        quotes.CATALOG_SQL,
        Timetable.of_creations(after).lines(_queries(case.radius, after, items)),
        quotes.following(quotes.symbols(items), _prices(case, seed, items, rounds), changes, seed),
    )


def _arrivals(case: SameCase, rng: np.random.Generator, bootstrap: int, subscriptions: int, walked: int) -> IntArray:
    """The changes after which subscriptions are created, during the bootstrap and during the walk."""
    late = min(int(subscriptions * (1 - case.bootstrap_subscriptions)), int(case.arrivals_max * walked))
    # Without changes there is none to subscribe after.
    early = even_moments(rng, subscriptions - late, min(1, bootstrap), bootstrap)
    return np.concatenate([early, even_moments(rng, late, bootstrap + 1, walked)])


def _queries(radius: float, after: IntArray, items: int) -> Iterator[str]:
    for item in ((after - 1) % items).tolist():
        yield f"SELECT * FROM quotes WHERE symbol = 'S{item}' AND moved(price) >= {radius}"


def _prices(case: SameCase, seed: int, items: int, bootstrap_rounds: int) -> Iterator[FloatArray]:
    rng = np.random.default_rng([seed, 2])
    yield case.walk.first(items)
    left = bootstrap_rounds - 1
    while left > 0:
        rounds = min(left, rounds_of_block(items))
        yield case.centres.draw(rng, rounds * items).reshape(rounds, items)
        left -= rounds
    yield from case.walk.rounds(rng, items)
