"""Progress of a job on Spark: what Spark reports after every micro-batch."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener

from tidings.live.counters import fields
from tidings.live.progress import Batch
from tidings.spark.counters import OBSERVED, notes_of


class Listener(StreamingQueryListener):  # type: ignore[misc]
    """Calls a function with the figures of every micro-batch of one query."""

    def __init__(self, on_batch: Callable[[Batch], object]) -> None:
        self._on_batch = on_batch
        self._is_over = threading.Event()

    def wait(self, seconds: float) -> None:
        """Waits until the end of the query has been reported."""
        self._is_over.wait(seconds)

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        if event.progress.observedMetrics.get(OBSERVED) is not None:
            self._on_batch(_batch(event.progress))

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        self._is_over.set()


def _batch(progress: Any) -> Batch:
    """From Spark's progress report (`StreamingQueryProgress`)."""
    row = progress.observedMetrics[OBSERVED].asDict()
    lags = [lag for source in progress.sources if (lag := _lag(source)) is not None]
    return Batch(
        progress.batchId,
        progress.batchDuration / 1000,
        {name: int(row[name]) for name in fields()},
        sum(lags) if lags else None,
        notes_of(row),
    )


def _lag(source: Any) -> int | None:
    """How many records a source has beyond those taken, where it tells."""
    try:
        return _difference(json.loads(source.latestOffset), json.loads(source.endOffset))
    except (TypeError, ValueError):
        return None


def _difference(latest: Any, end: Any) -> int | None:
    """How far one offset is above another: a `sequence`, or numbers by topic and partition, as Kafka's source has them."""
    if not isinstance(latest, dict) or not isinstance(end, dict):
        return None
    if isinstance(latest.get("sequence"), int) and isinstance(end.get("sequence"), int):
        return max(0, int(latest["sequence"]) - int(end["sequence"]))
    topics = [(parts, end.get(topic, {})) for topic, parts in latest.items() if isinstance(parts, dict)]
    found = [
        max(0, at - taken.get(part, 0)) for parts, taken in topics for part, at in parts.items() if type(at) is int
    ]
    return sum(found) if found else None
