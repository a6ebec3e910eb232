"""The job as one Structured Streaming query: source -> replicas; or, where messages are wanted, source -> ingest -> tables ->
forms -> deliver.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from tidings.spark.envelope import SCHEMA
from tidings.spark.processor import ShardProcessor, Stage
from tidings.spark.stages import DELIVER, FORMS, REPLICA, TABLES, JobStage, Plan


def routed_messages(source: DataFrame, plan: Plan) -> DataFrame:
    """Input blocks -> envelopes for zones: messages routed to every zone they meet, subscription events, metrics."""
    envelopes = source.mapInArrow(partial(_ingest, plan), SCHEMA)
    return _stateful(_stateful(envelopes, JobStage(TABLES, plan)), JobStage(FORMS, plan))


def notifications(source: DataFrame, plan: Plan) -> DataFrame:
    """Input blocks -> envelopes with finished notifications, refused records and metrics."""
    return _stateful(routed_messages(source, plan), JobStage(DELIVER, plan))


def evaluated(envelopes: DataFrame, plan: Plan) -> DataFrame:
    """Envelopes for replicas -> what these make of them: each sees all changes and has a share of the subscriptions."""
    return _stateful(envelopes, JobStage(REPLICA, plan))


def for_replicas(source: DataFrame, plan: Plan) -> DataFrame:
    """Input blocks -> envelopes for replicas; a source may well make these itself."""
    return source.mapInArrow(partial(_spread, plan.replica_keys), SCHEMA)


def _spread(keys: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from tidings.spark.ingest import spread, to_arrow

    for batch in batches:
        for row in batch.to_pylist():
            yield from map(to_arrow, spread(keys, row["kind"], row["position"], row["value"]))


def _ingest(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from tidings.spark.ingest import ingest_batches

    return ingest_batches(plan, batches)


def _stateful(envelopes: DataFrame, stage: Stage) -> DataFrame:
    processor = ShardProcessor(stage)
    return envelopes.groupBy("key").transformWithStateInPandas(processor, SCHEMA, "append", "none")
