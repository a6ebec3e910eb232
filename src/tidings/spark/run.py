"""The live pipeline: sources of changes and of subscription events, and a sink, by name and options, until told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tidings.model.errors import UsageError
from tidings.spark.job import stop_blocked
from tidings.spark.session import spark_session
from tidings.spark.sink import PartsSink
from tidings.spark.stream import envelopes, files, notifications, plan_of

FILES, KAFKA = "files", "kafka"


@dataclass(frozen=True)
class End:
    """A source or a sink: a format of Spark's, or FILES; a path, where the format has one; options of the format."""

    format: str
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(text: str, options: list[str]) -> End:
        """From `FORMAT` or `FORMAT:PATH`, and options `NAME=VALUE`."""
        format, _, path = text.partition(":")
        pairs = [option.partition("=") for option in options]
        wrong = next(
            (option for option, (name, sign, _) in zip(options, pairs, strict=True) if not name or not sign), None
        )
        if wrong is not None:
            raise UsageError(f"an option is NAME=VALUE, not {wrong!r}")
        if not format or (format == FILES and not path):
            raise UsageError(f"{text!r} is no source or sink: say {FILES}:FOLDER, {KAFKA}, or another format of Spark")
        return End(format, path, {name: value for name, _, value in pairs})


@dataclass(frozen=True)
class Run:
    """What a run needs to know. checkpoint: folder from which it goes on when it starts again.

    trigger: `once` for all that is there, then the end; else an interval such as `1 second`; empty: as fast as it can.
    """

    catalog_sql: str
    source: End
    subscriptions: End
    sink: End
    checkpoint: Path
    trigger: str = ""
    master: str = "local[*]"
    shards: int = 0


def run(settings: Run, stop: threading.Event, on_batch: Callable[[int, float, dict[str, Any]], object]) -> None:
    """Runs until `stop` is set or, with the trigger `once`, all is done. A micro-batch that has begun is finished first.

    on_batch: called after every micro-batch with its number, its seconds and its metrics.
    """
    settings.checkpoint.mkdir(parents=True, exist_ok=True)
    log = settings.checkpoint / "spark.log"
    with spark_session("tidings run", settings.master, log, starts_workers=True) as spark:
        guard = _Guard()
        query = _start(spark, settings, guard, on_batch)
        while query.isActive and not stop.wait(0.1):
            pass
        if query.isActive:
            guard.stop(query)
        elif (error := query.exception()) is not None:
            raise RuntimeError(f"the Spark query stopped: {error}")


def _start(
    spark: SparkSession, settings: Run, guard: _Guard, on_batch: Callable[[int, float, dict[str, Any]], object]
) -> StreamingQuery:
    changes, wishes = _read(spark, settings.source), _read(spark, settings.subscriptions)
    if settings.sink.format == FILES:
        sink = PartsSink(Path(settings.sink.path))
        plan = plan_of(spark, settings.catalog_sql, settings.shards, parts=str(Path(settings.sink.path).resolve()))

        def write(frame: DataFrame, batch: int) -> None:
            started = time.monotonic()
            with guard:
                metrics = sink.write(batch, frame.collect())
            on_batch(batch, time.monotonic() - started, metrics)

        writer = envelopes(changes, wishes, plan).writeStream.foreachBatch(write)
    else:
        found = notifications(spark, settings.catalog_sql, changes, wishes, shards=settings.shards)
        if settings.sink.format == KAFKA:
            found = found.selectExpr("subscription AS key", "to_json(struct(*)) AS value")
        writer = found.writeStream.format(settings.sink.format).options(**settings.sink.options)
        writer = writer.option("path", settings.sink.path) if settings.sink.path else writer
    writer = writer.option("checkpointLocation", str(settings.checkpoint / "checkpoint"))
    if settings.trigger == "once":
        writer = writer.trigger(availableNow=True)
    elif settings.trigger:
        writer = writer.trigger(processingTime=settings.trigger)
    return writer.start()


def _read(spark: SparkSession, source: End) -> DataFrame:
    if source.format == FILES:
        return files(spark, source.path, source.options)
    frame = spark.readStream.format(source.format).options(**source.options)
    loaded = frame.load(source.path) if source.path else frame.load()
    return loaded.select("value", "partition", "offset") if source.format == KAFKA else loaded


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
