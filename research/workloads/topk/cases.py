"""The synthetic workloads of the paper on range top-k subscriptions.

Rows have a place and a score from 0 to 1; a subscription wants the ten rows of lowest score in its range of places. At
every change a row picked at random gets another score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from research.workloads.draws import BLOCK, rows_for
from research.workloads.topk.scene import Block
from research.workloads.topk.spread import (
    DECIMALS,
    JUMPS,
    ClusteredRanges,
    Places,
    Ranges,
    Scores,
    SmallSteps,
    anticorrelated_ranges,
    clustered_places,
    correlated_ranges,
    even_places,
    even_ranges,
)
from research.workloads.topk.table import ITEMS, workload_of
from tidings.workloads.draws import FloatArray
from tidings.workloads.workload import Generator, WorkloadLines

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
"""Rows and ranges anywhere, scores that jump."""
CLUSTERED = Case(clustered_places, ClusteredRanges())
"""Rows in ten clusters, and ranges in ten others."""
CORRELATED = Case(clustered_places, correlated_ranges)
"""Short ranges around the clusters of the rows."""
ANTICORRELATED = Case(clustered_places, anticorrelated_ranges)
"""Short ranges between the clusters of the rows."""
STEPS = Case(scores=SmallSteps())


def _workload(
    case: Case, *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000
) -> WorkloadLines:
    """`rows` rows (default: 10,000 if there are enough changes)."""
    keys = [str(i) for i in range(rows or rows_for(changes, ROWS_MAX))]
    return workload_of(ITEMS, case, keys, seed=seed, subscriptions=subscriptions, changes=changes)


topk_uniform: Generator = partial(_workload, UNIFORM)
topk_clustered: Generator = partial(_workload, CLUSTERED)
topk_correlated: Generator = partial(_workload, CORRELATED)
topk_anticorrelated: Generator = partial(_workload, ANTICORRELATED)
topk_steps: Generator = partial(_workload, STEPS)
