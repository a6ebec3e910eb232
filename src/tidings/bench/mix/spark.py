"""The Spark engine on the mix bench: a replay in large micro-batches, then small ones, lines to notifications on disk."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from tidings.bench import Say
from tidings.bench.mix.cases import MixData
from tidings.bench.report import Figure, Heading

LARGE, SMALL = 20_000, 100
_LARGE_BATCHES, _SMALL_BATCHES = 4, 5
"""Numbers of micro-batches. The first large one, reported separately, also adds all subscriptions; the first small one is
not counted.
"""
CHANGES = _LARGE_BATCHES * LARGE + _SMALL_BATCHES * SMALL
_PROGRESS_SECONDS_MAX = 20.0


def measure(data: MixData, heading: Heading, say: Say) -> list[Figure]:
    """Times of whole micro-batches, from reading the lines to the end of the trigger."""
    from tidings.spark.replay import replay_on_spark
    from tidings.spark.session import spark_session

    say("replay on Spark")
    changes = [*data.filling, *data.live][:CHANGES]
    batches = [*[LARGE] * _LARGE_BATCHES, *[SMALL] * _SMALL_BATCHES]
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as temporary, spark_session("bench") as spark:
        folder = Path(temporary)
        catalog, subscriptions, lines = folder / "catalog.sql", folder / "subscriptions.jsonl", folder / "changes.jsonl"
        catalog.write_text(data.catalog_sql)
        _write(subscriptions, [*data.first, *(line for _, line in data.later)])
        _write(lines, changes)
        seconds: list[float] = []
        first_after: list[float] = []
        started = time.perf_counter()

        def note(duration_s: float) -> None:
            seconds.append(duration_s)
            first_after.append(time.perf_counter() - started)

        listener = _listener(note)
        spark.streams.addListener(listener)
        try:
            stats = replay_on_spark(
                catalog, subscriptions, lines, folder / "out.jsonl", folder / "refused.jsonl", batches, "local[*]"
            )
            taken = time.perf_counter() - started
            _await(seconds, len(batches) - 1)  # The replay stops within the last one.
        finally:
            spark.streams.removeListener(listener)
        assert stats["quarantined"] == 0
    large, small = seconds[1:_LARGE_BATCHES], seconds[_LARGE_BATCHES + 1 : len(batches)]
    figure = heading.figure
    return [
        figure("changes_per_s", f"batches of {LARGE:,}: changes", "changes/s", LARGE / median(large)),
        figure("whole.changes_per_s", "whole replay: changes", "changes/s", len(changes) / taken),
        figure(
            "notifications", "notifications per change", "notifications/change", stats["notifications"] / len(changes)
        ),
        figure("first_s", "first batch, with all subscriptions", "s", seconds[0]),
        figure("first_after_s", "first batch done after", "s", first_after[0]),
        figure("small_s", f"a batch of {SMALL}", "s", median(small)),
        figure("peak_mb", "memory at its highest, driver and Java", "MB", stats["peak_rss_mb"]),
    ]


def _write(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("wb") as sink:
        sink.writelines(line + b"\n" for line in lines)


def _listener(note: Any) -> Any:
    """A listener that calls `note` with the duration of each micro-batch that had input."""
    from pyspark.sql.streaming import StreamingQueryListener

    class Durations(StreamingQueryListener):  # type: ignore[misc]
        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            if event.progress.numInputRows:
                note(event.progress.durationMs["triggerExecution"] / 1000)

        def onQueryIdle(self, event: Any) -> None:
            pass

        def onQueryTerminated(self, event: Any) -> None:
            pass

    return Durations()


def _await(seconds: list[float], count: int) -> None:
    """Waits until `count` durations have been reported, which another thread does a little later."""
    deadline = time.monotonic() + _PROGRESS_SECONDS_MAX
    while len(seconds) < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"Spark has told of {len(seconds)} micro-batches only")
        time.sleep(0.05)
