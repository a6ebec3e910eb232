"""The live pipeline: sources of changes and of subscription events, and a sink, by name and options, until told to stop."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tidings.endpoint import Endpoint
from tidings.files import write_text
from tidings.live.job import NOT_WHOLE, Job
from tidings.live.progress import Batch
from tidings.model.errors import RunError, UsageError
from tidings.pipeline.edge.dispatch import REGIONS
from tidings.signals import Stop
from tidings.sources import begun
from tidings.spark.failures import failure_of, refusals
from tidings.spark.packages import packages
from tidings.spark.plan import Plan, shards_of
from tidings.spark.progress import Listener
from tidings.spark.session import default_shards, spark_session
from tidings.spark.sinks import FORMATS as SINKS
from tidings.spark.sinks import open_sink
from tidings.spark.sinks.guard import Guard
from tidings.spark.sources import FORMATS as SOURCES
from tidings.spark.sources import check as check_source
from tidings.spark.sources import read
from tidings.spark.stream import envelopes, plan_of
from tidings.spark.work_folder import await_orphan, note_java
from tidings.sql import parse_catalog

_PLAN, _SPARK = "plan.json", "checkpoint"
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
class Run(Job):
    """A job on Spark. shards: 0: as many as before, or in a new run as many as cores.

    config: further settings of Spark. has_ui: whether Spark serves its pages.
    """

    master: str = "local[*]"
    shards: int = 0
    config: Mapping[str, str] = field(default_factory=dict)
    has_ui: bool = False


def check(settings: Run) -> None:
    """Finds what is wrong with a run without Spark, before anything is made or started: UsageError."""
    parse_catalog(settings.catalog_sql)
    shards, places = _shards(settings), settings.places
    if places is not None and places.sender == REGIONS and shards != 1:
        raise UsageError(f"sender={REGIONS} is for one shard: say --shards 1, or --engine inline")
    _ = settings.interval
    if not (settings.checkpoint / _PLAN).exists():
        settings.check_load()
    open_sink(settings.sink, Guard(threading.Event()), settings.identity)
    check_source(settings.changes_endpoint, settings.start)
    check_source(settings.events_endpoint)


def run(settings: Run, stop: Stop, on_batch: Callable[[Batch], object], on_step: Callable[[str], object]) -> None:
    """Runs until asked to stop or, with the trigger `once`, all is done. A micro-batch that has begun is finished first.

    on_batch: called after every micro-batch with its figures. on_step: called with each step of the start, in words.
    """
    folder = settings.checkpoint
    folder.mkdir(parents=True, exist_ok=True)
    await_orphan(folder, on_step)
    settings = replace(settings, shards=_shards(settings))
    with _session(settings, folder / "spark.log", on_step) as spark:
        note_java(spark, folder)
        listener = Listener(on_batch)
        spark.streams.addListener(listener)
        guard = Guard(stop.asked)
        on_step("starting the query")
        query = _start(spark, settings, guard, stop)
        on_step("waiting for changes; Ctrl-C or SIGTERM stops")
        _collect_often()
        # Spark would go on without it, and nobody could go on from there.
        known = folder / _SPARK / "metadata"
        while query.isActive and known.exists() and not stop.asked.wait(0.1):
            pass
        if query.isActive:
            guard.stop(query)
        listener.wait(_REPORT_SECONDS)
        # The session may be somebody else's, and live on.
        spark.streams.removeListener(listener)
        if not known.exists():
            raise RunError(f"{known} was removed while the job ran, so {folder} {NOT_WHOLE}")
        if not stop.asked.is_set() and query.exception() is not None:
            raise failure_of(query, folder)


def _collect_often() -> None:
    """Lets Python collect garbage as often as it does by default: Java keeps every object that Python's garbage refers to,
    such as the plan of each micro-batch. What is loaded by now stays, and is not looked through.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 10)


def _shards(settings: Run) -> int:
    """The number of shards that the run before had, if there was one. UsageError if this one cannot go on from there."""
    path, own = settings.checkpoint / _PLAN, settings.checkpoint / _SPARK
    if (settings.checkpoint / "engine.json").exists():
        raise UsageError(
            f"{settings.checkpoint} is a checkpoint of a job without Spark: say --engine inline, or name a new one"
        )
    if not path.exists():
        if any(own.glob("*")):
            raise UsageError(
                f"{settings.checkpoint} is a checkpoint without {_PLAN}, so not of this version of Tidings: go on with "
                "the version that wrote it, or begin with a new checkpoint"
            )
        return settings.shards
    _check_whole(own)
    text = path.read_text()
    try:
        shards = settings.shards or shards_of(text)
        Plan("", settings.catalog_sql, shards, is_stream=True, **_gateways(settings)).formerly(text)
    except ValueError as error:
        raise UsageError(f"{path} is damaged ({error}), so {settings.checkpoint} {NOT_WHOLE}") from None
    return shards


