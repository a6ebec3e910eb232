"""NATS JetStream for plain code: a connection whose event loop runs in a thread of its own, and errors that say what to do.

A stream is read by sequence, with a consumer that acknowledges nothing and is removed afterwards: reading changes nothing at
the server, and reading again gives the same messages.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from tidings.model.errors import UsageError

try:
    import nats
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.errors import AuthorizationError, Error, NoServersError
    from nats.js import JetStreamContext
    from nats.js.api import (
        AckPolicy,
        ConsumerConfig,
        ConsumerInfo,
        DeliverPolicy,
        RetentionPolicy,
        StreamConfig,
        StreamInfo,
    )
    from nats.js.errors import NotFoundError, ServiceUnavailableError
except ImportError:
    raise UsageError("NATS needs the package nats-py: pip install '.[nats]' in the clone") from None

# Others take names of nats-py from here, so that one place says what to do where it is missing.
__all__ = [
    "Address",
    "Error",
    "Follower",
    "JetStream",
    "Message",
    "Msg",
    "NotFoundError",
    "RetentionPolicy",
    "StreamConfig",
    "is_single",
    "known_options",
    "number",
]

T = TypeVar("T")

_RECONNECT_SECONDS = 0.5
_ANSWER_SECONDS = 10.0
_CONSUMER_SECONDS = 60.0
_PULL_MESSAGES = 1000
_PULL_SECONDS = 30.0
_PULL_BYTES = 8 << 20
_ATTEMPTS = 5
_FOLLOW_MESSAGES = 200
_FOLLOW_SECONDS = 5.0
_LOOK_SECONDS = 1.0
"""So often a follower looks whether its connection was lost in between."""
_TIME_OVER, _NOTHING_THERE = "408", "404"
"""Status of a request that ends without as many messages as it asked for."""


@dataclass(frozen=True)
class Address:
    """Where the servers are and who we are there. timeout: seconds for which servers that do not answer are tried."""

    servers: tuple[str, ...] = ("nats://127.0.0.1:4222",)
    credentials: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    timeout: float = 30.0

    @staticmethod
    def of(options: Mapping[str, str]) -> Address:
        """From the options of a source or sink, whatever the case of their names."""
        given = {name.lower(): value for name, value in options.items()}
        servers = tuple(filter(None, (server.strip() for server in given.get("servers", "").split(","))))
        return Address(
            servers or Address.servers,
            given.get("credentials", ""),
            given.get("user", ""),
            given.get("password", ""),
            given.get("token", ""),
            number(given, "timeout", int(Address.timeout), lowest=1),
        )

    def within(self, seconds: float) -> Address:
        """The same with at most this timeout: for a first look, when a user waits."""
        return replace(self, timeout=min(seconds, self.timeout))

    def __str__(self) -> str:
        """The servers, without the secrets that an address may hold."""
        return ", ".join(
            server.replace(f"{urlsplit(server).netloc.rpartition('@')[0]}@", "") for server in self.servers
        )


_SPARK = ("path", "checkpointLocation")
"""Options that Spark itself gives to a source or sink."""
_LOGIN = ("servers", "credentials", "user", "password", "token", "timeout")


def known_options(options: Mapping[str, str], what: str, own: tuple[str, ...]) -> dict[str, str]:
    """The options with small letters. UsageError if there is one that is neither for the login nor among `own`."""
    known = {name.lower(): name for name in (*own, *_LOGIN, *_SPARK)}
    unknown = next((name for name in options if name.lower() not in known), None)
    if unknown is not None:
        names = ", ".join((*own, *_LOGIN))
        raise UsageError(f"the {what} nats has no option {unknown!r}; it has {names}")
    return {name.lower(): value for name, value in options.items()}


class Message(NamedTuple):
    """A message of a stream. time: when the server stored it, in microseconds since 1970. pending: how many come behind it."""

    sequence: int
    time: int
    value: bytes
    size: int
    """Bytes of the value, also where only the size was asked for."""
    pending: int

    @staticmethod
    def of(msg: Msg) -> Message:
        # $JS.ACK.[domain.account.]stream.consumer.delivered.sequence.position.nanoseconds.pending[.random]
        words = msg.reply.split(".")
        sequence, _, nanoseconds, pending = map(int, words[7:11] if len(words) > 9 else words[5:9])
        size = int(msg.headers.get("Nats-Msg-Size", 0)) if msg.headers else 0
        return Message(sequence, nanoseconds // 1000, msg.data, size or len(msg.data), pending)


class JetStream:
    """A connection. Its methods block, and may be called by any thread.

    Connecting raises UsageError if no server answers within the address's timeout.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._complaints: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats", daemon=True)
        self._thread.start()
        try:
            self.client = self.run(asyncio.wait_for(self._connect(), address.timeout + _ANSWER_SECONDS))
        except (Error, OSError, TimeoutError) as error:
            self._end_loop()
            raise self.explained(error) from None
        self.context: JetStreamContext = self.client.jetstream(timeout=min(_ANSWER_SECONDS, address.timeout))

    async def _connect(self) -> Client:
        address = self._address
        login = {name: value for name in ("user", "password", "token") if (value := getattr(address, name))}
        if address.credentials:
            login["user_credentials"] = address.credentials
        return await nats.connect(
            list(address.servers),
            error_cb=self._complain,
            connect_timeout=5,
            reconnect_time_wait=_RECONNECT_SECONDS,
            max_reconnect_attempts=max(1, int(address.timeout / _RECONNECT_SECONDS)),
            **login,
        )

    async def _complain(self, error: Exception) -> None:
        self._complaints = [*self._complaints[-3:], str(error) or type(error).__name__]

    def __enter__(self) -> JetStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def is_closed(self) -> bool:
        return bool(self.client.is_closed)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        if not self.client.is_closed:
            self.run(self.client.close())
        self._end_loop()

    def _end_loop(self) -> None:
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the connection's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def explained(self, error: BaseException, what: str = "") -> UsageError:
        """An error of NATS in words for users. what: what was tried."""
        head = f"NATS at {self._address}"
        said = [text for text in (*self._complaints, str(error)) if text]
        denied = next((text for text in said if "ermission" in text and "iolation" in text), None)
        if denied is not None:
            return UsageError(f"{head}: no permission{f' for {what}' if what else ''} ({denied})")
        if isinstance(error, AuthorizationError) or any("uthorization" in text for text in said):
            return UsageError(f"{head} refuses the login: check the options credentials, user, password or token")
        if isinstance(error, ServiceUnavailableError):
            return UsageError(
                f"{head} does not serve JetStream: start the server with -js, or enable it for the account"
            )
        if isinstance(error, NoServersError | OSError | TimeoutError) and not what:
            reason = f" ({said[-1]})" if said else ""
            return UsageError(f"cannot reach {head}{reason}: is the server running, and the option servers right?")
        return UsageError(f"{head}: {what or 'request'} failed: {said[-1] if said else type(error).__name__}")

    def no_stream(self, name: str) -> UsageError:
        return UsageError(f"NATS at {self._address} has no JetStream stream {name!r}")

    def stream(self, name: str) -> StreamInfo:
        """What the server knows of a stream, asked for until the address's timeout if there is no answer.

        UsageError if there is no such stream, or it may not be read.
        """
        deadline = time.monotonic() + self._address.timeout
        while True:
            try:
                return self.run(self.context.stream_info(name))
            except NotFoundError:
                raise self.no_stream(name) from None
            except (Error, OSError, TimeoutError) as error:
                # A server that starts again is away for a while, then without JetStream until it has read its streams.
                is_passing = isinstance(error, OSError | TimeoutError | ServiceUnavailableError)
                if not is_passing or self.client.is_closed or time.monotonic() > deadline:
                    raise self.explained(error, f"information on stream {name!r}") from None
            self.run(asyncio.sleep(_RECONNECT_SECONDS))

    def stream_of(self, subject: str) -> str:
        """The name of the stream that takes a subject. UsageError if there is none."""
        try:
            found: str = self.run(self.context.find_stream_name_by_subject(subject))
        except NotFoundError:
            raise UsageError(f"no JetStream stream at {self._address} takes the subject {subject!r}") from None
        except (Error, OSError, TimeoutError) as error:
            raise self.explained(error, f"looking for the subject {subject!r}") from None
        return found

    def last_of(self, stream: str, subject: str) -> int:
        """The sequence of the last message of a subject; 0: there is none."""
        try:
            return self.run(self.context.get_last_msg(stream, subject)).seq or 0
        except NotFoundError:
            return 0
        except (Error, OSError, TimeoutError) as error:
            raise self.explained(error, f"reading stream {stream!r}") from None

    def pending(self, stream: str, subject: str, after: int) -> int:
        """Number of messages of a subject (empty: of all) behind a sequence."""
        with self._consumer(stream, subject, after, is_size_only=True) as consumer:
            return consumer.pending

    def sizes(self, stream: str, subject: str, after: int) -> Iterator[tuple[int, int]]:
        """(sequence, bytes) of the messages behind a sequence, without reading their values."""
        for batch in self._batches(stream, subject, after, is_size_only=True):
            yield from ((message.sequence, message.size) for message in batch)

    def read(self, stream: str, subject: str, after: int, end: int) -> Iterator[list[Message]]:
        """The messages of a subject (empty: of all) with sequences above `after` and up to `end`, in blocks."""
        if after >= end:
            return
        for batch in self._batches(stream, subject, after):
            if batch[-1].sequence < end:
                yield batch
                continue
            yield [message for message in batch if message.sequence <= end]
            return

    def _batches(self, stream: str, subject: str, after: int, *, is_size_only: bool = False) -> Iterator[list[Message]]:
        """Messages until none is left. A consumer that was lost, as when a server restarts, is made anew."""
        failures = 0
        while True:
            try:
                with self._consumer(stream, subject, after, is_size_only) as consumer:
                    pending = consumer.pending
                    while pending:
                        batch = consumer.pull()
                        if not batch:
                            # Messages were removed meanwhile, or the consumer was.
                            failures += 1
                            break
                        failures = 0
                        after, pending = batch[-1].sequence, batch[-1].pending
                        yield batch
                    else:
                        return
            except (Error, OSError, TimeoutError) as error:
                failures += 1
                if failures >= _ATTEMPTS:
                    raise self.explained(error, f"reading stream {stream!r}") from None
            if failures >= _ATTEMPTS:
                raise UsageError(
                    f"NATS at {self._address} does not deliver the messages of stream {stream!r} behind {after}"
                )
            self.run(asyncio.sleep(_RECONNECT_SECONDS * failures))

    def _consumer(self, stream: str, subject: str, after: int, is_size_only: bool = False) -> _Consumer:
        return self.run(_Consumer.create(self, stream, subject, after, is_size_only))


