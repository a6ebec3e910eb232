"""The synthetic workloads of the paper on range top-k subscriptions.

Rows have a place and a score from 0 to 1; a subscription wants the ten rows of lowest score in its range of places. At
every change a row picked at random gets another score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidings.workloads.drift_walk import BLOCK, FloatArray
from tidings.workloads.topk_scene import Block
from tidings.workloads.topk_scores import DECIMALS, JUMPS, Scores, Steps
from tidings.workloads.topk_spread import (
    ClusteredRanges,
    Places,
    Ranges,
    anticorrelated_ranges,
    clustered_places,
    correlated_ranges,
    even_places,
    even_ranges,
)
from tidings.workloads.topk_table import ITEMS, rows_for, workload_of
from tidings.workloads.workload import Workload

ROWS_MAX = 10_000
"""As in the paper."""


@dataclass(frozen=True)
class Case:
    """What can be varied in an experiment."""

    places: Places = even_places
    ranges: Ranges = even_ranges
    scores: Scores = JUMPS
    k: int = 10

    def start(self, seed: int, rows: int) -> tuple[FloatArray, FloatArray]:
        rng = np.random.default_rng([seed, 1])
        return self.places(rng, rows).round(DECIMALS), rng.random(rows).round(DECIMALS)

    def blocks(self, seed: int, score: FloatArray) -> Iterator[Block]:
        rng = np.random.default_rng([seed, 2])
        scores = score.tolist()
        while True:
            row = rng.integers(len(scores), size=BLOCK)
            yield row, np.array(self.scores.change(rng, scores, row.tolist()))

    def draw_ranges(self, seed: int, count: int) -> FloatArray:
        return self.ranges(np.random.default_rng([seed, 3]), count).round(DECIMALS)


UNIFORM = Case()
CLUSTERED = Case(clustered_places, ClusteredRanges())
CORRELATED = Case(clustered_places, correlated_ranges)
ANTICORRELATED = Case(clustered_places, anticorrelated_ranges)
STEPS = Case(scores=Steps())


def topk_uniform(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> Workload:
    """Rows and ranges anywhere."""
    return _workload(UNIFORM, seed, rows, subscriptions, changes)


def topk_clustered(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> Workload:
    """Rows in ten clusters, and ranges in ten others."""
    return _workload(CLUSTERED, seed, rows, subscriptions, changes)


def topk_correlated(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> Workload:
    """Rows in ten clusters, and short ranges around the same places."""
    return _workload(CORRELATED, seed, rows, subscriptions, changes)


def topk_anticorrelated(
    *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000
) -> Workload:
    """Rows in ten clusters, and short ranges between them."""
    return _workload(ANTICORRELATED, seed, rows, subscriptions, changes)


def topk_steps(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> Workload:
    """Rows and ranges anywhere; scores move a little at a time."""
    return _workload(STEPS, seed, rows, subscriptions, changes)


def _workload(case: Case, seed: int, rows: int, subscriptions: int, changes: int) -> Workload:
    keys = [str(i) for i in range(rows or rows_for(changes, ROWS_MAX))]
    return workload_of(ITEMS, case, keys, seed=seed, subscriptions=subscriptions, changes=changes)
