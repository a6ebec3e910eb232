"""A stream of NATS JetStream, as a data source `tidings-nats` of Spark: a message a row, its sequence the offset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from tidings.endpoint import Endpoint
from tidings.sources import Offset
from tidings.sources.jetstream import Message
from tidings.sources.nats import MessageStream, Settings, named, options_of

FORMAT = "tidings-nats"
SCHEMA = "value binary, partition string, offset long, time timestamp"
_FIELDS = pa.schema(
    [
        ("value", pa.binary()),
        ("partition", pa.string()),
        ("offset", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
    ]
)


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    """start: `earliest` (the default), `latest`, or the sequence of the first message."""
    spark.dataSource.register(NatsSource)
    return spark.readStream.format(FORMAT).options(**options_of(named(source), start)).load()


class NatsSource(DataSource):  # type: ignore[misc]
    """`spark.readStream.format("tidings-nats")` with the options stream, servers, subject, .. (docs/streaming.md)."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> NatsReader:
        return NatsReader(Settings.of(self.options))


@dataclass
class _Range(InputPartition):  # type: ignore[misc]
    """Messages with sequences above `after`, up to `end`."""

    after: int
    end: int


class NatsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stream = MessageStream(settings)

    def initialOffset(self) -> Offset:
        return self._stream.first()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._settings.rows_max)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        return self._stream.latest_within(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def reportLatestOffset(self) -> Offset | None:
        return self._stream.end()

    def prepareForTriggerAvailableNow(self) -> None:
        self._stream.stop_at_present()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start["sequence"] >= end["sequence"]:
            return []
        return [_Range(start["sequence"], end["sequence"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        for messages in self._stream.messages(partition.after, partition.end):
            yield _rows(self._settings.stream, messages)

    def stop(self) -> None:
        self._stream.close()


def _rows(stream: str, messages: list[Message]) -> pa.RecordBatch:
    columns = [
        [message.value for message in messages],
        [stream] * len(messages),
        [message.sequence for message in messages],
        [message.time for message in messages],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _FIELDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_FIELDS)