class _Inbox:
    """Messages that come to us, until all that were asked for are there or the server says that it has no more."""

    def __init__(self) -> None:
        self._found: list[Message] = []
        self._wanted = 0
        self._is_done = asyncio.Event()

    def expect(self, messages: int) -> None:
        self._found, self._wanted = [], messages
        self._is_done.clear()

    async def take(self, msg: Msg) -> None:
        # Messages of the stream can be replied to; the server's own cannot.
        if msg.reply:
            self._found.append(Message.of(msg))
        if not msg.reply or len(self._found) == self._wanted:
            self._is_done.set()

    async def result(self) -> list[Message]:
        """TimeoutError if the server does not say more; the consumer is then of no use, as messages may come late."""
        await asyncio.wait_for(self._is_done.wait(), _PULL_SECONDS)
        return self._found


class _Consumer:
    """A consumer of one stream from a sequence on, and the inbox to which its messages come."""

    def __init__(self, connection: JetStream, stream: str, info: ConsumerInfo, inbox: _Inbox, to: Subscription) -> None:
        self._connection, self._stream, self._name = connection, stream, info.name
        self._inbox, self._to = inbox, to
        self.pending = info.num_pending or 0

    @staticmethod
    async def create(
        connection: JetStream,
        stream: str,
        subject: str,
        after: int,
        is_size_only: bool = False,
        take: Callable[[Msg], Awaitable[None]] | None = None,
    ) -> _Consumer:
        """take: what gets the messages; None for the inbox."""
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            ack_policy=AckPolicy.NONE,
            filter_subject=subject or None,
            headers_only=is_size_only,
            inactive_threshold=_CONSUMER_SECONDS,
            mem_storage=True,
            num_replicas=1,
        )
        inbox = _Inbox()
        to = await connection.client.subscribe(connection.client.new_inbox(), cb=take or inbox.take)
        return _Consumer(connection, stream, await connection.context.add_consumer(stream, config), inbox, to)

    def __enter__(self) -> _Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        # A consumer that cannot be removed now ends by itself when it has been idle for a while.
        self._connection.run(self._remove())

    async def _remove(self) -> None:
        await self.leave()
        with suppress(Error, OSError, TimeoutError):
            await self._connection.context.delete_consumer(self._stream, self._name)

    async def leave(self) -> None:
        """Takes no more messages."""
        with suppress(Error, OSError, TimeoutError):
            await self._to.unsubscribe()

    def pull(self) -> list[Message]:
        """The next messages; none if the server has none."""
        found = self._connection.run(self._pull(_PULL_MESSAGES, _PULL_BYTES))
        # A message above the limit of bytes is not sent at all: ask for it alone.
        return found or self._connection.run(self._pull(1, 0))

    async def _pull(self, messages: int, size: int) -> list[Message]:
        self._inbox.expect(messages)
        await self.ask({"batch": messages, "no_wait": True, **({"max_bytes": size} if size else {})})
        return await self._inbox.result()

    async def ask(self, request: dict[str, Any]) -> None:
        """Asks for messages, which come to whoever takes them."""
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
        await self._connection.client.publish(subject, json.dumps(request).encode(), self._to.subject)


