"""What travels to a gateway or broker: packs of micro-batches, and bases, as bytes.

A *parcel* is everything for one place of one micro-batch:

    rows      a `Pack`: rows, and creations and drops of subscriptions; the place evaluates
    notices   finished notifications; the place evaluates nothing
    base      everything a place holds, after the micro-batch: for one that has nothing, or has missed something

Parcels of a place form a chain: each names the micro-batch of the one before it. A base of the same micro-batch may follow a
parcel; whoever has taken that one passes the base over, unless it says that it must be taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import msgspec
from msgspec import structs

from tidings.model.blob import pack, unpack
from tidings.model.errors import TidingsError
from tidings.model.notification import NotificationBatch
from tidings.pipeline.edge.pack import Pack
from tidings.pipeline.registrar import Answer

FORMAT = 1
"""Raised when a change makes older parcels unreadable."""


class Kind(IntEnum):
    ROWS = 0
    NOTICES = 1
    BASE = 2


class Query(NamedTuple):
    """A subscription, for whoever shows it to people. place: the gateway it is at."""

    id: str
    sql: str
    place: str


class Parcel(msgspec.Struct, array_like=True, frozen=True):
    """batch: number of the micro-batch. previous: that of the parcel before, 0 if this is the first one of the place.

    body: by kind. passed: the seq up to which the place is told everything. answers: to events of the place's
    subscriptions. created: queries of the subscriptions that these events create. ended: those that are there no more, with
    the gateway each was at.
    """

    kind: Kind
    run: str
    node: str
    batch: int
    previous: int
    passed: int
    body: bytes
    answers: Sequence[Answer] = ()
    created: Sequence[Query] = ()
    ended: Sequence[tuple[str, str]] = ()
    is_compulsory: bool = False
    """Of a base: it must be taken even by who has missed nothing, because what was sent before does not lead there."""
    asked: Sequence[str] = ()
    """To a broker: places and brokers below it that have asked for all of their state."""
    snapshots: bytes = b""
    """Packed answers of the subscriptions there, where notices are sent."""


class Base(msgspec.Struct, array_like=True, frozen=True):
    """The body of a base. replica: `PartialReplica.dump`, empty where notices are sent. queries: of all living subscriptions.

    notices: packed snapshots of all answers, for places that are sent notices. names: of the gateways below a broker, or that
    of the gateway itself.
    """

    catalog_sql: str
    by_commit: bool
    replica: Sequence[bytes]
    queries: Sequence[Query]
    notices: bytes = b""
    names: Sequence[str] = ()


_encoder = msgspec.msgpack.Encoder()
_decode = msgspec.msgpack.Decoder(Parcel).decode
_decode_base = msgspec.msgpack.Decoder(Base).decode


def encode(parcel: Parcel, run: str | None = None) -> bytes:
    """run: identity of the job that sends it, if it is not in the parcel."""
    return bytes([FORMAT]) + _encoder.encode(parcel if run is None else structs.replace(parcel, run=run))


def decode(data: bytes) -> Parcel:
    if data[:1] != bytes([FORMAT]):
        raise TidingsError(
            f"a parcel has format {data[0] if data else 'none'}, this version of Tidings reads {FORMAT}: let the job and its "
            "gateways have the same version"
        )
    try:
        return _decode(data[1:])
    except msgspec.MsgspecError as error:
        raise TidingsError(f"a parcel is damaged: {error}") from None


def pack_body(found: Pack) -> bytes:
    return _encoder.encode(
        [found.base, found.passed, found.count, found.items, pack(list(found.points)) if found.points else b""]
    )


def pack_of(body: bytes) -> Pack:
    base, passed, count, items, points = msgspec.msgpack.decode(body)
    return Pack(base, passed, count, items, tuple(unpack(points)) if points else ())


def notices_body(told: NotificationBatch) -> bytes:
    return pack(told) if len(told) else b""


def notices_of(body: bytes) -> NotificationBatch | None:
    """None if nobody is told anything."""
    found: NotificationBatch | None = unpack(body) if body else None
    return found


def base_body(base: Base) -> bytes:
    return _encoder.encode(base)


def base_of(body: bytes) -> Base:
    return _decode_base(body)
