"""Counters of a live job: every shard counts in each micro-batch, Spark adds up, and the driver reads the sums.

A shard puts its counts into the column `counts` of an envelope. `observed` lets Spark add them up while envelopes pass by, on
their way to whatever sink, without collecting anything (`DataFrame.observe`); the sums come with the query's progress. So do
notes: a few lines of text from each shard, for the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col, lit, max, sum, when

from tidings.families.registry import families
from tidings.model.quarantine import CATEGORIES, Quarantined
from tidings.spark.envelope import NOTES

OBSERVED = "tidings"
"""Name of the observation in a query's progress."""
_NOTES = "notes_"
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
_LATENCIES = {"latency_p50": 0.5, "latency_p99": 0.99, "latency_max": 1.0}
"""Microseconds, 0 if no change had a time; of several shards the highest counts. As every shard gets every change, the highest
quantile of the shards is the quantile of the times until the last shard has written."""


@cache
def fields() -> tuple[str, ...]:
    """Names of all counters, in the order of the column `counts`."""
    told = [f"notifications_{family.name}" for family in families()]
    refused = [f"refused_{category}" for category in CATEGORIES]
    return (*_PLAIN, *told, *refused, *_LATENCIES)


def counted(counts: Mapping[str, int]) -> list[int]:
    """Counts by name as a value of the column `counts`."""
    return [int(counts.get(name, 0)) for name in fields()]


def observed(envelopes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The envelopes, whose counters are added up as they pass. keys: of all shards."""
    found = []
    for at, name in enumerate(fields()):
        count = col("counts")[at]
        found.append(coalesce(max(count) if name in _LATENCIES else sum(count), lit(0)).alias(name))
    for number, key in enumerate(keys):
        # A shard has one envelope with notes at most.
        own = when((col("key") == key) & (col("kind") == NOTES), col("blob").cast("string"))
        found.append(max(own).alias(f"{_NOTES}{number}"))
    return envelopes.observe(OBSERVED, *found)


def notes_of(row: Mapping[str, Any]) -> list[str]:
    """The lines that shards have for the log. row: what was observed, by name."""
    texts = [text for name, text in row.items() if name.startswith(_NOTES) and text]
    return [line for text in texts for line in text.split("\n")]


def refusals(refused: Iterable[Quarantined]) -> dict[str, int]:
    """Refused records by category, as counts."""
    found: dict[str, int] = {}
    for entry in refused:
        name = f"refused_{entry.category}"
        found[name] = found.get(name, 0) + 1
    return found


def latencies(seconds: NDArray[np.float64]) -> dict[str, int]:
    """Quantiles of latencies, as counts: each is one of the latencies themselves."""
    if not len(seconds):
        return {}
    micros = np.sort(np.maximum(seconds * 1e6, 1.0)).astype(np.int64)
    return {name: int(micros[ceil(fraction * len(micros)) - 1]) for name, fraction in _LATENCIES.items()}