class Follower:
    """The messages of a subject as they are stored, from a sequence on. Its methods may be called by one thread at a time.

    A server that is away for a while is waited for: the consumer is made anew behind the last message.
    """

    def __init__(self, connection: JetStream, stream: str, subject: str, after: int) -> None:
        self._connection, self._stream, self._subject = connection, stream, subject
        self._after = after
        self._consumer: _Consumer | None = None
        self._found: deque[Message] = deque()
        self._moved = asyncio.Event()
        self._wanted = 0
        """Messages that were asked for and have not come."""
        self._asked_at = 0.0
        self._reconnects = self._generation = 0

    def next(self, wait_seconds: float) -> list[Message]:
        """The next messages; none if none comes within the time. UsageError if the connection is closed."""
        return self._connection.run(self._next(wait_seconds))

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.__exit__()

    async def _next(self, wait_seconds: float) -> list[Message]:
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                await self._ask()
                self._moved.clear()
                if not self._found:
                    left = min(deadline - time.monotonic(), _LOOK_SECONDS)
                    await asyncio.wait_for(self._moved.wait(), max(left, 0.0))
            except NotFoundError:
                raise self._connection.no_stream(self._stream) from None
            except (Error, OSError, TimeoutError) as error:
                if self._connection.is_closed:
                    raise self._connection.explained(error) from None
                if not isinstance(error, TimeoutError):
                    self._reconnects = -1
                    await asyncio.sleep(max(min(deadline - time.monotonic(), _RECONNECT_SECONDS), 0.0))
            if self._found or time.monotonic() >= deadline:
                found = list(self._found)
                self._found.clear()
                self._after = found[-1].sequence if found else self._after
                return found

    async def _ask(self) -> None:
        """Asks for more messages, if none are on their way; by a new consumer, if the one before may be gone."""
        now, reconnects = time.monotonic(), self._connection.client.stats["reconnects"]
        is_lost = self._wanted > 0 and now - self._asked_at > _FOLLOW_SECONDS + _ANSWER_SECONDS
        if self._consumer is None or reconnects != self._reconnects or is_lost:
            if self._consumer is not None:
                await self._consumer.leave()
            self._reconnects = reconnects
            self._generation += 1
            self._consumer, self._wanted = None, 0
            after = self._found[-1].sequence if self._found else self._after
            self._consumer = await _Consumer.create(
                self._connection, self._stream, self._subject, after, take=partial(self._take, self._generation)
            )
        if self._wanted <= 0:
            self._wanted, self._asked_at = _FOLLOW_MESSAGES, now
            request = {"batch": _FOLLOW_MESSAGES, "expires": int(_FOLLOW_SECONDS * 1e9)}
            await self._consumer.ask(request)

    async def _take(self, generation: int, msg: Msg) -> None:
        if generation != self._generation:
            # By a consumer that was given up.
            return
        if msg.reply:
            self._found.append(Message.of(msg))
            self._wanted -= 1
        else:
            # The time is over, or the consumer is gone, of which the next request hears.
            self._wanted = 0
            if (msg.headers or {}).get("Status") not in (_TIME_OVER, _NOTHING_THERE):
                self._reconnects = -1
        self._moved.set()


async def _cancel_others() -> None:
    """Ends what nats-py leaves running, such as the reader of a connection that was refused."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def is_single(subject: str) -> bool:
    """Whether it is one subject, without placeholders."""
    return bool(subject) and not {"*", ">"} & set(subject.split("."))


def number(options: Mapping[str, str], name: str, default: int, *, lowest: int) -> int:
    """An option that is a whole number, from options by their names in lower case."""
    text = options.get(name.lower(), str(default))
    if not text.isascii() or not text.isdigit() or int(text) < lowest:
        raise UsageError(f"the option {name} is a whole number from {lowest} on, not {text!r}")
    return int(text)
