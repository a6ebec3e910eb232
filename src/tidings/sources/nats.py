"""A stream of NATS JetStream: a message a record, its sequence the place.

Reading changes nothing at the server, so a micro-batch that is read again has the same messages. An offset is the sequence of
the last message that was read, and when the stream was created: one that was deleted and made anew counts from 1 again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.pipeline.stream_lines import place_of
from tidings.sources import Offset, Record
from tidings.sources.jetstream import (
    Address,
    JetStream,
    Message,
    RetentionPolicy,
    is_single,
    known_options,
    number,
)

ROWS_MAX = 100_000
BYTES_MAX = 64 << 20
_CHECK_SECONDS = 3.0


def check(source: Endpoint, start: str = "") -> None:
    settings = Settings.of(options_of(source, start))
    with JetStream(settings.address.within(_CHECK_SECONDS)) as connection:
        settings.check(connection)


def open_source(source: Endpoint, start: str = "") -> MessageStream:
    """start: `earliest` (the default), `latest`, or the sequence of the first message."""
    return MessageStream(Settings.of(options_of(named(source), start)))


def options_of(source: Endpoint, start: str) -> dict[str, str]:
    return {**source.options, "stream": source.required_path("stream"), "start": start}


def named(source: Endpoint) -> Endpoint:
    """A source with the name of its stream: the one that takes the option `subject`, if there is no other name."""
    if source.path or "subject" not in source.options:
        return source
    options = {
        name: value for name, value in source.options.items() if name.lower() not in ("subject", "failondataloss")
    }
    with JetStream(Address.of(known_options(options, "source", _OPTIONS))) as connection:
        return replace(source, path=connection.stream_of(source.options["subject"]))


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


class MessageStream:
    """The stream of messages."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: JetStream | None = None
        self._target: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def first(self) -> Offset:
        info = self._connection().stream(self._settings.stream)
        if self._settings.start == "latest":
            after = info.state.last_seq
        elif self._settings.start == "earliest":
            # An empty stream has a first sequence of 0, or, if there were messages once, the next one.
            after = max(info.state.first_seq, 1) - 1
        else:
            after = int(self._settings.start) - 1
        return {"sequence": after, "created": str(info.created)}

    def latest(self, start: Offset) -> Offset:
        return self.latest_within(start, self._settings.rows_max)

    def latest_within(self, start: Offset, rows_max: int | None) -> Offset:
        """As `latest`. rows_max: of the micro-batch; None: all that is there."""
        after = start["sequence"]
        state = self._state(start)
        last = state.last_seq if self._target is None else min(state.last_seq, self._target)
        if last > after and is_single(self._settings.subject):
            # Others write to the stream all the time, maybe because of what is read here.
            last = min(last, self._connection().last_of(self._settings.stream, self._settings.subject))
        if last <= after:
            return start
        if rows_max is not None:
            last = self._within(after, last, rows_max, state.bytes)
        return {**start, "sequence": last}

    def end(self) -> Offset:
        """The end of the stream."""
        info = self._connection().stream(self._settings.stream)
        return {"sequence": info.state.last_seq, "created": str(info.created)}

    def stop_at_present(self) -> None:
        self._target = self._connection().stream(self._settings.stream).state.last_seq

    def messages(self, after: int, end: int) -> Iterator[list[Message]]:
        """Messages with sequences above `after`, up to `end`."""
        stream = self._settings.stream
        with JetStream(self._settings.address) as connection:
            yield from connection.read(stream, self._settings.subject, after, end)
            # Looked at when all is read: messages may be removed meanwhile.
            self._check_loss(after, connection.stream(stream).state.first_seq)

    def records(self, start: Offset, end: Offset) -> Iterator[Record]:
        for messages in self.messages(start["sequence"], end["sequence"]):
            for message in messages:
                yield Record(self._settings.stream, place_of(message.sequence), message.time, message.value)

    def commit(self, end: Offset) -> None:
        """The stream keeps its messages for others."""

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connection(self) -> JetStream:
        if self._open is None or self._open.is_closed:
            self.close()
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
