"""The demo's pipeline: a market feed written to files, Spark reading them, and figures of every micro-batch."""

from __future__ import annotations

import json
import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tidings.model.blob import unpack
from tidings.signals import aside
from tidings.sinks.parts import add_metrics
from tidings.spark import envelope as kinds
from tidings.spark.failures import failure_of
from tidings.spark.session import spark_session
from tidings.spark.sources.files import files
from tidings.spark.stream import envelopes, plan_of
from tidings.workloads.market import MarketFeed
from tidings.workloads.market.customers import CUSTOMERS, Reasons

_TICK_SECONDS = 0.5
_OPTIONS = {"maxFilesPerTrigger": "8", "cleanSource": "delete"}
_BACKLOG_FILES_MAX = 40
_NAMES = "|".join(customer.name for customer in CUSTOMERS)
_OF_CUSTOMERS = re.compile(rf'^\{{"subscription": "(?:{_NAMES})", .*$'.encode(), re.MULTILINE)


@dataclass
class BatchView:
    """Figures of one micro-batch for the screen.

    seconds: since the micro-batch before. lag_seconds: as from `_Feed.lag`. told: what customers were told, and why, as
    (name, words), in the order of the changes.
    """

    batch: int
    seconds: float
    lag_seconds: float
    changes: int
    notifications: int
    told: list[tuple[str, str]]


@dataclass
class _Feed:
    """Writes the next changes to a new file every tick, unless _BACKLOG_FILES_MAX files are not yet processed.

    rate: changes per second. written: (changes up to its end, time written) of every file not yet processed. reasons: sees
    every change.
    """

    feed: MarketFeed
    reasons: Reasons
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
        self.reasons.see(lines)
        unfinished = self.folder / f".{self.files}.partial"
        unfinished.write_bytes(b"\n".join(lines))
        self.changes += len(lines)
        self.written.append((self.changes, time.monotonic()))
        unfinished.rename(self.folder / f"{self.files:09d}.jsonl")
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
    """Runs the pipeline until `seconds` have passed since the first notification (None: until interrupted).

    on_step: called with each step of the start, in words. Returns the number of notifications.
    """
    feed = MarketFeed(seed)
    # Workers that were killed may have left a file behind that is not yet closed.
    temporary = tempfile.TemporaryDirectory(prefix="tidings-demo-", ignore_cleanup_errors=True)
    with temporary as folder:
        root = Path(folder)
        for name in ("changes", "subscriptions", "parts"):
            (root / name).mkdir()
        writer = _Feed(feed, Reasons(), root / "changes", rate)
        wished = aside(partial(_write_subscriptions, feed, subscriptions, root / "subscriptions"))
        with spark_session("tidings demo", master, root / "spark.log", starts_workers=True, on_step=on_step) as spark:
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
            on_step(f"registering {subscriptions:,} subscriptions, and filling the tables")
            try:
                while query.isActive and not (seconds and watch.seconds() >= seconds):
                    time.sleep(0.1)
                if not query.isActive:
                    raise failure_of(query, root)
                query.stop()
            finally:
                writer.stop()
    return watch.notifications


def _write_subscriptions(feed: MarketFeed, count: int, folder: Path) -> None:
    """The customers, and so many others that there are `count` subscriptions."""
    unfinished = folder / ".partial"
    named = [json.dumps({"id": customer.name, "sql": customer.sql}).encode() for customer in CUSTOMERS]
    unfinished.write_bytes(b"\n".join([*named, *feed.subscriptions(max(0, count - len(named)))]))
    unfinished.rename(folder / "initial.jsonl")


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
        lines: list[bytes] = []
        for row in frame.select("kind", "blob").collect():
            if row["kind"] == kinds.METRICS:
                add_metrics(metrics, unpack(bytes(row["blob"])))
            elif row["kind"] == kinds.PART:
                part = self._parts / bytes(row["blob"]).decode()
                if part.suffix == f".{kinds.NOTIFICATIONS}":
                    lines += _OF_CUSTOMERS.findall(part.read_bytes())
                # Nothing else reads the files that workers write.
                part.unlink()
        # Feed starts after the first micro-batch: earlier changes would only measure how long Spark takes to start.
        self._writer.start()
        now = time.monotonic()
        notifications = sum(metrics.get("notifications", {}).values())
        self._changes += metrics.get("changes", 0)
        self.notifications += notifications
        told = self._told(lines)
        if told and self._first is None:
            self._first = now
        lag = self._writer.lag(self._changes)
        view = BatchView(batch_id, now - self._last, lag, metrics.get("changes", 0), notifications, told)
        self._last = now
        self._on_batch(view)

    def _told(self, lines: list[bytes]) -> list[tuple[str, str]]:
        """What the customers were told after their first snapshots."""
        found = sorted((json.loads(line) for line in lines), key=lambda told: int(told["seq"]))
        return [
            (told["subscription"], words)
            for told in found
            if not told["snapshot"]
            for words in self._writer.reasons.words(told["subscription"], told["changes"])
        ]
