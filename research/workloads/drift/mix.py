"""A mixed drift workload: many items, few of them popular, and every kind of movement predicate.

Made for tests and demos, not after the paper: subscriptions are created, dropped and replaced; items are inserted, deleted and
inserted again; other columns change on their own.
"""

from __future__ import annotations

from itertools import chain, islice

import numpy as np

from research.workloads.drift.mix_changes import QuoteLife, seq_of
from research.workloads.drift.mix_queries import Items, queries
from research.workloads.drift.quotes import CATALOG_SQL
from research.workloads.drift.timetable import Timetable
from tidings.workloads.workload import WorkloadLines

_ITEMS_MAX = 1_000


def drift_mix(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> WorkloadLines:
    """`rows` items, nine in ten of them there from the start."""
    items = Items.make(seed, rows or max(20, min(_ITEMS_MAX, changes // 50)))
    timetable = Timetable.with_churn(np.random.default_rng([seed, 2]), subscriptions, changes)
    return WorkloadLines(
        CATALOG_SQL,
        timetable.at(seq_of).lines(queries(items, seed)),
        islice(chain.from_iterable(QuoteLife(items, seed).blocks()), changes),
    )
