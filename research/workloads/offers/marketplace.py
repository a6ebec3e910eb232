"""The marketplace workload: offers and wishes on fifty attributes, of which each names one to three.

Popularity of attributes and words is skewed. A publication matches those who constrain all of its attributes, so one on rare
attributes often matches nobody, and one on a popular attribute alone many.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from research.workloads.offers.attributes import ATTRIBUTES
from research.workloads.offers.constraints import PUBLISHED, SUBSCRIBED, priced
from research.workloads.offers.life import OfferLife
from tidings.workloads.subscribers import coming_and_going, steady
from tidings.workloads.workload import WorkloadLines

TABLE = "listings"
CATALOG_SQL = (
    f"CREATE TABLE {TABLE} ({', '.join(f'{one.name} {one.type}' for one in ATTRIBUTES)}) WITH (rows = 'constraints');\n"
)

_OFFERS_MAX = 20_000
_RANKED = 0.1
"""Share of the subscriptions that want only the cheapest matches."""
_LIMITS = (1, 3, 5, 10)


def offers_marketplace(
    *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000, has_churn: bool = True
) -> WorkloadLines:
    """The whole workload: `rows` offers at the start, which are then replaced and changed.

    With churn a tenth of the subscriptions is created later and a tenth is dropped, each after a change of its own.
    """
    offers = rows or max(20, min(_OFFERS_MAX, changes // 5))
    asked = queries(seed)
    if has_churn:
        lines = coming_and_going(asked, subscriptions, range(offers, changes), seed)
    else:
        lines = steady(asked, subscriptions)
    life = OfferLife(TABLE, PUBLISHED.constraint, offers, seed)
    return WorkloadLines(CATALOG_SQL, lines, islice(life.lines(), changes))


def queries(seed: int) -> Iterator[str]:
    """Endless SQL queries; the first n do not depend on n."""
    rng = random.Random(f"{TABLE} queries {seed}")
    while True:
        if rng.random() < _RANKED:
            yield f"SELECT * FROM {TABLE} WHERE {priced(rng).where} ORDER BY price LIMIT {rng.choice(_LIMITS)}"
        else:
            yield f"SELECT * FROM {TABLE} WHERE {SUBSCRIBED.constraint(rng).where}"
