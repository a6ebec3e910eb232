"""The live pipeline: sources of changes and of subscription events, and a sink, by name and options, until told to stop."""

from __future__ import annotations

import gc
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tidings.files import write_text
from tidings.model.errors import UsageError
from tidings.spark.endpoint import Endpoint
from tidings.spark.job import stop_blocked
from tidings.spark.packages import packages
from tidings.spark.plan import Plan, shards_of
from tidings.spark.progress import Batch, Listener
from tidings.spark.session import default_shards, spark_session
from tidings.spark.sinks import open_sink
from tidings.spark.sources import read
from tidings.spark.stream import envelopes, plan_of
from tidings.spark.work_folder import await_orphan, note_java

_PLAN, _RUN = "plan.json", "run-id"
_REPORT_SECONDS = 10.0
_SETTINGS = {
    # What Spark keeps for its pages, of each kind: enough to look back some minutes, and no more after months.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "2000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.streaming.ui.retainedQueries": "5",
    # How long an idle query waits before it looks again; by default 10 ms, which keeps a fifth of a core busy.
    "spark.sql.streaming.pollingDelay": "50ms",
}


@dataclass(frozen=True)
class Run:
    """What a run needs to know. checkpoint: folder from which it goes on when it starts again.

    trigger: `once` for all that is there, then the end; else an interval such as `1 second`; empty: as fast as it can.
    shards: 0: as many as before, or in a new run as many as cores. start: where a new run begins to read changes
    (`sources.read`). config: further settings of Spark. has_ui: whether Spark serves its pages.
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
    has_ui: bool = False


def run(settings: Run, stop: threading.Event, on_batch: Callable[[Batch], object]) -> None:
    """Runs until `stop` is set or, with the trigger `once`, all is done. A micro-batch that has begun is finished first.

    on_batch: called after every micro-batch with its figures.
    """
    folder = settings.checkpoint
    folder.mkdir(parents=True, exist_ok=True)
    await_orphan(folder)
    settings = replace(settings, shards=_shards(settings))
    with _session(settings, folder / "spark.log") as spark:
        note_java(spark, folder)
        listener = Listener(on_batch)
        spark.streams.addListener(listener)
        guard = _Guard()
        query = _start(spark, settings, guard)
        _collect_often()
        while query.isActive and not stop.wait(0.1):
            pass
        if query.isActive:
            guard.stop(query)
        listener.wait(_REPORT_SECONDS)
        if not stop.is_set() and (error := query.exception()) is not None:
            raise _failure(str(error))


def _collect_often() -> None:
    """Lets Python collect garbage as often as it does by default: Java keeps every object that Python's garbage refers to,
    such as the plan of each micro-batch. What is loaded by now stays, and is not looked through.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 10)


def _shards(settings: Run) -> int:
    """The number of shards that the run before had, if there was one. UsageError if this one cannot go on from there."""
    path = settings.checkpoint / _PLAN
    if not path.exists():
        if (settings.checkpoint / "checkpoint").exists():
            raise UsageError(
                f"{settings.checkpoint} is a checkpoint without {_PLAN}, so not of this version of Tidings: go on with "
                "the version that wrote it, or begin with a new checkpoint"
            )
        return settings.shards
    text = path.read_text()
    shards = settings.shards or shards_of(text)
    Plan("", settings.catalog_sql, {}, shards, shards, is_stream=True).formerly(text)
    return shards


@contextmanager
def _session(settings: Run, log: Path) -> Iterator[SparkSession]:
    endpoints = (settings.source, settings.subscriptions, settings.sink)
    fetched = packages((endpoint.format for endpoint in endpoints), settings.config)
    ui = {"spark.ui.enabled": str(settings.has_ui).lower()}
    config = {**_SETTINGS, **ui, **settings.config, **fetched}
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


def _start(spark: SparkSession, settings: Run, guard: _Guard) -> StreamingQuery:
    changes = read(
        spark, _with_defaults(settings.source, settings.catalog_sql, settings.checkpoint / "source"), settings.start
    )
    wishes = read(spark, _subscription_table(settings.subscriptions, settings.checkpoint / "subscriptions"))
    sink = open_sink(settings.sink, guard, _identity(settings.checkpoint))
    plan = plan_of(spark, settings.catalog_sql, settings.shards or default_shards(spark), parts=sink.parts)
    spark.conf.set("spark.sql.shuffle.partitions", plan.shards)
    writer = sink.writer(envelopes(changes, wishes, plan))
    writer = writer.option("checkpointLocation", str(settings.checkpoint / "checkpoint"))
    if settings.trigger == "once":
        writer = writer.trigger(availableNow=True)
    elif settings.trigger:
        writer = writer.trigger(processingTime=settings.trigger)
    write_text(settings.checkpoint / _PLAN, plan.text)
    return writer.start()


def _identity(checkpoint: Path) -> str:
    """A text that tells the run from others, for as long as its checkpoint lives."""
    path = checkpoint / _RUN
    if not path.exists():
        write_text(path, uuid.uuid4().hex)
    return path.read_text()


def _with_defaults(source: Endpoint, catalog_sql: str, spool: Path) -> Endpoint:
    """The source with what it must know of the run."""
    return source.with_defaults(catalog=catalog_sql, spool=str(spool)) if source.format == "postgres" else source


def _subscription_table(source: Endpoint, spool: Path) -> Endpoint:
    """A source of subscription events; of PostgreSQL a table with the columns id and sql, by default `subscriptions`."""
    if source.format != "postgres":
        return source
    table = source.options.get("tables", "subscriptions")
    named = source.with_defaults(tables=table, slot="tidings_subscriptions", publication="tidings_subscriptions")
    catalog = f'CREATE TABLE "{table.rpartition(".")[2]}" (id TEXT PRIMARY KEY, sql TEXT);'
    return _with_defaults(named, catalog, spool)


def _failure(text: str) -> Exception:
    """What to raise when the query has failed: our own message, if a worker gave one."""
    found = re.search(r"tidings\.model\.errors\.\w+: (.*)", text)
    return RuntimeError(found[1] if found else f"the Spark query stopped: {text}")


class _Guard:
    """Held while a micro-batch is written, and when the query is stopped: a micro-batch is written whole or not at all.

    Where Spark itself writes, nobody holds it: the query is stopped when no micro-batch is under way, if there is such a
    moment within some seconds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False
        self._is_used = False

    def __enter__(self) -> None:
        self._lock.acquire()
        self._is_used = True
        if self._is_over:
            self._lock.release()
            raise RuntimeError("stopped")

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def stop(self, query: StreamingQuery) -> None:
        """Stops the query between two micro-batches. One that waits to be written is left to the next run."""
        if not self._is_used:
            deadline = time.monotonic() + _REPORT_SECONDS
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
                time.sleep(0.005)
        self.__enter__()
        stop_blocked(query, self._end)

    def _end(self) -> None:
        self._is_over = True
        self._lock.release()
