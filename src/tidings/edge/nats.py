"""Parcels in a stream of NATS JetStream: one subject a node, `PREFIX.place.NODE`, and requests on `PREFIX.requests`.

A parcel that is larger than a message may be travels in pieces. Where gateways have a NATS server of their own, a leaf node, a
stream there sources the subjects of its gateways: reading goes on while the link to the hub is cut.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from tidings.durations import seconds_of
from tidings.edge import Arrived, Position
from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.pipeline.edge.wire import Kind, Parcel, encode
from tidings.sinks.messages import RUN_CHARACTERS, messages_of_reports
from tidings.sinks.nats import Settings, check_prefix, publish
from tidings.sinks.publisher import Publisher, Sending
from tidings.sources.jetstream import Address, Error, Follower, JetStream, Msg, known_options
from tidings.terminal import say

_ROOM_BYTES = 4096
"""Of a message, for headers and for what a piece says of itself."""
_KEEP = "24h"
_ALONE_SECONDS = 0.5
_RETRY_SECONDS = 1.0
_MINUTE = 60.0


def open_writer(endpoint: Endpoint, run: str | None) -> SubjectWriter:
    return SubjectWriter(endpoint)


def open_reader(endpoint: Endpoint, node: str) -> SubjectReader:
    given = known_options(endpoint.options, "feed", ("stream",))
    prefix = check_prefix(endpoint.required_path("prefix"))
    return SubjectReader(Address.of(given), prefix, given.get("stream", ""), node)


def requests_endpoint(endpoint: Endpoint) -> Endpoint:
    options = {name: value for name, value in endpoint.options.items() if name not in ("keep", "duplicateWindow")}
    # A request that is lost is made again.
    own = {"subject": f"{endpoint.path}.requests", "failOnDataLoss": "false"}
    return Endpoint("nats", options.pop("stream", ""), {**options, **own})


def subject_of(prefix: str, node: str) -> str:
    return f"{prefix}.place.{node.replace('/', '.')}"


class _Piece(msgspec.Struct, array_like=True):
    """A message: piece `number` of `count`, from 0 on, of the parcel that `key` names."""

    key: str
    number: int
    count: int
    data: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Piece).decode


class SubjectWriter:
    """With the options `stream` and `keep`, a stream that is not there is made, with messages of at most that age."""

    def __init__(self, endpoint: Endpoint) -> None:
        options = {**endpoint.options, "prefix": endpoint.required_path("prefix")}
        keep = seconds_of(options.pop("keep", _KEEP))
        self._settings = Settings.of(options, parts=("place.>", "requests", "answers", "refused"), keep_seconds=keep)
        self._publisher: Publisher | None = None
        self._run = ""
        with self._settings.connected() as connection:
            self._settings.check(connection)

    def prepare(self, run: str, asked: threading.Event) -> None:
        self._run = run
        with self._settings.connected() as connection:
            self._settings.prepare(connection)

    def write(self, parcels: Sequence[Parcel]) -> None:
        if not parcels:
            return
        try:
            publisher = self._connected()
            size = publisher.payload_max - _ROOM_BYTES
            publisher.send([piece for parcel in parcels for piece in self._pieces(parcel, size)])
            publisher.finish()
        except UsageError:
            # What it has not sent, whoever tries again gives once more.
            self.close()
            raise

    def report(self, batch: int, reports: Mapping[str, bytes], metrics: Mapping[str, Any]) -> None:
        if messages := messages_of_reports(self._run[:RUN_CHARACTERS], reports):
            publish(self._settings, self._connected(), messages)
            self._connected().finish()

    def _connected(self) -> Publisher:
        if self._publisher is None:
            self._publisher = Publisher(self._settings.address)
        return self._publisher

    def _pieces(self, parcel: Parcel, size: int) -> Iterator[Sending]:
        data = encode(parcel, self._run)
        # Pieces of different texts of one parcel, written before and after a crash, are not to be put together.
        key = f"{self._run[:8]}/{parcel.node}/{parcel.batch}/{int(parcel.kind is Kind.BASE)}/{zlib.crc32(data):08x}"
        subject = subject_of(self._settings.prefix, parcel.node)
        cuts = range(0, len(data), size)
        for number, cut in enumerate(cuts):
            piece = _Piece(key, number, len(cuts), data[cut : cut + size])
            yield Sending(subject, f"{key}#{number}", _encode(piece), is_ordered=True)

    def close(self) -> None:
        if self._publisher is not None:
            self._publisher.close()
            self._publisher = None


class SubjectReader:
    """A node's subject. The server may be away for any time: it is waited for."""

    def __init__(self, address: Address, prefix: str, stream: str, node: str) -> None:
        self._address, self._prefix, self._node = address, prefix, node
        self._subject = subject_of(prefix, node)
        self._connection = JetStream(address)
        try:
            self._stream = stream or self._connection.stream_of(self._subject)
        except UsageError as error:
            raise UsageError(f"{error}: is the job's sink places:nats:{prefix}, and was it started?") from None
        self._created = ""
        self._follower: Follower | None = None
        self._given: Position | None = None
        """Behind the last parcel that was given out."""
        self._pieces: list[_Piece] = []
        self._complained_at = -_MINUTE

    @contextmanager
    def alone(self) -> Iterator[None]:
        own = [time.time(), secrets.token_hex(8)]
        subject = f"tidings-alone.{self._subject}"
        others: list[list[Any]] = []

        async def answer(msg: Msg) -> None:
            if msg.reply:
                await connection.client.publish(msg.reply, json.dumps(own).encode())

        async def hear(msg: Msg) -> None:
            others.append(json.loads(msg.data))

        connection = JetStream(self._address)
        try:
            client = connection.client
            connection.run(client.subscribe(subject, cb=answer))
            inbox = client.new_inbox()
            connection.run(client.subscribe(inbox, cb=hear))
            connection.run(client.publish(subject, b"", inbox))
            connection.run(client.flush())
            time.sleep(_ALONE_SECONDS)
            # Of two that begin at the same time, one stays.
            if any(other != own and other < own for other in others):
                raise UsageError(
                    f"the place {self._node!r} has a gateway or broker already: one of a name may run at a time"
                )
            yield
        finally:
            connection.close()

    def read(self, after: Position | None, wait_seconds: float) -> Sequence[Arrived]:
        try:
            return self._read(after, wait_seconds)
        except UsageError as error:
            # Whoever follows goes on: to be away is no mistake of anybody, and may last.
            if time.monotonic() - self._complained_at >= _MINUTE:
                self._complained_at = time.monotonic()
                say(f"waiting for NATS: {error}")
            time.sleep(min(wait_seconds, _RETRY_SECONDS))
            return []

    def _read(self, after: Position | None, wait_seconds: float) -> Sequence[Arrived]:
        if self._connection.is_closed:
            self._follower = None
            self._connection.close()
            self._connection = JetStream(self._address.within(_RETRY_SECONDS))
        if self._follower is None or self._given != after:
            self._follower = self._followed(after)
        found = []
        for message in self._follower.next(wait_seconds):
            piece = _decode(message.value)
            if self._pieces and (piece.key, piece.number) != (self._pieces[-1].key, self._pieces[-1].number + 1):
                self._pieces = []
            if piece.number == len(self._pieces):
                self._pieces.append(piece)
            if len(self._pieces) == piece.count:
                data = b"".join(each.data for each in self._pieces)
                self._given = {"sequence": message.sequence, "created": self._created}
                found.append(Arrived(self._given, data))
                self._pieces = []
        return found

    def _followed(self, after: Position | None) -> Follower:
        """Begins behind a position; with the first message of a stream that was made anew."""
        if self._follower is not None:
            self._follower.close()
        self._created = str(self._connection.stream(self._stream).created)
        start = 0 if after is None or after["created"] != self._created else after["sequence"]
        self._pieces, self._given = [], after
        return Follower(self._connection, self._stream, self._subject, start)

    def ask(self, lines: Sequence[bytes]) -> None:
        context = self._connection.context
        try:
            self._connection.run(context.publish(f"{self._prefix}.requests", b"\n".join(lines)))
        except (Error, OSError, TimeoutError) as error:
            raise self._connection.explained(error, f"publishing to {self._prefix}.requests") from None

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()
        self._connection.close()
