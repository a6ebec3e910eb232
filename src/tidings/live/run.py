"""A live job in this process: sources, a durable engine and a sink, until told to stop. As on Spark, without Java."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

from tidings.live import engine
from tidings.live.counters import figures
from tidings.live.engine import DurableEngine
from tidings.live.job import Job
from tidings.live.progress import Batch
from tidings.model.errors import RunError, UsageError
from tidings.pipeline.live import Output, notes_of
from tidings.signals import Stop
from tidings.sinks import Sink, Unfinished, open_sink
from tidings.sources import Source, begun, open_source
from tidings.sources import check as check_source
from tidings.sources.feed import Feed

_CHANGES, _EVENTS, _REQUESTS = "changes", "events", "requests"
_EVENTS_MAX = 1_000
"""Of a micro-batch, so that whoever creates many subscriptions at once keeps nobody waiting."""
_FILES_SECONDS = 0.1
"""From one micro-batch to the next with a sink of files, unless told otherwise: each makes a file or two for ever."""
_IDLE_SECONDS = 0.01
"""So long the job waits before it looks again, when there was nothing."""
_REQUESTS_SECONDS = 0.05
"""So often the job looks for requests of gateways."""


def check(job: Job) -> None:
    """Finds what is wrong with a job before anything is made or started: UsageError."""
    if (job.checkpoint / "plan.json").exists():
        raise UsageError(f"{job.checkpoint} is a checkpoint of a job on Spark: say --engine spark, or name a new one")
    is_known = engine.check(job.checkpoint, job.catalog_sql, has_places=job.places is not None)
    _ = job.interval
    if not is_known:
        job.check_load()
    open_sink(job.sink, job.identity).close()
    check_source(job.changes_endpoint, job.start)
    check_source(job.events_endpoint)


def run(job: Job, stop: Stop, on_batch: Callable[[Batch], object], on_step: Callable[[str], object]) -> None:
    """Runs until asked to stop or, with the trigger `once`, all is done. A micro-batch that has begun is finished first.

    on_batch: called after every micro-batch with its figures. on_step: called with each step of the start, in words.
    """
    job.checkpoint.mkdir(parents=True, exist_ok=True)
    interval = job.interval
    if interval is None:
        interval = _FILES_SECONDS if not job.trigger and job.sink.format == "files" else 0.0
    with ExitStack() as stack:
        try:
            sink = stack.enter_context(closing(open_sink(job.sink, job.identity)))
            job.identify()
            with begun(job.changes_endpoint, job.start), begun(job.events_endpoint):
                sink.prepare(job.identity, stop.asked)
                is_known = engine.check(job.checkpoint, job.catalog_sql, has_places=job.places is not None)
                on_step("restoring the state" if is_known else "making the state")
                host = _Host(job, sink, on_batch)
                stack.callback(host.close)
                changes = Feed(_opened(stack, job.changes_endpoint, job.start), host.offsets.get(_CHANGES), None)
                events = Feed(_opened(stack, job.events_endpoint), host.offsets.get(_EVENTS), _EVENTS_MAX)
                requests = None
                if job.requests_endpoint is not None:
                    source = _opened(stack, job.requests_endpoint)
                    requests = Feed(source, host.offsets.get(_REQUESTS), _EVENTS_MAX)
            if job.trigger == "once":
                changes.stop_at_present()
                events.stop_at_present()
            stop.finish_first()
            on_step("waiting for changes; Ctrl-C or SIGTERM stops")
            while not stop.asked.is_set():
                began = time.monotonic()
                is_idle = not host.step(changes, events, requests)
                if is_idle and job.trigger == "once":
                    return
                wait = began + interval - time.monotonic()
                if is_idle or wait > 0:
                    stop.asked.wait(max(wait, _IDLE_SECONDS if is_idle else 0.0))
        except Unfinished:
            on_step("stopped; the micro-batch that has begun is repeated by the next run")
        except OSError as error:
            raise RunError(
                f"{error.filename or job.checkpoint}: {error.strerror}. When that is mended, give the same command again: it "
                "goes on where it stopped"
            ) from error


def _opened(stack: ExitStack, endpoint: Any, start: str = "") -> Source:
    return stack.enter_context(closing(open_source(endpoint, start)))


class _Host:
    """The engine and the sink."""

    def __init__(self, job: Job, sink: Sink, on_batch: Callable[[Batch], object]) -> None:
        self._sink = sink
        self._on_batch = on_batch
        self._engine = DurableEngine(
            job.checkpoint, job.catalog_sql, by_commit=job.by_commit, load=job.load, places=job.places
        )
        self._asked_at = 0.0
        self._engine.restore(self._tell)

    @property
    def offsets(self) -> dict[str, Any]:
        return self._engine.offsets

    def close(self) -> None:
        self._engine.close()

    def step(self, changes: Feed, events: Feed, requests: Feed | None) -> bool:
        """Whether there was something for a micro-batch. requests: events that gateways write."""
        began = time.monotonic()
        wishes, lines = events.next(), changes.next()
        asked = None
        if requests is not None and began - self._asked_at >= _REQUESTS_SECONDS:
            self._asked_at = began
            asked = requests.next()
        if wishes is None and lines is None and not asked:
            self._engine.rest()
            return False
        feeds = {_CHANGES: changes, _EVENTS: events, **({} if requests is None else {_REQUESTS: requests})}
        offsets = {name: feed.place for name, feed in feeds.items()}
        found = self._engine.run(lines or [], [*(wishes or []), *(asked or [])], offsets)
        self._tell(self._engine.batch, found, began)
        self._engine.settle()
        for feed in feeds.values():
            feed.commit()
        return True

    def _tell(self, batch: int, found: Output, began: float | None = None) -> None:
        metrics, counts = figures(self._engine.replica, self._engine.before, found, time.time())
        self._sink.write(batch, found, metrics)
        seconds = 0.0 if began is None else time.monotonic() - began
        counts |= {"memory_bytes": self._engine.nbytes, "cache_hits": 1}
        self._on_batch(Batch(batch, seconds, counts, None, notes_of(found.answers)))
