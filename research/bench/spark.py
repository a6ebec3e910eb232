"""The Spark engine on a bench: JSON lines to routed messages, and to finished notifications."""

from __future__ import annotations

import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from research.bench.dataset import Dataset, json_lines
from tidings.bench import Say
from tidings.bench.report import Figure, Heading
from tidings.families.registry import gathered, spaces_of
from tidings.model.blob import pack, unpack
from tidings.network.zones import ZoneMap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = Heading("spark", "spark")
CORES = 2
_WARM_BATCHES = 3
_SIZE_MIN = 10_000
_BATCH_SECONDS_MAX = 300.0
_RUNS = {"routed": (200_000, 5), "small": (100, 6), "notified": (10_000, 4)}
"""Changes per micro-batch, and micro-batches after the warm-up."""
CHANGES_MAX = max(batch * (batches + _WARM_BATCHES) for batch, batches in _RUNS.values())
"""The most changes that are streamed at a go."""


def measure(data: Dataset, say: Say, heading: Heading = SPARK, *, notified_max: int | None = None) -> list[Figure]:
    """Whole micro-batches, from reading the lines to the end of the trigger; medians over those after the warm-up.

    Notifications are left out where there are more subscriptions than `notified_max`.
    """
    if data.size < _SIZE_MIN:
        return []
    from tidings.spark.session import spark_session

    figure = heading.figure
    with (
        tempfile.TemporaryDirectory(prefix="tidings-bench-") as temporary,
        spark_session("bench", f"local[{CORES}]") as spark,
    ):
        work = _Work(spark, data, Path(temporary))
        say("changes to routed messages")
        seconds, _ = work.run("routed")
        routed = _RUNS["routed"][0] / median(seconds)
        say("small batches to routed messages")
        latency, _ = work.run("small")
        figures = [
            figure("routed", "JSON lines to routed messages", "changes/s", routed),
            figure("latency", f"a batch of {_RUNS['small'][0]} changes to routed messages", "s", median(latency)),
        ]
        if notified_max is None or data.size <= notified_max:
            say("changes to finished notifications")
            seconds, counts = work.run("notified")
            notified = _RUNS["notified"][0] / median(seconds)
            pairs = notified * counts["deliveries"] / counts["changes"]
            figures += [
                figure("notified", "JSON lines to finished notifications", "changes/s", notified),
                figure("pairs", "JSON lines to subscription ids", "pairs/s", pairs),
            ]
    return figures


class _Work:
    """Input files of the bench, and queries over them."""

    def __init__(self, spark: SparkSession, data: Dataset, folder: Path) -> None:
        points = data.points()
        self._spark = spark
        self._data = data
        self._folder = folder
        (folder / "points").write_bytes(pack([points]))
        self._zones = pack(ZoneMap.build(gathered([points], data.catalog), CORES, spaces_of(data.catalog)).state())

    def run(self, name: str) -> tuple[list[float], dict[str, int]]:
        """Seconds of each micro-batch after the warm-up, and counts of one of them where they are finished."""
        from tidings.spark.job import delivered, routed_messages
        from tidings.spark.plan import Plan
        from tidings.spark.sources.recorded import Recording, recorded_source

        batch, batches = _RUNS[name]
        total = batches + _WARM_BATCHES
        lines = self._folder / f"{name}.jsonl"
        self._write(lines, batch, total)
        index = self._folder / f"{name}.index"
        Recording.write(index, lines, self._folder / "points", [batch], CORES)
        job = f"{name}-{time.time_ns()}"
        plan = Plan(job, self._data.catalog_sql, {}, CORES, CORES, self._zones, index=str(index))
        source = recorded_source(self._spark, CORES)
        counts: dict[str, int] = {}
        frame = delivered(source, plan) if name == "notified" else routed_messages(source, plan)
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
        with path.open("wb") as sink:
            for changes in self._data.stream(batch * total, batch):
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
