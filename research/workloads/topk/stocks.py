"""Price-earnings ratios that move as prices of real stocks did: the ten cheapest stocks within a range of recommendations.

The experiment of the paper on real data, which had 30 days of 2,031 stocks. The companies here are made up: each has its
own earnings and an average recommendation from 1 (buy) to 5 (sell). Their prices follow the openings and closings of AAPL,
FB, GOOG, IBM and MSFT, every company another stretch of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from research.workloads.draws import TruncatedNormal, rows_for
from research.workloads.drift.quotes import symbols
from research.workloads.prices import SYMBOLS, history
from research.workloads.topk.scene import Block
from research.workloads.topk.table import STOCKS, workload_of
from tidings.workloads.draws import FloatArray, IntArray
from tidings.workloads.workload import WorkloadLines

ROWS_MAX = 2_031
RECO = TruncatedNormal(mean=2.5, sd=0.6, low=1.0, high=5.0)
_DECIMALS = 4
_PER, _PER_SPREAD = 18.0, 0.6


@dataclass(frozen=True)
class StockCase:
    """What can be varied in an experiment."""

    k: int = 10

    def start(self, seed: int, rows: int) -> tuple[FloatArray, FloatArray]:
        rng = np.random.default_rng([seed, 1])
        per = _PER * np.exp(_PER_SPREAD * rng.standard_normal(rows))
        return RECO.draw(rng, rows).round(_DECIMALS), per.round(_DECIMALS)

    def blocks(self, seed: int, score: FloatArray) -> Iterator[Block]:
        """Twice a day, when the market opens and when it closes, all stocks in a new order."""
        rng = np.random.default_rng([seed, 2])
        moves, first, length = _moves()
        day = rng.integers(len(moves), size=len(score))
        history = np.searchsorted(first, day, "right") - 1
        per = np.log(score)
        while True:
            for half in (0, 1):
                per += moves[day, half]
                order = rng.permutation(len(score))
                yield order, np.exp(per[order]).round(_DECIMALS)
            day = first[history] + (day + 1 - first[history]) % length[history]

    def draw_ranges(self, seed: int, count: int) -> FloatArray:
        """Ranges whose ends are the recommendations of two stocks."""
        ends = RECO.draw(np.random.default_rng([seed, 3]), 2 * count).reshape(count, 2)
        return np.sort(ends, axis=1).round(_DECIMALS)


def topk_stocks(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> WorkloadLines:
    """`rows` companies (default: 2,031 if there are enough changes)."""
    keys = [f'"{name}"' for name in symbols(rows or rows_for(changes, ROWS_MAX))]
    return workload_of(STOCKS, StockCase(), keys, seed=seed, subscriptions=subscriptions, changes=changes)


@cache
def _moves() -> tuple[FloatArray, IntArray, IntArray]:
    """([days of all histories, 2] logarithms of how a price moves overnight and during a day, where each history begins, how
    many days it has). A history's trend is taken out, so that it can be replayed without end.
    """
    histories = [_trendless(name) for name in SYMBOLS]
    length = np.array([len(history) for history in histories])
    return np.concatenate(histories), np.cumsum(length) - length, length


def _trendless(name: str) -> FloatArray:
    found = history(name)
    opened, closed = np.log(found.opened), np.log(found.closed)
    moves = np.stack([opened[1:] - closed[:-1], closed[1:] - opened[1:]], axis=1)[~found.is_split]
    trendless: FloatArray = moves - moves.mean(axis=0)
    return trendless
