"""What keeps the end of a run and the writing of a micro-batch apart."""

from __future__ import annotations

import threading
import time

from pyspark.sql.streaming import StreamingQuery

from tidings.spark.job import stop_blocked

_IDLE_SECONDS = 10.0


class Guard:
    """Held while a micro-batch is written, and when the query is stopped: a micro-batch is written whole or not at all.

    Where Spark itself writes, nobody holds it: the query is stopped when no micro-batch is under way, if there is such a
    moment within some seconds. asked: set when the run is asked to stop.
    """

    def __init__(self, asked: threading.Event) -> None:
        self.asked = asked
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
            deadline = time.monotonic() + _IDLE_SECONDS
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
                time.sleep(0.005)
        self.__enter__()
        stop_blocked(query, self._end)

    def _end(self) -> None:
        self._is_over = True
        self._lock.release()
