"""What brokers, and the server, say to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tidings.kernels.arrays import I64

SERVER = -1
"""The number of the server among brokers 0, 1, .."""
HEADER_BYTES = 32
"""Id, version, payload id, source and flags of a message."""
CONTROL_BYTES = 24
"""An acknowledgement, a question, or what comes with the payload of an answer."""
_LOW, _HIGH = -(2**63), 2**63 - 1


@dataclass(eq=False, slots=True)
class Event:
    """What the server publishes: a payload for everybody in a region, the union of the closed boxes lo, hi [b, D]."""

    seq: int
    """Its number, which rises from event to event."""
    lo: I64
    hi: I64
    payload_id: int
    payload_bytes: int
    size: int = 0
    """Bytes of a message without payload; 0: counted from the boxes."""
    version: int = 0
    """Of the zone map by which it is routed; set when it is published."""
    route: Route = field(default_factory=lambda: Route({}, {}))

    def __post_init__(self) -> None:
        if not self.size:
            # Ends that bound nothing are not sent.
            ends = np.count_nonzero(self.lo != _LOW) + np.count_nonzero(self.hi != _HIGH)
            self.size = HEADER_BYTES + 8 * int(ends)


class Route(NamedTuple):
    """The brokers that a message of one version passes, as every broker can derive it from the zone map and the region."""

    parts: dict[int, tuple[int, ...]]
    """Broker, or `SERVER` -> those it tells."""
    copies: dict[int, int]
    """Unicast: broker -> messages for its points; otherwise empty."""

    def children(self, broker: int) -> tuple[int, ...]:
        return self.parts.get(broker, ())


@dataclass(eq=False, slots=True)
class Message:
    """A copy of an event on its way."""

    event: Event
    has_payload: bool
    """False: the payload was stripped, as the receiver should have it. Said explicitly: a payload may be empty."""
    source: int
    """The last node on the way that had the payload."""
    part: int = SERVER
    """The cell it is for, if it is forwarded by the cell's former owner; `SERVER`: for all cells of this version."""
    hops: int = 1
    low: int = 0
    """All events with a smaller number are done everywhere: nobody needs to remember them."""
    copies: int = 1


class Ack(NamedTuple):
    """The message has reached all it should, here and beyond."""

    seq: int
    part: int


class Got(NamedTuple):
    """A payload came over this link, at a broker that caches."""

    payload_id: int


class Ask(NamedTuple):
    payload_id: int


class Reply(NamedTuple):
    payload_id: int
    payload_bytes: int
    """-1: the payload is not there."""


class Hello(NamedTuple):
    """What was sent was for an earlier session: the receiver has restarted since."""


class Transfer(NamedTuple):
    """A cell for its new owner."""

    number: int
    """Which of all transfers this is."""
    cell: int
    lo: I64
    hi: I64
    points: I64
    """Numbers of the points in it."""
    told: frozenset[int]
    """Events that its points have been told."""


class Taken(NamedTuple):
    """The new owner has what was transferred."""

    number: int


Body = Message | Ack | Got | Ask | Reply | Hello | Transfer | Taken


class Frame(NamedTuple):
    """What crosses a link, with the sessions of both ends as the sender knows them."""

    sender: int
    to: int
    session: int
    to_session: int
    body: Body

    @property
    def size(self) -> int:
        body = self.body
        if isinstance(body, Message):
            payload = body.event.payload_bytes if body.has_payload else 0
            return body.copies * (body.event.size + payload)
        if isinstance(body, Reply):
            return CONTROL_BYTES + max(body.payload_bytes, 0)
        if isinstance(body, Transfer):
            return HEADER_BYTES + 8 * len(body.points) * (1 + len(body.lo)) + 8 * len(body.told)
        return CONTROL_BYTES
