"""Sinks of a live run, one a file, each with a function `sink` that gives a `Sink`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.spark.endpoint import Endpoint
from tidings.spark.stream import notifications_of

_MODULES = ("files", "kafka", "nats")


class Sink(Protocol):
    """Where the output of a run goes.

    parts: a folder where replicas write notifications themselves; if empty, notifications are rows of the envelopes.
    """

    @property
    def parts(self) -> str: ...

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        """A writer that is ready to start, but for checkpoint and trigger."""
        ...


def open_sink(sink: Endpoint, guard: AbstractContextManager[None]) -> Sink:
    """The sink. guard: a context in which a micro-batch is written, where the sink writes it itself."""
    if sink.format in _MODULES:
        found: Sink = import_module(f"{__name__}.{sink.format}").sink(sink, guard)
        return found
    return SparkSink(sink)


class SparkSink:
    """Any sink of Spark's. Gets the columns of `tidings.spark.notifications`."""

    parts = ""

    def __init__(self, sink: Endpoint) -> None:
        self._sink = sink

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        writer = notifications_of(envelopes).writeStream.format(self._sink.format).options(**self._sink.options)
        return writer.option("path", self._sink.path) if self._sink.path else writer
