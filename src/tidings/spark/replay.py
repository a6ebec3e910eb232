"""Replay on Spark: recorded files through the streaming job, resumable after any crash.

The state of a run is in a work folder beside the output: compiled subscriptions, Spark's checkpoint, finished parts. The same
command run again resumes from that folder; with other input or settings it starts from the beginning. At the end the parts
are put together as the output and the folder is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tidings import __version__
from tidings.files import load_files, only_one, open_input, peak_rss_mb, read_lines, replacing, write_json, write_lines
from tidings.model.blob import pack
from tidings.model.errors import UsageError
from tidings.pipeline.door import Door
from tidings.pipeline.stats import Stats
from tidings.signals import aside
from tidings.sinks.parts import PartsSink, family_counter
from tidings.spark.failures import failure_of
from tidings.spark.job import evaluated, stop_blocked
from tidings.spark.plan import Plan
from tidings.spark.session import default_shards, local_cores, spark_session
from tidings.spark.sinks.files import write_envelopes
from tidings.spark.sources.recorded import Recording, recorded_blocks, recorded_source
from tidings.spark.work_folder import MARK, discard, note_java, prepare
from tidings.sql import parse_catalog
from tidings.terminal import console, progress


def replay_on_spark(
    catalog: Path,
    subscriptions: Path,
    changes: Path,
    out: Path,
    quarantine: Path,
    batches: Sequence[int],
    master: str,
    shards: int = 0,
    *,
    load: Path | None = None,
    by_commit: bool = True,
) -> dict[str, Any]:
    """Runs the replay to its end, resuming an interrupted run if there is one. Returns the statistics.

    batches: sizes of micro-batches in lines, used in turn. shards: as in `_partitions`. load, by_commit: as in `Plan`.
    """
    loaded = [] if load is None else load_files(load)
    for path in (changes, out):
        if path.exists() and not path.is_file():
            raise UsageError(
                f"{path} is not a regular file, which a replay on Spark needs to be able to go on after a crash"
            )
    with only_one(out):
        started = time.monotonic()
        work = out.with_name(out.name + ".work")
        settings: dict[str, Any] = {"batches": list(batches), "master": master, "version": __version__}
        settings["shards"], settings["by_commit"] = shards, by_commit
        settings["families"] = os.environ.get("TIDINGS_FAMILIES", "")
        prepare(work, _fingerprint([catalog, subscriptions, changes, *loaded], settings))
        partitions = _partitions(work, master, shards)
        sink = PartsSink(work / "parts")
        if sink.batches():
            console().print(f"going on after micro-batch {sink.batches()[-1]}")
        java_mb = 0.0

        def plan(partitions: int) -> Future[tuple[Plan, list[str]]]:
            files = (work, catalog, subscriptions, changes, load)
            return aside(partial(_plan, *files, batches, partitions, by_commit=by_commit))

        # Spark and its workers start while subscriptions are compiled, if it is known for how many shards.
        planned = plan(partitions) if partitions else None
        if not sink.metrics().get("is_end"):
            with spark_session("tidings replay", master, work / "spark.log", starts_workers=True) as spark:
                java = note_java(spark, work)
                planned = planned or plan(default_shards(spark))
                spark.conf.set("spark.sql.shuffle.partitions", planned.result()[0].shards)
                _run(spark, planned.result()[0], sink, work)
                java_mb = peak_rss_mb(java)
        assert planned is not None, "a run that has ended knows its number of partitions"
        _assemble(sink, out, quarantine, planned.result()[1])
        metrics = sink.metrics()
        stats = Stats(metrics.get("changes", 0))
        for name in ("messages", "message_bytes", "deliveries", "notifications"):
            setattr(stats, name, family_counter(metrics, name))
        stats.quarantined = metrics.get("quarantined", 0) + len(planned.result()[1])
        discard(work)
        summary = stats.summary(time.monotonic() - started, peak_rss_mb() + java_mb)
        caches = {name: metrics.get(name, 0) for name in ("cache_hits", "cache_catch_ups", "cache_rebuilds")}
        return {**summary, "state": caches}


def _run(spark: SparkSession, plan: Plan, sink: PartsSink, work: Path) -> None:
    is_over, is_stopping = threading.Event(), threading.Event()
    with progress() as display:
        task = display.add_task("changes", total=None)

        def write(frame: DataFrame, batch_id: int) -> None:
            metrics = write_envelopes(sink, batch_id, frame.collect())
            display.update(task, advance=metrics.get("changes", 0))
            if metrics.get("is_end"):
                is_over.set()
                # The source never ends: block here so that no further micro-batch begins.
                is_stopping.wait()

        result = evaluated(recorded_blocks(recorded_source(spark)), plan)
        query = result.writeStream.foreachBatch(write).option("checkpointLocation", str(work / "checkpoint")).start()
        try:
            _wait(query, is_over, work)
        except KeyboardInterrupt:
            # The session kills Java, and the query with it.
            raise
        except BaseException:
            stop_blocked(query, is_stopping.set)
            raise
        stop_blocked(query, is_stopping.set)


def _wait(query: StreamingQuery, is_over: threading.Event, work: Path) -> None:
    while not is_over.wait(0.1):
        if not query.isActive:
            raise failure_of(query, work)


def _partitions(work: Path, master: str, shards: int) -> int:
    """Number of partitions: `shards`, if it is not 0. A resumed run keeps its own, as subscriptions are assigned by it.

    0 on a cluster, whose cores are not known before Spark has started.
    """
    ready = work / "ready.json"
    if ready.exists():
        return int(json.loads(ready.read_text())["partitions"])
    return shards or (local_cores(master) if master.startswith("local") else 0)


def _plan(
    work: Path,
    catalog: Path,
    subscriptions: Path,
    changes: Path,
    load: Path | None,
    batches: Sequence[int],
    partitions: int,
    *,
    by_commit: bool,
) -> tuple[Plan, list[str]]:
    """Returns the job's plan and the quarantine lines of refused subscriptions.

    Subscriptions are compiled once and kept in the work folder for resumed runs.
    """
    catalog_sql = catalog.read_text(encoding="utf-8-sig")
    ready = work / "ready.json"
    if not ready.exists():
        door = Door(parse_catalog(catalog_sql))
        with progress() as display, open_input(subscriptions) as source:
            task = display.add_task("subscriptions", total=None)
            refused = door.read(read_lines(source), lambda n: display.update(task, completed=n))
        (work / "points").write_bytes(pack(door.take()))
        Recording.write(work / "index", changes, work / "points", batches, by_commit=by_commit)
        write_json(ready, {"partitions": partitions, "refused": [entry.line() for entry in refused]})
    known = json.loads(ready.read_text())
    plan = Plan(
        job=hashlib.sha256(str(work.resolve()).encode() + (work / MARK).read_bytes()).hexdigest(),
        catalog_sql=catalog_sql,
        shards=known["partitions"],
        parts=str((work / "parts").resolve()),
        index=str((work / "index").resolve()),
        by_commit=by_commit,
        load="" if load is None else str(load.resolve()),
    )
    return plan, known["refused"]


def _fingerprint(files: list[Path], settings: dict[str, Any]) -> str:
    described = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return json.dumps([described, settings])


def _assemble(sink: PartsSink, out: Path, quarantine: Path, refused: list[str]) -> None:
    with replacing(out) as target:
        sink.copy(target)
    with replacing(quarantine) as target:
        write_lines(target, refused)
        sink.copy_refused(target)
