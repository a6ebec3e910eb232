"""The job as one Structured Streaming query: source -> replicas; or, where messages are wanted, source -> ingest -> tables ->
(forms ->) deliver.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from tidings.families.base import Partition
from tidings.families.registry import families
from tidings.spark.envelope import SCHEMA
from tidings.spark.processor import ShardProcessor, Stage
from tidings.spark.stages import DELIVER, FORMS, REPLICA, TABLES, JobStage, Plan


def routed_messages(source: DataFrame, plan: Plan) -> DataFrame:
    """Input blocks -> envelopes for zones: messages routed to every zone they meet, subscription events, metrics."""
    envelopes = source.mapInArrow(partial(_ingest, plan), SCHEMA)
    envelopes = _stateful(envelopes, JobStage(TABLES, plan))
    if any(family.partition is Partition.VALUE for family in families()):
        envelopes = _stateful(envelopes, JobStage(FORMS, plan))
    return envelopes


def notifications(source: DataFrame, plan: Plan) -> DataFrame:
    """Input blocks -> envelopes with finished notifications, refused records and metrics."""
    return _stateful(routed_messages(source, plan), JobStage(DELIVER, plan))


def evaluated(source: DataFrame, plan: Plan) -> DataFrame:
    """Input blocks -> what replicas make of them: every replica sees all changes and has a share of the subscriptions."""
    return _stateful(source.mapInArrow(partial(_spread, plan), SCHEMA), JobStage(REPLICA, plan))


def _spread(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from tidings.spark.replicas import spread

    return spread(plan, batches)


def _ingest(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from tidings.spark.ingest import ingest_batches

    return ingest_batches(plan, batches)


def _stateful(envelopes: DataFrame, stage: Stage) -> DataFrame:
    processor = ShardProcessor(stage)
    return envelopes.groupBy("key").transformWithStateInPandas(processor, SCHEMA, "append", "none")
