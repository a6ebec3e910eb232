"""The live pipeline: sources of changes and of subscription events, and a sink, by name and options, until told to stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tidings.model.errors import UsageError
from tidings.spark.endpoint import Endpoint
from tidings.spark.job import stop_blocked
from tidings.spark.packages import packages
from tidings.spark.session import spark_session
from tidings.spark.sinks import OnBatch, open_sink
from tidings.spark.sources import read
from tidings.spark.stream import envelopes, plan_of


@dataclass(frozen=True)
class Run:
    """What a run needs to know. checkpoint: folder from which it goes on when it starts again.

    trigger: `once` for all that is there, then the end; else an interval such as `1 second`; empty: as fast as it can.
    start: where a new run begins to read changes (`sources.read`). config: settings of Spark.
    """

    catalog_sql: str
    source: Endpoint
    subscriptions: Endpoint
    sink: Endpoint
    checkpoint: Path
    trigger: str = ""
    master: str = "local[*]"
    shards: int = 0
    start: str = ""
    config: Mapping[str, str] = field(default_factory=dict)


def run(settings: Run, stop: threading.Event, on_batch: OnBatch) -> None:
    """Runs until `stop` is set or, with the trigger `once`, all is done. A micro-batch that has begun is finished first.

    on_batch: called after every micro-batch with its number, its seconds and its metrics.
    """
    settings.checkpoint.mkdir(parents=True, exist_ok=True)
    log = settings.checkpoint / "spark.log"
    with _session(settings, log) as spark:
        guard = _Guard()
        query = _start(spark, settings, guard, on_batch)
        while query.isActive and not stop.wait(0.1):
            pass
        if query.isActive:
            guard.stop(query)
        elif (error := query.exception()) is not None:
            raise RuntimeError(f"the Spark query stopped: {error}")


@contextmanager
def _session(settings: Run, log: Path) -> Iterator[SparkSession]:
    endpoints = (settings.source, settings.subscriptions, settings.sink)
    fetched = packages((endpoint.format for endpoint in endpoints), settings.config)
    config = {**settings.config, **fetched}
    with ExitStack() as stack:
        try:
            spark = stack.enter_context(spark_session("tidings run", settings.master, log, config, starts_workers=True))
        except PySparkRuntimeError as error:
            if not fetched:
                raise
            raise UsageError(
                f"Spark did not start; it was to fetch {', '.join(fetched.values())} from Maven ({log} says more). Where Maven "
                "Central is not reached, name a file of Ivy's settings (--conf spark.jars.ivySettings=FILE) or the jars "
                "themselves (--conf spark.jars=FILE,FILE)"
            ) from error
        yield spark


def _start(spark: SparkSession, settings: Run, guard: _Guard, on_batch: OnBatch) -> StreamingQuery:
    source = settings.source
    if source.format == "postgres":
        spool = str(settings.checkpoint / "source")
        source = source.with_defaults(catalog=settings.catalog_sql, spool=spool)
    changes = read(spark, source, settings.start)
    wishes = read(spark, settings.subscriptions)
    sink = open_sink(settings.sink, guard, on_batch)
    plan = plan_of(spark, settings.catalog_sql, settings.shards, parts=sink.parts)
    writer = sink.writer(envelopes(changes, wishes, plan))
    writer = writer.option("checkpointLocation", str(settings.checkpoint / "checkpoint"))
    if settings.trigger == "once":
        writer = writer.trigger(availableNow=True)
    elif settings.trigger:
        writer = writer.trigger(processingTime=settings.trigger)
    return writer.start()


class _Guard:
    """Held while a micro-batch is written, and when the query is stopped: a micro-batch is written whole or not at all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._is_over:
            self._lock.release()
            raise RuntimeError("stopped")

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def stop(self, query: StreamingQuery) -> None:
        """Stops the query between two micro-batches. One that waits to be written is left to the next run."""
        self.__enter__()
        stop_blocked(query, self._end)

    def _end(self) -> None:
        self._is_over = True
        self._lock.release()
