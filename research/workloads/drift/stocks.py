"""Real prices: five leading stocks, day by day, replayed until there are as many changes as asked for.

The experiment of the paper on real data, with other years of other stocks: the closing prices of AAPL, FB, GOOG, IBM and
MSFT. Times and volumes are made up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from research.workloads.drift import quotes
from research.workloads.drift.all import DollarRadii
from research.workloads.drift.quotes import reflected, rounds_of_block
from research.workloads.drift.timetable import Timetable, random_moments
from research.workloads.prices import SYMBOLS, history
from tidings.workloads.draws import FloatArray
from tidings.workloads.workload import WorkloadLines

_CENT = 0.01


def drift_stocks(
    *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000
) -> WorkloadLines:
    """The first `rows` of the five stocks, or all. Radii are as in `drift-all`; subscriptions are created at random times."""
    names = SYMBOLS[: rows or None]
    closes, variations = zip(*[_closes(name) for name in names], strict=True)
    rounds = chain([np.array([closes])], _replayed(np.array(closes), variations))
    rng = np.random.default_rng([seed, 1])
    return WorkloadLines(
        quotes.CATALOG_SQL,
        Timetable.of_creations(random_moments(rng, subscriptions, changes)).lines(DollarRadii().queries(rng, names)),
        quotes.following(names, rounds, changes, seed),
    )


def _closes(name: str) -> tuple[float, FloatArray]:
    """The first close, and by how much every close differs from the day before's.

    Days on which the stock was split are left out.
    """
    _, closed, is_split = history(name)
    return float(closed[0]), np.diff(closed)[~is_split]


def _replayed(start: FloatArray, variations: Sequence[FloatArray]) -> Iterator[FloatArray]:
    """Blocks without end, [rounds, stocks]: each history goes on from where its last replay ended.

    A stock that falls over its history would fall below zero: it is reflected at one cent, its variations upside down.
    """
    at, first = start, 0
    rounds = rounds_of_block(len(start))
    while True:
        days = np.arange(first, first + rounds)
        walked = at + np.cumsum([history[days % len(history)] for history in variations], axis=1).T
        at, first = walked[-1], first + rounds
        yield reflected(walked, _CENT)
