"""Subjects of NATS JetStream.

Every message has an id in its header `Nats-Msg-Id`: when a micro-batch is sent again, the server drops what it stored within
its duplicate window.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.pipeline.live import Output
from tidings.sinks.messages import NOTIFICATION, RUN_CHARACTERS, Message, messages_of, token
from tidings.sinks.publisher import Publisher, Sending
from tidings.sources.jetstream import Address, Error, JetStream, NotFoundError, StreamConfig, known_options, number

_SUBJECTS = {"answer": "answers", "refused": "refused", "warning": "refused"}
_CHECK_SECONDS = 3.0
_DUPLICATES_SECONDS = 120
_HEADER_BYTES = 4096
_SENT_AT_A_TIME = 10_000
_PARTS = ("notifications.*", "answers", "refused")


def open_sink(sink: Endpoint, run: str) -> NatsSink:
    return NatsSink(Settings.of(options_of(sink)))


def check_prefix(prefix: str) -> str:
    """UsageError if it cannot be the beginning of subjects."""
    if not all(prefix.split(".")) or any(sign.isspace() or not sign.isprintable() or sign in "*>" for sign in prefix):
        raise UsageError(f"{prefix!r} is no subject of NATS: names between dots, without spaces, '*' and '>'")
    return prefix


def options_of(sink: Endpoint) -> dict[str, str]:
    return {**sink.options, "prefix": sink.required_path("prefix")}


@dataclass(frozen=True)
class Settings:
    """What a writer needs to know. stream: made if there is none; empty: some stream takes the subjects already.

    parts: of the subjects, behind the prefix. keep_seconds: age of the oldest messages of a stream that is made; 0: any.
    """

    address: Address
    prefix: str
    stream: str
    duplicates_seconds: int
    parts: Sequence[str]
    keep_seconds: float

    @staticmethod
    def of(options: Mapping[str, str], parts: Sequence[str] = _PARTS, keep_seconds: float = 0.0) -> Settings:
        given = known_options(options, "sink", ("prefix", "stream", "duplicateWindow"))
        window = number(given, "duplicateWindow", _DUPLICATES_SECONDS, lowest=1)
        prefix = check_prefix(given["prefix"])
        return Settings(Address.of(given), prefix, given.get("stream", ""), window, parts, keep_seconds)

    def connected(self) -> JetStream:
        """A connection for `check` and `prepare`, which must be there soon."""
        return JetStream(self.address.within(_CHECK_SECONDS))

    def check(self, connection: JetStream) -> None:
        """UsageError if no stream takes the subjects, and none of the name is to be made."""
        try:
            if self.stream and not connection.run(self._has_stream(connection)):
                return
            for name in (f"{self.prefix}.{part}" for part in self.parts):
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
                    name=self.stream,
                    subjects=[f"{self.prefix}.>"],
                    duplicate_window=self.duplicates_seconds,
                    max_age=self.keep_seconds,
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


def publish(settings: Settings, publisher: Publisher, messages: Iterable[Message]) -> None:
    """Hands messages to a publisher, whose `finish` returns when the server has stored all of them."""
    bytes_max, waiting = publisher.payload_max - _HEADER_BYTES, iter(messages)
    while some := list(islice(waiting, _SENT_AT_A_TIME)):
        publisher.send([part for each in some for part in sendings(settings.prefix, each, bytes_max)])


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


class NatsSink:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._run = ""
        self._publisher: Publisher | None = None
        with settings.connected() as connection:
            settings.check(connection)

    def prepare(self, run: str, asked: threading.Event) -> None:
        self._run = run[:RUN_CHARACTERS]
        with self._settings.connected() as connection:
            self._settings.prepare(connection)

    def write(self, batch: int, found: Output, metrics: Mapping[str, Any]) -> None:
        if messages := messages_of(self._run, found):
            if self._publisher is None:
                self._publisher = Publisher(self._settings.address)
            publish(self._settings, self._publisher, messages)
            self._publisher.finish()

    def close(self) -> None:
        if self._publisher is not None:
            self._publisher.close()
