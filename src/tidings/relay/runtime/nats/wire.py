"""What processes of a relay say to each other, and how they store it in the stream.

    relay.<run>.feed.<view>     publisher to view: a ViewMessage
    relay.<run>.view.<view>     view to views: a ViewMessage
    relay.<run>.told.<view>     view to subscriber: Told

Views have numbers here, as their ids may be anything. What is stored has an id, so that it is stored once if it is sent twice;
receivers know as well what they have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from tidings.model.errors import TidingsError, UsageError
from tidings.relay.errors import RowsError
from tidings.relay.runtime import ledger

try:
    import nats
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.errors import Error, MaxPayloadError
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, PubAck
except ImportError:
    raise UsageError("NATS needs the package nats-py: pip install 'tidings[nats]'") from None

_ANSWER_SECONDS = 5
_RECONNECT_SECONDS = 0.5
_RECONNECTS = 60
_ACK_SECONDS = 5.0
_ATTEMPTS = 6
_IDLE_SECONDS = 60.0
_FILTERS_MAX = 500
"""Subjects of one consumer; where there are more, it hears of all views."""


class Told(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a subscriber is told of a document. host: by which command the view is hosted. refused: why there are no rows."""

    host: int
    seq: int
    view: str
    rows: list[tuple[str, ...]] = []
    refused: str | None = None

    @staticmethod
    def of(host: int, seq: int, view: str, told: ledger.Told) -> Told:
        if isinstance(told, RowsError):
            return Told(host, seq, view, refused=str(told))
        return Told(host, seq, view, told)

    @property
    def told(self) -> ledger.Told:
        return self.rows if self.refused is None else RowsError(self.refused)


class Step(msgspec.Struct, frozen=True, array_like=True):
    """A recipe of a view, from a document on. query: None where the view is absent. sources: what the inputs ask for."""

    first: int
    epoch: int
    query: tuple[str, str] | None
    inputs: list[str]
    sources: list[tuple[str, str]]


class Hosted(msgspec.Struct, frozen=True, array_like=True):
    """A view that a worker is to host. next: the first document of which its subscriber has not been told."""

    view: str
    number: int
    next: int
    steps: list[Step]


class Host(msgspec.Struct, frozen=True, array_like=True):
    """To a worker: host just these views.

    number: of the command. start: where in the stream the messages of unfinished documents begin. numbers: of the inputs.
    """

    number: int
    start: int
    hosted: list[Hosted]
    numbers: dict[str, int]


class Setup(msgspec.Struct, frozen=True, array_like=True):
    """To a worker, first."""

    url: str
    stream: str


def subject(stream: str, kind: str, number: int | str) -> str:
    return f"{all_subjects(stream)[:-1]}{kind}.{number}"


def all_subjects(stream: str) -> str:
    return f"relay.{stream}.>"


class RelayError(TidingsError):
    """A run over NATS cannot go on."""


class Connection:
    """A connection to the stream of one run."""

    def __init__(self, client: Client, stream: str) -> None:
        self._client = client
        self.stream = stream
        self.context = client.jetstream(publish_async_max_pending=100_000)

    @staticmethod
    async def open(url: str, stream: str, on_reconnect: Callable[[], Awaitable[None]] | None = None) -> Connection:
        """UsageError if no server answers."""
        try:
            await _look(url)
            client = await nats.connect(
                url,
                reconnected_cb=on_reconnect,
                error_cb=_ignore,
                connect_timeout=_ANSWER_SECONDS,
                reconnect_time_wait=_RECONNECT_SECONDS,
                max_reconnect_attempts=_RECONNECTS,
            )
        except (Error, OSError, TimeoutError) as error:
            raise UsageError(f"cannot reach NATS at {url} ({error}): is the server running?") from None
        return Connection(client, stream)

    async def close(self) -> None:
        await self._client.close()

    async def purge(self, below: int) -> None:
        """Removes what is before a place in the stream."""
        await self.context.purge_stream(self.stream, seq=below)

    async def remove(self) -> None:
        """The stream; it stays if the server is gone."""
        with suppress(Error, OSError, TimeoutError):
            await self.context.delete_stream(self.stream)

    async def store(self, messages: Sequence[tuple[str, str, bytes]]) -> list[int]:
        """(subject, id, data) into the stream; returns the places there. RelayError if the server does not take them."""
        places: dict[int, int] = {}
        reason = "no acknowledgement"
        for _ in range(_ATTEMPTS):
            pending = {}
            for at, (to, id, data) in enumerate(messages):
                if at not in places:
                    pending[at] = await self._send(to, id, data)
            if pending:
                await asyncio.wait(pending.values(), timeout=_ACK_SECONDS)
            for at, ack in pending.items():
                if not ack.done():
                    ack.cancel()
                elif (error := ack.exception()) is not None:
                    reason = str(error)
                else:
                    places[at] = ack.result().seq
            if len(places) == len(messages):
                return [places[at] for at in range(len(messages))]
        raise RelayError(f"NATS does not store messages: {reason}")

    async def _send(self, to: str, id: str, data: bytes) -> asyncio.Future[PubAck]:
        try:
            return await self.context.publish_async(to, data, headers={"Nats-Msg-Id": id})
        except MaxPayloadError:
            raise RelayError(
                f"a message has {len(data):,} bytes, and the NATS server takes {self._client.max_payload:,}: "
                "raise max_payload in its configuration"
            ) from None

    async def listen(self, subjects: Sequence[str], start: int, hear: Callable[[Msg], Awaitable[None]]) -> Listener:
        """Everything on these subjects from a place in the stream on, what is there and what will come."""
        if len(subjects) > _FILTERS_MAX:
            subjects = sorted({name.rpartition(".")[0] + ".*" for name in subjects})
        inbox = self._client.new_inbox()
        # No limits: what can come is bounded by the documents that are under way.
        listener = Listener(await self._client.subscribe(inbox, cb=hear, pending_msgs_limit=0, pending_bytes_limit=0))
        config = ConsumerConfig(
            deliver_subject=inbox,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=start,
            ack_policy=AckPolicy.NONE,
            filter_subjects=list(subjects),
            inactive_threshold=_IDLE_SECONDS,
            mem_storage=True,
        )
        await self.context.add_consumer(self.stream, config)
        return listener


class Listener:
    """A consumer that tells us of messages. It ends by itself when nobody listens."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    async def stop(self) -> None:
        await self._subscription.unsubscribe()


async def _look(url: str) -> None:
    """OSError or TimeoutError if nobody listens there: the client would try for long."""
    address = urlsplit(url)
    opening = asyncio.open_connection(address.hostname, address.port or 4222)
    _, writer = await asyncio.wait_for(opening, _ANSWER_SECONDS)
    writer.close()


async def _ignore(_: Exception) -> None:
    """Errors of a connection show where it is used."""
