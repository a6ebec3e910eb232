"""Counters of a live job: every shard counts in each micro-batch, Spark adds up, and the driver reads the sums.

A shard puts its counts into the column `counts` of an envelope. `observed` lets Spark add them up while envelopes pass by, on
their way to whatever sink, without collecting anything (`DataFrame.observe`); the sums come with the query's progress. So do
notes: a few lines of text from each shard, for the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col, lit, max, sum, when

from tidings.live.counters import LATENCIES, fields
from tidings.spark.envelope import NOTES

OBSERVED = "tidings"
"""Name of the observation in a query's progress."""
_NOTES = "notes_"


def counted(counts: Mapping[str, int]) -> list[int]:
    """Counts by name as a value of the column `counts`."""
    return [int(counts.get(name, 0)) for name in fields()]


def observed(envelopes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The envelopes, whose counters are added up as they pass. keys: of all shards."""
    found = []
    for at, name in enumerate(fields()):
        count = col("counts")[at]
        found.append(coalesce(max(count) if name in LATENCIES else sum(count), lit(0)).alias(name))
    for number, key in enumerate(keys):
        # A shard has one envelope with notes at most.
        own = when((col("key") == key) & (col("kind") == NOTES), col("blob").cast("string"))
        found.append(max(own).alias(f"{_NOTES}{number}"))
    return envelopes.observe(OBSERVED, *found)


def notes_of(row: Mapping[str, Any]) -> list[str]:
    """The lines that shards have for the log. row: what was observed, by name."""
    texts = [text for name, text in row.items() if name.startswith(_NOTES) and text]
    return [line for text in texts for line in text.split("\n")]
