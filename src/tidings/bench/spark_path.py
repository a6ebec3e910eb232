"""The Spark engine on the select bench: JSON lines to routed messages, and to finished notifications."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tidings.bench import Say
from tidings.bench.inline_path import Measured
from tidings.bench.report import Figure
from tidings.bench.select_data import CATALOG_SQL, SelectData, json_lines
from tidings.model.blob import pack, unpack
from tidings.network.zones import ZoneMap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
_WARM_BATCHES = 2
_SIZE_MIN = 10_000
_BATCH_SECONDS_MAX = 300.0


def measure(data: SelectData, say: Say) -> Measured:
    """Whole micro-batches, from reading the lines to the end of the trigger; medians over those after the warm-up."""
    if data.size < _SIZE_MIN:
        return Measured()
    from tidings.spark.session import spark_session

    measured = Measured()
    with (
        tempfile.TemporaryDirectory(prefix="tidings-bench-") as temporary,
        spark_session("bench", f"local[{CORES}]") as spark,
    ):
        work = _Work(spark, data, Path(temporary))
        say("changes to routed messages")
        seconds, _ = work.run("routed", batch=100_000, batches=4)
        measured.figures.append(
            _figure("routed", "JSON lines to routed messages", "changes/s", 100_000 / median(seconds))
        )
        say("small batches to routed messages")
        seconds, _ = work.run("small", batch=100, batches=6)
        measured.figures.append(_figure("latency", "a batch of 100 changes to routed messages", "s", median(seconds)))
        say("changes to finished notifications")
        seconds, counts = work.run("notified", batch=10_000, batches=4)
        rate = 10_000 / median(seconds)
        pairs = counts["deliveries"] / counts["changes"]
        measured.figures.append(_figure("notified", "JSON lines to finished notifications", "changes/s", rate))
        measured.figures.append(_figure("pairs", "JSON lines to subscription ids", "pairs/s", rate * pairs))
    return measured


def _figure(key: str, label: str, unit: str, value: float) -> Figure:
    return Figure(f"spark.{key}", f"spark: {label}", unit, value)


class _Work:
    """Input files of the bench, and queries over them."""

    def __init__(self, spark: SparkSession, data: SelectData, folder: Path) -> None:
        from tidings.spark.source import RecordedSource

        spark.dataSource.register(RecordedSource)
        points = data.points()
        self._spark = spark
        self._data = data
        self._folder = folder
        (folder / "points").write_bytes(pack([points]))
        self._zones = pack(ZoneMap.build([points], CORES).state())

    def run(self, name: str, batch: int, batches: int) -> tuple[list[float], dict[str, int]]:
        """Seconds of each micro-batch after the warm-up, and counts of one of them where they are finished."""
        from tidings.spark.job import notifications, routed_messages
        from tidings.spark.stages import Plan

        total = batches + _WARM_BATCHES
        lines = self._folder / f"{name}.jsonl"
        self._write(lines, batch, total)
        plan = Plan(f"{name}-{time.time_ns()}", CATALOG_SQL, {}, CORES, CORES, self._zones)
        options = {"changes": str(lines), "points": str(self._folder / "points"), "partitions": str(CORES)}
        source = self._spark.readStream.format("tidings-recorded").options(**options, batch=str(batch)).load()
        counts: dict[str, int] = {}
        frame = notifications(source, plan) if name == "notified" else routed_messages(source, plan)
        writer = frame.writeStream.option("checkpointLocation", str(self._folder / f"checkpoint-{name}"))
        if name == "notified":
            writer = writer.foreachBatch(
                lambda rows, _: counts.update(_counts(rows.filter("kind = 'metrics'").collect()))
            )
        else:
            writer = writer.format("noop")
        query = writer.start()
        try:
            progress = _await(query, total)
        finally:
            query.stop()
        seconds = [entry["durationMs"]["triggerExecution"] / 1000 for entry in progress]
        return seconds[_WARM_BATCHES:total], counts

    def _write(self, path: Path, batch: int, total: int) -> None:
        """All rows in the first micro-batch as far as they fit, then updates of those rows."""
        rows = min(batch, self._data.rows)
        data = replace(self._data, rows=rows, changes=batch * total - rows)
        with path.open("wb") as sink:
            for changes in (*data.inserts(), *data.updates()):
                sink.writelines(line + b"\n" for line in json_lines(changes))


def _counts(rows: list[Any]) -> dict[str, int]:
    """Changes and deliveries of a micro-batch; nothing for one without changes."""
    metrics = [unpack(bytes(row["blob"])) for row in rows]
    changes = sum(entry.get("changes", 0) for entry in metrics)
    deliveries = sum(sum(entry.get("deliveries", {}).values()) for entry in metrics)
    return {"changes": changes, "deliveries": deliveries} if changes else {}


def _await(query: Any, batches: int) -> list[Any]:
    deadline = time.monotonic() + _BATCH_SECONDS_MAX * batches
    while time.monotonic() < deadline:
        if not query.isActive:
            raise RuntimeError(f"the Spark query stopped: {query.exception()}")
        done = [entry for entry in query.recentProgress if entry["numInputRows"]]
        if len(done) >= batches:
            return list(islice(done, batches))
        time.sleep(0.05)
    raise RuntimeError("the Spark bench makes no progress")
