"""What front and engine process say to each other, over a socket pair: a length, then msgpack."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from socket import socket
from typing import Any

import msgspec

HEAD = struct.Struct("<I")
_RECEIVED_BYTES = 1 << 18
FRAME_BYTES_MAX = 1 << 31


class Settings(msgspec.Struct, tag="settings", array_like=True):
    """The first frame: what the engine is. sources, source_options: as the command takes them. load: a path, or empty.

    engine: inline, spark or gateway. master, shards: as `tidings run` takes them, for Spark. feed, feed_options, place and
    receive: as `tidings gateway` takes them, which has no catalog but that of its feed.
    """

    data: str
    catalog_sql: str
    sources: list[str]
    load: str
    retain_seconds: float
    retain_bytes: int
    engine: str = "inline"
    master: str = "local[*]"
    shards: int = 0
    source_options: list[str] = []
    feed: str = ""
    feed_options: list[str] = []
    place: str = ""
    receive: str = ""


class Changes(msgspec.Struct, tag="changes", array_like=True):
    """Lines of changes.jsonl, all of one request. producer: the partition. token: what the result is known by."""

    token: int
    producer: str
    text: bytes


class Events(msgspec.Struct, tag="events", array_like=True):
    """Subscription events, at most 1,000 of them."""

    token: int
    lines: list[bytes]


Request = Settings | Changes | Events


class Refused(msgspec.Struct, array_like=True):
    """A record of a request that changed nothing. line: from 1 on."""

    line: int
    reason: str


class Result(msgspec.Struct, array_like=True):
    """What became of a request: of changes how many were accepted, and those refused; of events an answer to each.

    On Spark accepted is how many were stored. answers: (seq, or None if refused; the reason). failed: the request was not
    taken at all, for this reason.
    """

    token: int
    accepted: int = 0
    refused: list[Refused] = []
    answers: list[tuple[int | None, str]] = []
    failed: str = ""


class Step(msgspec.Struct, tag="step", array_like=True):
    """A step of the start, in words."""

    text: str


class Mirrored(msgspec.Struct, array_like=True):
    """Subscriptions of a gateway, which come and go by its feed. created: (engine id, SQL, seq).

    is_whole: there are no others. catalog_sql: tables of the job, if they are others than before.
    """

    created: list[tuple[str, str, int]]
    ended: list[str]
    is_whole: bool = False
    catalog_sql: str = ""


class Done(msgspec.Struct, tag="done", array_like=True):
    """A micro-batch is in the log up to position `end`. counts: its figures, by the names of `live.counters`.

    expelled: (engine id, reason) of subscriptions that could not be evaluated and are there no more.
    """

    end: int
    batch: int
    passed: int
    results: list[Result]
    counts: dict[str, int] = {}
    seconds: float = 0.0
    expelled: list[tuple[str, str]] = []
    mirrored: Mirrored | None = None


class Stored(msgspec.Struct, tag="stored", array_like=True):
    """Requests are kept and will be applied, whatever happens; or could not be kept, as their results say."""

    results: list[Result]


class Stalled(msgspec.Struct, tag="stalled", array_like=True):
    """Nothing can be taken at the moment, as the disk is full. The next `Done` says that it is over."""

    reason: str


class Broken(msgspec.Struct, tag="broken", array_like=True):
    """The engine ends: one sentence that says why. is_usage: for a mistake of whoever started it."""

    reason: str
    is_usage: bool


Report = Step | Done | Stored | Stalled | Broken

_encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_report = msgspec.msgpack.Decoder(Report).decode


def frame(value: Any) -> bytes:
    data = _encode(value)
    return HEAD.pack(len(data)) + data


def requests(connection: socket) -> Iterator[Request]:
    """All frames until the other side closes."""
    waiting = bytearray()
    while True:
        while len(waiting) >= HEAD.size:
            (size,) = HEAD.unpack_from(waiting)
            if len(waiting) < HEAD.size + size:
                break
            yield decode_request(bytes(waiting[HEAD.size : HEAD.size + size]))
            del waiting[: HEAD.size + size]
        try:
            received = connection.recv(_RECEIVED_BYTES)
        except OSError:
            return
        if not received:
            return
        waiting += received
