"""A stream of NATS JetStream, as a data source `tidings-nats` of Spark: a message a row, its sequence the offset.

Reading changes nothing at the server, so a micro-batch that is read again has the same rows. An offset is the sequence of the
last message that was read, and when the stream was created: one that was deleted and made anew counts from 1 again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from tidings.model.errors import UsageError
from tidings.spark.endpoint import Endpoint
from tidings.spark.jetstream import Address, JetStream, Message, RetentionPolicy, known_options, number

FORMAT = "tidings-nats"
SCHEMA = "value binary, partition string, offset long, time timestamp"
ROWS_MAX = 100_000
BYTES_MAX = 64 << 20
_CHECK_SECONDS = 3.0
_FIELDS = pa.schema(
    [
        ("value", pa.binary()),
        ("partition", pa.string()),
        ("offset", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
    ]
)

Offset = dict[str, Any]


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    """start: `earliest` (the default), `latest`, or the sequence of the first message."""
    spark.dataSource.register(NatsSource)
    return spark.readStream.format(FORMAT).options(**_options(source, start)).load()


def check(source: Endpoint, start: str = "") -> None:
    settings = Settings.of(_options(source, start))
    with JetStream(settings.address.within(_CHECK_SECONDS)) as connection:
        settings.check(connection)


def _options(source: Endpoint, start: str) -> dict[str, str]:
    return {**source.options, "stream": source.required_path("stream"), "start": start}


_OPTIONS = ("stream", "subject", "start", "maxRowsPerTrigger", "maxBytesPerTrigger", "failOnDataLoss")
_REMOVES_INSIDE = ("max_msgs_per_subject", "allow_rollup_hdrs", "allow_msg_ttl")
"""Settings of a stream that let messages vanish from its middle."""


@dataclass(frozen=True)
class Settings:
    """What a reader needs to know. subject: only messages of it; empty: of all subjects of the stream."""

    address: Address
    stream: str
    subject: str
    start: str
    rows_max: int
    bytes_max: int
    is_loss_allowed: bool

    @staticmethod
    def of(options: Mapping[str, str]) -> Settings:
        given = known_options(options, "source", _OPTIONS)
        start = given.get("start") or "earliest"
        if start not in ("earliest", "latest") and not (start.isascii() and start.isdigit() and int(start) > 0):
            raise UsageError(f"a NATS stream is read --from earliest, latest or a sequence from 1 on, not {start!r}")
        fails = given.get("failondataloss", "true").lower()
        if fails not in ("true", "false"):
            raise UsageError(f"the option failOnDataLoss is true or false, not {fails!r}")
        return Settings(
            Address.of(given),
            given["stream"],
            given.get("subject", ""),
            start,
            number(given, "maxRowsPerTrigger", ROWS_MAX, lowest=1),
            number(given, "maxBytesPerTrigger", BYTES_MAX, lowest=1),
            fails == "false",
        )

    def check(self, connection: JetStream) -> None:
        """UsageError if the stream cannot be read, or not read again."""
        # A member of an enumeration of texts, or the text itself: nats-py has both.
        config = connection.stream(self.stream).config
        retention = RetentionPolicy(config.retention or RetentionPolicy.LIMITS)
        if retention is not RetentionPolicy.LIMITS:
            raise UsageError(
                f"stream {self.stream!r} removes messages as others take them (retention {retention.value!r}), so they could "
                "not be read again after a failure: use a stream with retention 'limits', such as one that sources this one"
            )
        inner = [name for name in _REMOVES_INSIDE if (getattr(config, name, None) or 0) > 0]
        if inner and not self.is_loss_allowed:
            raise UsageError(
                f"stream {self.stream!r} may remove messages between others ({', '.join(inner)}), which would be missed: use "
                "one without these settings, or say failOnDataLoss=false"
            )


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
        self._open: JetStream | None = None
        self._target: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def initialOffset(self) -> Offset:
        info = self._connection().stream(self._settings.stream)
        if self._settings.start == "latest":
            after = info.state.last_seq
        elif self._settings.start == "earliest":
            # An empty stream has a first sequence of 0, or, if there were messages once, the next one.
            after = max(info.state.first_seq, 1) - 1
        else:
            after = int(self._settings.start) - 1
        return {"sequence": after, "created": str(info.created)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._settings.rows_max)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        after = start["sequence"]
        state = self._state(start)
        last = state.last_seq if self._target is None else min(state.last_seq, self._target)
        if last <= after:
            return start
        if isinstance(limit, ReadMaxRows):
            last = self._within(after, last, limit.max_rows, state.bytes)
        return {**start, "sequence": last}

    def reportLatestOffset(self) -> Offset | None:
        info = self._connection().stream(self._settings.stream)
        return {"sequence": info.state.last_seq, "created": str(info.created)}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._connection().stream(self._settings.stream).state.last_seq

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if start["sequence"] >= end["sequence"]:
            return []
        return [_Range(start["sequence"], end["sequence"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        stream, subject = self._settings.stream, self._settings.subject
        with JetStream(self._settings.address) as connection:
            for messages in connection.read(stream, subject, partition.after, partition.end):
                yield _rows(stream, messages)
            # Looked at when all is read: messages may be removed meanwhile.
            self._check_loss(partition.after, connection.stream(stream).state.first_seq)

    def stop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connection(self) -> JetStream:
        if self._open is None or self._open.is_closed:
            self.stop()
            self._open = JetStream(self._settings.address)
        return self._open

    def _state(self, start: Offset) -> Any:
        """The state of the stream, which must be the one that was read so far, with all that comes next."""
        name, after = self._settings.stream, start["sequence"]
        info = self._connection().stream(name)
        is_other = start.get("created", str(info.created)) != str(info.created)
        if is_other or (info.state.last_seq < after and not self._settings.start.isdigit()):
            raise UsageError(
                f"stream {name!r} was deleted and made anew since sequence {after} was read: its messages are others. "
                "Start with a new checkpoint"
            )
        self._check_loss(after, info.state.first_seq)
        return info.state

    def _check_loss(self, after: int, first: int) -> None:
        if first > after + 1 and not self._settings.is_loss_allowed:
            raise UsageError(
                f"stream {self._settings.stream!r} has lost messages {after + 1} to {first - 1} before they were read: its "
                "limits (age, messages, bytes) are too low for a job that is behind. Start with a new checkpoint, or give "
                "the option failOnDataLoss=false to go on without them"
            )

    def _within(self, after: int, last: int, rows_max: int, stream_bytes: int) -> int:
        """The last sequence that a micro-batch takes in: rows and bytes within their limits, but one message at least."""
        connection, settings = self._connection(), self._settings
        payload_max = connection.client.max_payload

        def is_small(count: int) -> bool:
            return count <= rows_max and min(stream_bytes, count * payload_max) <= settings.bytes_max

        # The number of sequences bounds that of messages, and asking the server costs nothing but this.
        if is_small(last - after) or is_small(connection.pending(settings.stream, settings.subject, after)):
            return last
        rows = size = 0
        end = after
        for sequence, each in connection.sizes(settings.stream, settings.subject, after):
            rows, size = rows + 1, size + each
            if sequence > last:
                return last
            if rows > 1 and (rows > rows_max or size > settings.bytes_max):
                return end
            end = sequence
        return last


def _rows(stream: str, messages: list[Message]) -> pa.RecordBatch:
    columns = [
        [message.value for message in messages],
        [stream] * len(messages),
        [message.sequence for message in messages],
        [message.time for message in messages],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _FIELDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_FIELDS)
