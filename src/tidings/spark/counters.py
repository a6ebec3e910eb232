"""Counters of a live job: every shard counts in each micro-batch, Spark adds up, and the driver reads the sums.

A shard puts its counts into the column `counts` of an envelope. `observed` lets Spark add them up while envelopes pass by, on
their way to whatever sink, without collecting anything (`DataFrame.observe`); the sums come with the query's progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col, lit, sum

from tidings.families.registry import families
from tidings.model.quarantine import CATEGORIES, Quarantined

OBSERVED = "tidings"
"""Name of the observation in a query's progress."""
_PLAIN = (
    "changes",
    "messages",
    "deliveries",
    "answers",
    "answers_refused",
    "shared_keys",
    "cache_hits",
    "cache_catch_ups",
    "cache_rebuilds",
    "folds",
    "state_bytes",
    "memory_bytes",
    "rows",
    "subscriptions",
    "forms",
    "shards",
)
_BUCKETS = 44
_BUCKETS_PER_DOUBLING = 2
"""Of latencies: bucket i holds those up to 2 ** (i / 2) milliseconds, the last one all above."""


@cache
def fields() -> tuple[str, ...]:
    """Names of all counters, in the order of the column `counts`."""
    told = [f"notifications_{family.name}" for family in families()]
    refused = [f"refused_{category}" for category in CATEGORIES]
    return (*_PLAIN, *told, *refused, *(f"latency_{bucket}" for bucket in range(_BUCKETS)))


def counted(counts: Mapping[str, int]) -> list[int]:
    """Counts by name as a value of the column `counts`."""
    return [int(counts.get(name, 0)) for name in fields()]


def observed(envelopes: DataFrame) -> DataFrame:
    """The envelopes, whose counters are added up as they pass."""
    sums = [coalesce(sum(col("counts")[at]), lit(0)).alias(name) for at, name in enumerate(fields())]
    return envelopes.observe(OBSERVED, *sums)


def refusals(refused: Iterable[Quarantined]) -> dict[str, int]:
    """Refused records by category, as counts."""
    found: dict[str, int] = {}
    for entry in refused:
        name = f"refused_{entry.category}"
        found[name] = found.get(name, 0) + 1
    return found


def latencies(seconds: NDArray[np.float64]) -> dict[str, int]:
    """Latencies by bucket, as counts."""
    millis = np.maximum(seconds * 1000.0, 1.0)
    buckets = np.minimum(np.ceil(np.log2(millis) * _BUCKETS_PER_DOUBLING).astype(np.int64), _BUCKETS - 1)
    return {f"latency_{bucket}": int(count) for bucket, count in enumerate(np.bincount(buckets)) if count}


def quantile(counts: Mapping[str, int], fraction: float) -> float | None:
    """Seconds below which this fraction of the counted latencies lies (the end of its bucket); None if none was counted."""
    sizes = np.array([counts.get(f"latency_{bucket}", 0) for bucket in range(_BUCKETS)])
    if not sizes.sum():
        return None
    bucket = int(np.searchsorted(np.cumsum(sizes), fraction * sizes.sum()))
    return float(2.0 ** (bucket / _BUCKETS_PER_DOUBLING) / 1000.0)
