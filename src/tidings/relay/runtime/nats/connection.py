"""A connection to the stream that keeps the messages of a run: storing them for sure, and hearing them from a place on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from tidings.model.errors import TidingsError, UsageError

try:
    import nats
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.errors import Error
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig
except ImportError:
    raise UsageError("NATS needs the package nats-py: pip install '.[nats]' in the clone") from None

_ANSWER_SECONDS = 5
_RECONNECT_SECONDS = 0.5
_RECONNECTS = 60
_ACK_SECONDS = 5.0
_ATTEMPTS = 6
_IDLE_SECONDS = 3600.0
_PULL_SECONDS = 30.0
_PULL_MESSAGES = 500
_PULL_BYTES = 8 << 20
_REQUEST_OVER = ("404", "408", "409")
"""A request for messages has ended, as there were none for a while, or as they would have been too many bytes."""
_FILTERS_MAX = 500
"""Subjects of one consumer; where there are more, it hears of all views."""
_HEADER_BYTES = 1024
_ID, _SENDER = "Nats-Msg-Id", "Relay-Sender"
_WHOLE, _PIECE, _PIECES = "Relay-Whole", "Relay-Piece", "Relay-Pieces"


class RelayError(TidingsError):
    """A run over NATS cannot go on."""


class Heard(NamedTuple):
    """A message of the stream. sender: the number that its sender had."""

    subject: str
    sender: int
    data: bytes


_Hear = Callable[[Heard], Awaitable[None]]
_OnLoss = Callable[[], Awaitable[None]]


class Connection:
    """A connection to the stream of one run.

    on_loss: called when messages may have been lost, to listen again. sender: a number that goes with what is stored.
    """

    def __init__(self, client: Client, stream: str, on_loss: _OnLoss) -> None:
        self._client, self._on_loss = client, on_loss
        self.stream = stream
        self.sender = 0
        self.context = client.jetstream(publish_async_max_pending=100_000)

    @staticmethod
    async def open(url: str, stream: str, on_loss: _OnLoss) -> Connection:
        """UsageError if no server answers."""
        try:
            await _look(url)
            client = await nats.connect(
                url,
                reconnected_cb=on_loss,
                error_cb=_ignore,
                connect_timeout=_ANSWER_SECONDS,
                reconnect_time_wait=_RECONNECT_SECONDS,
                max_reconnect_attempts=_RECONNECTS,
            )
        except (Error, OSError, TimeoutError) as error:
            raise UsageError(f"cannot reach NATS at {url} ({error}): is the server running?") from None
        return Connection(client, stream, on_loss)

    async def create(self, subjects: str) -> None:
        """The stream, with these subjects."""
        await self.context.add_stream(StreamConfig(name=self.stream, subjects=[subjects]))

    async def close(self) -> None:
        await self._client.close()

    async def purge(self, below: int) -> None:
        """Removes what is before a place in the stream."""
        await self.context.purge_stream(self.stream, seq=below)

    async def remove(self) -> None:
        """The stream; it stays if the server is gone."""
        with suppress(Error, OSError, TimeoutError):
            await self.context.delete_stream(self.stream)

    async def store(self, messages: Iterable[tuple[str, str, bytes]]) -> list[int]:
        """(subject, id, data) into the stream; returns places there. RelayError if the server does not take them."""
        pieces = [piece for message in messages for piece in self._pieces(*message)]
        places: dict[int, int] = {}
        reason = "no acknowledgement"
        for _ in range(_ATTEMPTS):
            pending = {}
            for at, (to, data, headers) in enumerate(pieces):
                if at not in places:
                    pending[at] = await self.context.publish_async(to, data, headers=headers)
            if pending:
                await asyncio.wait(pending.values(), timeout=_ACK_SECONDS)
            for at, ack in pending.items():
                if not ack.done():
                    ack.cancel()
                elif (error := ack.exception()) is not None:
                    reason = str(error)
                else:
                    places[at] = ack.result().seq
            if len(places) == len(pieces):
                return list(places.values())
        raise RelayError(f"NATS does not store messages: {reason}")

    def _pieces(self, to: str, id: str, data: bytes) -> Iterator[tuple[str, bytes, dict[str, str]]]:
        """A message as it is sent: in pieces if it is larger than what the server takes."""
        size = self._client.max_payload - _HEADER_BYTES
        if len(data) <= size:
            yield to, data, {_ID: id, _SENDER: str(self.sender)}
            return
        # Those who send it again may write it differently: what belongs together has the sender's own id.
        whole = f"{id}.{uuid4().hex}"
        starts = range(0, len(data), size)
        for number, start in enumerate(starts):
            place = {_WHOLE: whole, _PIECE: str(number), _PIECES: str(len(starts))}
            yield to, data[start : start + size], {_ID: f"{whole}.{number}", _SENDER: str(self.sender), **place}

    async def listen(self, subjects: Sequence[str], start: int, hear: _Hear) -> Listener:
        """Everything on these subjects from a place in the stream on, what is there and what will come."""
        if len(subjects) > _FILTERS_MAX:
            subjects = sorted({name.rpartition(".")[0] + ".*" for name in subjects})
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=start,
            ack_policy=AckPolicy.NONE,
            filter_subjects=list(subjects),
            inactive_threshold=_IDLE_SECONDS,
            mem_storage=True,
        )
        consumer = (await self.context.add_consumer(self.stream, config)).name
        listener = Listener(self._client, f"{self.stream}.{consumer}", hear, self._on_loss)
        await listener.begin()
        return listener


class Listener:
    """Takes in the messages of a consumer, some at a time: more are asked for when all of them have been heard.

    The server cuts off those who do not take what it sends, so nothing may be sent that was not asked for.
    """

    def __init__(self, client: Client, consumer: str, hear: _Hear, on_loss: _OnLoss) -> None:
        self._client, self._consumer, self._hear, self._on_loss = client, consumer, hear, on_loss
        self._inbox = client.new_inbox()
        self._asked = 0
        self._pieces: dict[str, dict[int, bytes]] = {}
        bytes_max = max(_PULL_BYTES, 2 * client.max_payload)
        expires = int(_PULL_SECONDS * 1e9)
        self._request = json.dumps({"batch": _PULL_MESSAGES, "max_bytes": bytes_max, "expires": expires}).encode()

    @property
    def has_pieces(self) -> bool:
        """Whether there are pieces of messages that are not complete."""
        return bool(self._pieces)

    async def begin(self) -> None:
        # No limits: what is asked for is little.
        self._to = await self._client.subscribe(self._inbox, cb=self._take, pending_msgs_limit=0, pending_bytes_limit=0)
        await self._ask()

    async def stop(self) -> None:
        """Messages that have been asked for may be lost: who listens again begins where he began before."""
        await self._to.unsubscribe()

    async def _ask(self) -> None:
        self._asked = _PULL_MESSAGES
        await self._client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{self._consumer}", self._request, self._inbox)

    async def _take(self, msg: Msg) -> None:
        headers = msg.headers or {}
        status = headers.get("Status")
        if status is None:
            await self._put_together(msg, headers)
            self._asked -= 1
            if not self._asked:
                await self._ask()
        elif status in _REQUEST_OVER and "eleted" not in headers.get("Description", ""):
            await self._ask()
        else:
            await self._on_loss()

    async def _put_together(self, msg: Msg, headers: dict[str, str]) -> None:
        """Messages may come in pieces, each perhaps more than once."""
        whole = headers.get(_WHOLE)
        if whole is None:
            await self._hear(Heard(msg.subject, int(headers[_SENDER]), msg.data))
            return
        pieces = self._pieces.setdefault(whole, {})
        pieces[int(headers[_PIECE])] = msg.data
        if len(pieces) == int(headers[_PIECES]):
            del self._pieces[whole]
            data = b"".join(pieces[number] for number in sorted(pieces))
            await self._hear(Heard(msg.subject, int(headers[_SENDER]), data))


async def _look(url: str) -> None:
    """OSError or TimeoutError if nobody listens there: the client would try for long."""
    address = urlsplit(url)
    opening = asyncio.open_connection(address.hostname, address.port or 4222)
    _, writer = await asyncio.wait_for(opening, _ANSWER_SECONDS)
    writer.close()


async def _ignore(_: Exception) -> None:
    """Errors of a connection show where it is used."""
