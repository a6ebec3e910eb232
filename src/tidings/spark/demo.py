"""The demo's pipeline: a market feed written to files, Spark reading them, and figures of every micro-batch."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tidings.model.blob import unpack
from tidings.spark import envelope as kinds
from tidings.spark.session import spark_session
from tidings.spark.sinks.parts import add_metrics
from tidings.spark.sources.files import files
from tidings.spark.stream import envelopes, plan_of
from tidings.workloads.market import MarketFeed

_TICK_SECONDS = 0.5
_OPTIONS = {"maxFilesPerTrigger": "8", "cleanSource": "delete"}
_BACKLOG_FILES_MAX = 40


@dataclass
class BatchView:
    """Figures of one micro-batch for the screen.

    seconds: since the micro-batch before. lag_seconds: as from `_Feed.lag`. samples: a few notification lines.
    """

    batch: int
    seconds: float
    lag_seconds: float
    metrics: dict[str, Any]
    samples: list[str]


@dataclass
class _Feed:
    """Writes the next changes to a new file every tick, unless _BACKLOG_FILES_MAX files are not yet processed.

    rate: changes per second. written: (changes up to its end, time written) of every file not yet processed.
    """

    feed: MarketFeed
    folder: Path
    rate: int
    written: deque[tuple[int, float]] = field(default_factory=deque)
    files: int = 0
    changes: int = 0
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts to write a file every tick; does nothing if started already."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_TICK_SECONDS):
            if len(self.written) < _BACKLOG_FILES_MAX:
                self.tick()

    def tick(self) -> None:
        lines = self.feed.changes(max(1, int(self.rate * _TICK_SECONDS)))
        partial = self.folder / f".{self.files}.partial"
        partial.write_bytes(b"\n".join(lines))
        self.changes += len(lines)
        self.written.append((self.changes, time.monotonic()))
        partial.rename(self.folder / f"{self.files:09d}.jsonl")
        self.files += 1

    def lag(self, passed: int) -> float:
        """Seconds since the oldest file within the first `passed` changes was written; these files count as processed."""
        lag = 0.0
        while self.written and self.written[0][0] <= passed:
            lag = max(lag, time.monotonic() - self.written.popleft()[1])
        return lag


def run_demo(
    subscriptions: int,
    rate: int,
    seconds: float | None,
    seed: int,
    master: str,
    on_step: Callable[[str], None],
    on_batch: Callable[[BatchView], object],
) -> int:
    """Runs the pipeline until `seconds` have passed since the first notification (None: until interrupted)."""
    feed = MarketFeed(seed)
    with tempfile.TemporaryDirectory(prefix="tidings-demo-") as temporary, ThreadPoolExecutor(1) as aside:
        root = Path(temporary)
        for name in ("changes", "subscriptions", "parts"):
            (root / name).mkdir()
        on_step(f"starting Spark with {subscriptions:,} subscriptions")
        writer = _Feed(feed, root / "changes", rate)
        wished = aside.submit(_write_subscriptions, feed, subscriptions, root / "subscriptions")
        with spark_session("tidings demo", master, root / "spark.log", starts_workers=True) as spark:
            wished.result()
            writer.tick()
            changes, wishes = (files(spark, str(root / name), _OPTIONS) for name in ("changes", "subscriptions"))
            watch = _Watch(writer, root / "parts", on_batch)
            query = (
                envelopes(changes, wishes, plan_of(spark, feed.catalog_sql, parts=str(root / "parts")))
                .writeStream.foreachBatch(watch.batch)
                .option("checkpointLocation", str(root / "checkpoint"))
                .start()
            )
            on_step("waiting for the first micro-batch")
            try:
                while query.isActive and not (seconds and watch.seconds() >= seconds):
                    time.sleep(0.1)
                if not query.isActive:
                    raise RuntimeError(f"the Spark query stopped: {query.exception()}")
            except KeyboardInterrupt:
                on_step("stopping")
            finally:
                writer.stop()
                query.stop()
    return watch.notifications


def _write_subscriptions(feed: MarketFeed, count: int, folder: Path) -> None:
    partial = folder / ".partial"
    partial.write_bytes(b"\n".join(feed.subscriptions(count)))
    partial.rename(folder / "initial.jsonl")


class _Watch:
    """Turns the output of each micro-batch into a `BatchView` and calls `on_batch` with it."""

    def __init__(self, writer: _Feed, parts: Path, on_batch: Callable[[BatchView], object]) -> None:
        self._writer = writer
        self._parts = parts
        self._on_batch = on_batch
        self._first: float | None = None
        self._last = time.monotonic()
        self._changes = 0
        self.notifications = 0

    def seconds(self) -> float:
        """Seconds since the first micro-batch with notifications of changes came out."""
        return 0.0 if self._first is None else time.monotonic() - self._first

    def batch(self, frame: DataFrame, batch_id: int) -> None:
        metrics: dict[str, Any] = {}
        samples: list[str] = []
        for row in frame.select("kind", "blob").collect():
            if row["kind"] == kinds.METRICS:
                add_metrics(metrics, unpack(bytes(row["blob"])))
            elif row["kind"] == kinds.PART:
                # The demo shows samples only; nothing reads the files that workers write.
                (self._parts / bytes(row["blob"]).decode()).unlink()
            elif row["kind"] == kinds.SAMPLES:
                samples.extend(unpack(bytes(row["blob"])))
        # Feed starts after the first micro-batch: earlier changes would only measure how long Spark takes to start.
        self._writer.start()
        now = time.monotonic()
        self._changes += metrics.get("changes", 0)
        self.notifications += sum(metrics.get("notifications", {}).values())
        if samples and self._first is None:
            self._first = now
        view = BatchView(batch_id, now - self._last, self._writer.lag(self._changes), metrics, samples)
        self._last = now
        self._on_batch(view)
