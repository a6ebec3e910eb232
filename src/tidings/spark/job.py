"""The job as one Structured Streaming query: source -> replicas; or, where messages are wanted, source -> ingest -> tables ->
forms -> deliver.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import array, explode, lit
from pyspark.sql.streaming import StreamingQuery

from tidings.spark.counters import observed
from tidings.spark.envelope import SCHEMA
from tidings.spark.plan import DELIVER, FORMS, REPLICA, TABLES, JobStage, Plan
from tidings.spark.stateful_processor import ShardProcessor, Stage


def routed_messages(source: DataFrame, plan: Plan) -> DataFrame:
    """Input blocks -> envelopes for zones: messages routed to every zone they meet, subscription events, metrics."""
    envelopes = source.mapInArrow(partial(_ingest, plan), SCHEMA)
    return _stateful(_stateful(envelopes, JobStage(TABLES, plan)), JobStage(FORMS, plan))


def delivered(source: DataFrame, plan: Plan) -> DataFrame:
    """Input blocks -> envelopes with finished notifications, refused records and metrics."""
    return _stateful(routed_messages(source, plan), JobStage(DELIVER, plan))


def evaluated(source: DataFrame, plan: Plan) -> DataFrame:
    """Rows (kind, blob) -> envelopes with notifications (or names of files of them), answers, refused records and metrics.

    Every replica gets all rows and has a share of the subscriptions. Counters of a stream are added up (`counters`).
    """
    keys = explode(array(*map(lit, plan.replica_keys))).alias("key")
    found = _stateful(source.select(keys, "kind", "blob"), JobStage(REPLICA, plan))
    return observed(found, plan.replica_keys) if plan.is_stream else found


def stop_blocked(query: StreamingQuery, release: Callable[[], object]) -> None:
    """Stops a query whose last micro-batch may be blocked until `release` is called."""
    stopping = threading.Thread(target=query.stop, daemon=True)
    stopping.start()
    while query.isActive:
        time.sleep(0.01)
    release()
    stopping.join()


def _ingest(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from tidings.spark.ingest import ingest_batches

    return ingest_batches(plan, batches)


def _stateful(envelopes: DataFrame, stage: Stage) -> DataFrame:
    processor = ShardProcessor(stage)
    return envelopes.groupBy("key").transformWithStateInPandas(processor, SCHEMA, "append", "none")
