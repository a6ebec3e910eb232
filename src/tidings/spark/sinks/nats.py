"""Subjects of NATS JetStream, to which the tasks of Spark publish: a data source `tidings-nats-sink`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.endpoint import Endpoint
from tidings.sinks.messages import Message
from tidings.sinks.nats import Settings, options_of, publish
from tidings.sinks.publisher import Publisher
from tidings.spark.sinks.messages import messages_of

FORMAT = "tidings-nats-sink"


def sink(sink: Endpoint, guard: object, run: str) -> NatsSink:
    return NatsSink(sink)


class NatsSink:
    parts, has_columns = "", False

    def __init__(self, sink: Endpoint) -> None:
        self._options = options_of(sink)
        settings = Settings.of(self._options)
        with settings.connected() as connection:
            settings.check(connection)

    def prepare(self) -> None:
        settings = Settings.of(self._options)
        with settings.connected() as connection:
            settings.prepare(connection)

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        envelopes.sparkSession.dataSource.register(NatsTarget)
        return messages_of(envelopes).writeStream.format(FORMAT).options(**self._options)


class NatsTarget(DataSource):  # type: ignore[misc]
    """`writeStream.format("tidings-nats-sink")` for rows of `messages_of`, with the options prefix, servers, .."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: Any, overwrite: bool) -> NatsWriter:
        return NatsWriter(Settings.of(self.options))


class NatsWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publishes messages and returns when the server has stored all of them."""
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is not None:
            with closing(Publisher(self._settings.address)) as publisher:
                for batch in chain([first], batches):
                    columns = (batch[name].to_pylist() for name in Message._fields)
                    publish(self._settings, publisher, map(Message._make, zip(*columns, strict=True)))
                publisher.finish()
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        return None

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        return None
