"""Rewritings of the patterns of a large set, found by Spark: patterns to rewrite are spread, all patterns are everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import SparkSession

from tidings.kernels.arrays import F64, I64
from tidings.relay.rewriting import PatternTable, Rewritings
from tidings.relay.rewriting.rewritings import REWRITINGS_MAX, joined, portioned, rewritings_of

_COLUMNS = "portion long, first binary, first_source binary, sources binary, embedded long, dropped long"
_SCHEMA = pa.schema(
    [
        ("portion", pa.int64()),
        ("first", pa.binary()),
        ("first_source", pa.binary()),
        ("sources", pa.binary()),
        ("embedded", pa.int64()),
        ("dropped", pa.int64()),
    ]
)


def find_rewritings_on_spark(
    spark: SparkSession,
    table: PatternTable,
    cost: F64,
    k: int = REWRITINGS_MAX,
    *,
    on_progress: Callable[[int], None] = lambda count: None,
) -> Rewritings:
    """What `find_rewritings` gives, worked out by the cluster."""
    portions = portioned(len(table))
    sent = spark.sparkContext.broadcast((table, cost))
    try:
        found = (
            spark.range(0, len(portions), 1, len(portions))
            .mapInArrow(partial(_found, sent, portions, k), _COLUMNS)
            .toLocalIterator(prefetchPartitions=True)
        )
        parts = {}
        for row in found:
            first, first_source = (np.frombuffer(row[name], np.int64) for name in ("first", "first_source"))
            sources = np.frombuffer(row["sources"], np.int32)
            parts[row["portion"]] = Rewritings(first, first_source, sources, row["embedded"], row["dropped"])
            on_progress(len(portions[row["portion"]]))
    finally:
        sent.unpersist()
    return joined([parts[portion] for portion in range(len(portions))])


# From here on in tasks.


def _found(
    sent: Broadcast[tuple[PatternTable, F64]], portions: list[I64], k: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    table, cost = sent.value
    for batch in batches:
        for portion in batch.column(0).to_pylist():
            part = rewritings_of(table, portions[portion], cost, k)
            arrays = (part.first.astype(np.int64), part.first_source.astype(np.int64), part.sources)
            columns = [[portion], *([array.tobytes()] for array in arrays), [part.embedded], [part.dropped]]
            fields = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(fields, schema=_SCHEMA)
