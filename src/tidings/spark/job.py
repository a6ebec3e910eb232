"""The job as one Structured Streaming query: source -> replicas."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql.functions import array, explode, lit
from pyspark.sql.streaming import StreamingQuery

from tidings.spark.counters import observed
from tidings.spark.envelope import SCHEMA
from tidings.spark.plan import Plan
from tidings.spark.stateful_processor import ShardProcessor


def evaluated(source: DataFrame, plan: Plan) -> DataFrame:
    """Rows (kind, blob) -> envelopes with notifications (or names of files of them), answers, refused records and metrics.

    Every replica gets all rows and has a share of the subscriptions. Counters of a stream are added up (`counters`).
    """
    keys = explode(array(*map(lit, plan.replica_keys))).alias("key")
    processor = ShardProcessor(plan)
    rows = source.select(keys, "kind", "blob").groupBy("key")
    found = rows.transformWithStateInPandas(processor, SCHEMA, "append", "none")
    return observed(found, plan.replica_keys) if plan.is_stream else found


def stop_blocked(query: StreamingQuery, release: Callable[[], object]) -> None:
    """Stops a query whose last micro-batch may be blocked until `release` is called."""
    stopping = threading.Thread(target=query.stop, daemon=True)
    stopping.start()
    while query.isActive:
        time.sleep(0.01)
    release()
    stopping.join()