def _gateways(settings: Run) -> dict[str, Any]:
    """Fields of the plan."""
    places = settings.places
    if places is None:
        return {}
    return {"gateways": places.names, "receive": places.receive, "sender": places.sender}


def _check_whole(folder: Path) -> None:
    """UsageError if Spark's own part of a checkpoint is not whole: Spark would begin anew, on top of what is in the sink."""
    has_begun = any((folder / "offsets").glob("[0-9]*"))
    has_finished = any((folder / "commits").glob("[0-9]*"))
    wanted = {"": True, "metadata": has_begun, "offsets": has_finished, "state": has_finished}
    for name in (name for name, is_wanted in wanted.items() if is_wanted):
        if not (folder / name).exists():
            raise UsageError(f"{folder / name} is missing, so {folder.parent} {NOT_WHOLE}")


@contextmanager
def _session(settings: Run, log: Path, on_step: Callable[[str], object]) -> Iterator[SparkSession]:
    endpoints = (settings.source, settings.subscriptions, settings.sink)
    fetched = packages((endpoint.format for endpoint in endpoints), settings.config)
    ui = {"spark.ui.enabled": str(settings.has_ui).lower()}
    config = {**_SETTINGS, **ui, **settings.config, **fetched}
    if fetched:
        on_step(f"fetching {', '.join(fetched.values())} from Maven, if need be")
    with ExitStack() as stack:
        try:
            spark = stack.enter_context(
                spark_session("tidings run", settings.master, log, config, starts_workers=True, on_step=on_step)
            )
        except RunError as error:
            if not fetched:
                raise
            raise UsageError(
                f"Spark did not start; it was to fetch {', '.join(fetched.values())} from Maven ({log} says more). Where Maven "
                "Central is not reached, name a file of Ivy's settings (--conf spark.jars.ivySettings=FILE) or the jars "
                "themselves (--conf spark.jars=FILE,FILE)"
            ) from error
        yield spark


def _start(spark: SparkSession, settings: Run, guard: Guard, stop: Stop) -> StreamingQuery:
    source, subscriptions = settings.changes_endpoint, settings.events_endpoint
    settings.identify()
    with _refusals("--source", settings.source, SOURCES):
        changes = read(spark, source, settings.start)
    with _refusals("--subscriptions", settings.subscriptions, SOURCES):
        wishes = read(spark, subscriptions)
    sink = open_sink(settings.sink, guard, settings.identity)
    requests = None
    if settings.requests_endpoint is not None:
        # Where gateways write is made by the sink.
        sink.prepare()
        requests = read(spark, settings.requests_endpoint)
    load = "" if settings.load is None else str(settings.load.resolve())
    shards = settings.shards or default_shards(spark)
    parts = {"parts": sink.parts, "has_columns": sink.has_columns, **_gateways(settings)}
    plan = plan_of(spark, settings.catalog_sql, shards, **parts, by_commit=settings.by_commit, load=load)
    spark.conf.set("spark.sql.shuffle.partitions", plan.shards)
    writer = sink.writer(envelopes(changes, wishes, plan, requests))
    writer = writer.option("checkpointLocation", str(settings.checkpoint / _SPARK))
    if settings.trigger == "once":
        writer = writer.trigger(availableNow=True)
    elif settings.interval is not None:
        writer = writer.trigger(processingTime=f"{settings.interval * 1e6:.0f} microseconds")
    with begun(source, settings.start), begun(subscriptions), _refusals("--sink", settings.sink, SINKS):
        sink.prepare()
        # The folder first: where there is a plan and no folder, somebody has removed it.
        (settings.checkpoint / _SPARK).mkdir(exist_ok=True)
        write_text(settings.checkpoint / _PLAN, plan.text)
        stop.finish_first()
        return writer.start()


def _refusals(option: str, endpoint: Endpoint, formats: Sequence[str]) -> AbstractContextManager[None]:
    # Without the path, which may hold a password.
    return refusals(f"{option} {endpoint.format}", formats)
