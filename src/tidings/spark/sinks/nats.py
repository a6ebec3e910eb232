"""Subjects of NATS JetStream, to which the tasks of Spark publish: a data source `tidings-nats-sink`.

Every message has an id in its header `Nats-Msg-Id`: when a micro-batch is sent again, the server drops what it stored within
its duplicate window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.model.errors import UsageError
from tidings.spark.endpoint import Endpoint
from tidings.spark.jetstream import Address, Error, JetStream, NotFoundError, StreamConfig, known_options, number
from tidings.spark.publisher import Publisher, Sending
from tidings.spark.sinks.messages import Message, messages_of, token
from tidings.spark.stream import NOTIFICATION

FORMAT = "tidings-nats-sink"
_SUBJECTS = {"answer": "answers", "refused": "refused", "warning": "refused"}
_CHECK_SECONDS = 3.0
_DUPLICATES_SECONDS = 120
_HEADER_BYTES = 4096


def sink(sink: Endpoint, guard: object, run: str) -> NatsSink:
    return NatsSink(sink)


class NatsSink:
    parts = ""

    def __init__(self, sink: Endpoint) -> None:
        self._options = {**sink.options, "prefix": sink.required_path("prefix")}
        settings = Settings.of(self._options)
        with JetStream(settings.address.within(_CHECK_SECONDS)) as connection:
            settings.check(connection)

    def prepare(self) -> None:
        settings = Settings.of(self._options)
        with JetStream(settings.address.within(_CHECK_SECONDS)) as connection:
            settings.prepare(connection)

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        envelopes.sparkSession.dataSource.register(NatsTarget)
        return messages_of(envelopes).writeStream.format(FORMAT).options(**self._options)


@dataclass(frozen=True)
class Settings:
    """What a writer needs to know. stream: made if there is none; empty: some stream takes the subjects already."""

    address: Address
    prefix: str
    stream: str
    duplicates_seconds: int

    @staticmethod
    def of(options: Mapping[str, str]) -> Settings:
        given = known_options(options, "sink", ("prefix", "stream", "duplicateWindow"))
        prefix = given["prefix"]
        parts = prefix.split(".")
        if not all(parts) or any(sign.isspace() or not sign.isprintable() or sign in "*>" for sign in prefix):
            raise UsageError(f"{prefix!r} is no subject of NATS: names between dots, without spaces, '*' and '>'")
        window = number(given, "duplicateWindow", _DUPLICATES_SECONDS, lowest=1)
        return Settings(Address.of(given), prefix, given.get("stream", ""), window)

    def check(self, connection: JetStream) -> None:
        """UsageError if no stream takes the subjects, and none of the name is to be made."""
        try:
            if self.stream and not connection.run(self._has_stream(connection)):
                return
            for name in (f"{self.prefix}.{part}" for part in ("notifications.*", "answers", "refused")):
                try:
                    connection.run(connection.context.find_stream_name_by_subject(name))
                except NotFoundError:
                    raise UsageError(
                        f"no JetStream stream at {self.address} takes the subject {name!r}: make one with subjects "
                        f"'{self.prefix}.>', or give the option stream=NAME to have it made"
                    ) from None
        except (Error, OSError, TimeoutError) as error:
            raise connection.explained(error, f"preparing the subjects {self.prefix}.>") from None

    def prepare(self, connection: JetStream) -> None:
        """Makes the stream if one is named that is not there. UsageError if no stream takes the subjects."""
        try:
            if self.stream and not connection.run(self._has_stream(connection)):
                config = StreamConfig(
                    name=self.stream, subjects=[f"{self.prefix}.>"], duplicate_window=self.duplicates_seconds
                )
                connection.run(connection.context.add_stream(config))
        except (Error, OSError, TimeoutError) as error:
            raise connection.explained(error, f"preparing the subjects {self.prefix}.>") from None
        self.check(connection)

    async def _has_stream(self, connection: JetStream) -> bool:
        try:
            await connection.context.stream_info(self.stream)
        except NotFoundError:
            return False
        return True


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
                    publisher.send(self._sendings(batch, publisher.payload_max - _HEADER_BYTES))
                publisher.finish()
        return WriterCommitMessage()

    def _sendings(self, batch: pa.RecordBatch, bytes_max: int) -> list[Sending]:
        messages = map(Message._make, zip(*(batch[name].to_pylist() for name in Message._fields), strict=True))
        return [part for each in messages for part in sendings(self._settings.prefix, each, bytes_max)]

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        return None

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        return None


def sendings(prefix: str, message: Message, bytes_max: int) -> list[Sending]:
    """What is published for a message: itself, or pieces of it, if it is larger than the server takes.

    Piece 2 of 3 has `#2/3` behind the id. A subject of notifications is in order: each waits for the one before it.
    """
    is_ordered = message.kind == NOTIFICATION
    subject = f"{prefix}.notifications.{token(message.key)}" if is_ordered else f"{prefix}.{_SUBJECTS[message.kind]}"
    data = message.value.encode()
    if len(data) <= bytes_max:
        return [Sending(subject, message.id, data, is_ordered)]
    cuts = range(0, len(data), bytes_max)
    return [
        Sending(subject, f"{message.id}#{number}/{len(cuts)}", data[cut : cut + bytes_max], is_ordered)
        for number, cut in enumerate(cuts, 1)
    ]
