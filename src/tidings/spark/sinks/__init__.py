"""Sinks of a live run, one a file, each with a function `sink` that gives a `Sink`."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.spark.sinks.guard import Guard
from tidings.spark.stream import notifications_of, outputs_of

FORMATS = ("files", "kafka", "nats", "webhook", "python", "places")
_MODULES = {"webhook": "calls", "python": "calls"}


class Sink(Protocol):
    """Where the output of a run goes.

    parts: a folder where replicas write notifications themselves; if empty, notifications are rows of the envelopes.
    has_columns: there they are packed columns, instead of lines.
    """

    @property
    def parts(self) -> str: ...

    @property
    def has_columns(self) -> bool: ...

    def prepare(self) -> None:
        """Makes what the sink needs where it writes to, and marks it as the run's where that is possible."""
        ...

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        """A writer that is ready to start, but for checkpoint and trigger."""
        ...


def open_sink(sink: Endpoint, guard: Guard, run: str) -> Sink:
    """The sink. UsageError for what can be found wrong without Spark; nothing is changed.

    guard: a context in which a micro-batch is written, where the sink writes it itself. run: identity, if it has one.
    """
    if sink.format in FORMATS:
        found: Sink = import_module(f"{__name__}.{_MODULES.get(sink.format, sink.format)}").sink(sink, guard, run)
        return found
    return SparkSink(sink)


class SparkSink:
    """Any sink of Spark's. Gets rows (kind, value) of all that comes out, as `tidings.spark.outputs` gives them.

    With the option `only=notifications` it gets the columns of `tidings.spark.notifications`, and answers and refused
    records are not kept.
    """

    parts, has_columns = "", False

    def __init__(self, sink: Endpoint) -> None:
        self._path, self._format = sink.path, sink.format
        self._options = dict(sink.options)
        only = self._options.pop("only", "")
        if only not in ("", "notifications"):
            raise UsageError(f"the option 'only' of a sink is notifications, not {only!r}")
        self._is_narrow = bool(only)

    def prepare(self) -> None:
        pass

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        found = notifications_of(envelopes) if self._is_narrow else outputs_of(envelopes)
        writer = found.writeStream.format(self._format).options(**self._options)
        return writer.option("path", self._path) if self._path else writer
