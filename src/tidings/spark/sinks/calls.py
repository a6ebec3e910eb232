"""Sinks that hand over one message after the other (`tidings.sinks.calls`), called by Spark's driver."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings import sinks
from tidings.endpoint import Endpoint
from tidings.sinks.calls import CallingSink
from tidings.sinks.messages import Message
from tidings.spark.sinks.guard import Guard
from tidings.spark.sinks.messages import messages_of


def sink(sink: Endpoint, guard: Guard, run: str) -> CallsSink:
    return CallsSink(sink, guard, run)


class CallsSink:
    parts, has_columns = "", False

    def __init__(self, sink: Endpoint, guard: Guard, run: str) -> None:
        found = sinks.open_sink(sink, run)
        assert isinstance(found, CallingSink)
        self._sink, self._guard = found, guard

    def prepare(self) -> None:
        # Messages have their ids from the query.
        self._sink.prepare("", self._guard.asked)

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        return messages_of(envelopes).writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch: int) -> None:
        with self._guard:
            self._sink.hand_over(Message(*row) for row in frame.collect())
