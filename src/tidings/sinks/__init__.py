"""Sinks: where notifications, answers and refused records go. No Spark.

A sink gets the output of one micro-batch after the other. One that was being written when the job was killed is written
again, the same to the byte: a sink tells it by its number, or by the ids of its messages.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.pipeline.live import Output

FORMATS = ("files", "nats", "webhook", "python", "places")


class Unfinished(Exception):
    """The job was asked to stop while a receiver did not answer. The micro-batch is handed over again by the next run."""


class Sink(Protocol):
    def prepare(self, run: str, asked: threading.Event) -> None:
        """Makes what the sink needs where it writes to, and marks it as the run's where that is possible.

        asked: set when the job is asked to stop: a sink that waits for a receiver then raises `Unfinished`.
        """
        ...

    def write(self, batch: int, found: Output, metrics: Mapping[str, Any]) -> None:
        """Returns when everything of a micro-batch is stored."""
        ...

    def close(self) -> None: ...


def open_sink(sink: Endpoint, run: str) -> Sink:
    """The sink. UsageError for what can be found wrong; nothing is changed. run: identity of the job, if it has one."""
    if sink.format not in FORMATS:
        raise UsageError(f"there is no sink {sink.format!r} without Spark: {', '.join(FORMATS)}, or --engine spark")
    found: Sink = import_module(f"{__name__}.{sink.format}").open_sink(sink, run)
    return found
