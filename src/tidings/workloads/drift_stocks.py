"""Real prices: five leading stocks, day by day, replayed until there are as many changes as asked for.

The experiment of the paper on real data, with other years of other stocks: the closing prices of AAPL, FB, GOOG, IBM and
MSFT up to 1 March 2013 that the package bokeh_sampledata brings (the package: BSD-3-Clause; these prices: from Quandl
WIKI, which declared them to be in the public domain). Times and volumes are made up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from tidings.model.errors import UsageError
from tidings.workloads import drift_quotes
from tidings.workloads.drift_all import DollarRadii
from tidings.workloads.drift_subscribers import Timetable, random_moments
from tidings.workloads.drift_walk import FloatArray, reflected, rounds_of_block
from tidings.workloads.workload import Workload

SYMBOLS = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
_CENT = 0.01
_SPLIT = 1.4
"""Above this an adjustment is for a split, such as two shares for one; the largest of a dividend here is 1.11."""


def drift_stocks(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> Workload:
    """The first `rows` of the five stocks, or all; people choose radii as in `drift-all`, and come at random moments."""
    names = SYMBOLS[: rows or None]
    closes, variations = zip(*[_history(name) for name in names], strict=True)
    rounds = chain([np.array([closes])], _replayed(np.array(closes), variations))
    rng = np.random.default_rng([seed, 1])
    return Workload(
        drift_quotes.CATALOG_SQL,
        Timetable.of_creations(random_moments(rng, subscriptions, changes)).lines(DollarRadii().queries(rng, names)),
        drift_quotes.following(names, rounds, changes, seed),
    )


def _history(name: str) -> tuple[float, FloatArray]:
    """The first close, and by how much every close differs from the day before's.

    Days on which the stock was split are left out: the price is restated, but nothing has moved.
    """
    try:
        from bokeh_sampledata import stocks
    except ImportError:
        raise UsageError("drift-stocks needs stock prices: pip install 'tidings[workloads]'") from None
    history = getattr(stocks, name)
    close = np.array(history["close"], np.float64)
    adjustment = close / np.array(history["adj_close"], np.float64)
    is_split = adjustment[:-1] / adjustment[1:] > _SPLIT
    return float(close[0]), np.diff(close)[~is_split]


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
