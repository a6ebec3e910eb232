"""A process that hosts views: `python -m tidings.relay.runtime.nats.worker`, started by a `NatsRelay`.

Commands come on the standard input, each with its length before it; an answer to each goes to the standard output. When the
input ends, so does the worker. All that it knows can be had again: a worker that takes over a view starts behind the last
document of which the view has had its say, and hears again what the stream has from the first unfinished document on.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from enum import Enum, auto
from typing import TypeVar

import msgspec

from tidings.model.errors import TidingsError
from tidings.relay.message import decode_message, encode_message
from tidings.relay.plan import PUBLISHER
from tidings.relay.runtime.epochs import Recipe, read_query
from tidings.relay.runtime.nats.connection import Connection, Heard, Listener
from tidings.relay.runtime.nats.wire import Host, Hosted, Setup, Step, subject
from tidings.relay.runtime.node import Emission, RelayNode
from tidings.relay.runtime.query import Derivation

_MESSAGES_MAX = 1000
"""Taken in before what they have led to is stored."""

T = TypeVar("T")
_Key = tuple[tuple[str, str], tuple[tuple[str, str], ...]]


class Order(Enum):
    """What a worker is to do besides hosting views."""

    LISTEN = auto()
    """Again, as a connection was lost, and with it messages."""
    END = auto()


_Inbox = asyncio.Queue[Heard | Host | Order]


class Worker:
    """The views of one process."""

    def __init__(self, connection: Connection, inbox: _Inbox) -> None:
        self._connection = connection
        self._inbox = inbox
        self._nodes: dict[str, RelayNode] = {}
        self._numbers: dict[str, int] = {}
        self._listeners: dict[str, list[tuple[str, RelayNode]]] = {}
        self._derivations: dict[_Key, Derivation | None] = {}
        self._start = 1
        self._listener: Listener | None = None
        self._out: list[Emission] = []

    async def run(self) -> None:
        """Until there are no more commands."""
        while True:
            for item in await self._taken():
                if isinstance(item, Heard):
                    self._hear(item)
                    continue
                await self._store()
                if item is Order.END:
                    return
                if item is Order.LISTEN:
                    await self._listen()
                    continue
                await self._take_over(item)
                await self._store()
                sys.stdout.write("hosted\n")
                sys.stdout.flush()
            await self._store()

    async def _taken(self) -> list[Heard | Host | Order]:
        """What has come in: at least one, and no more than a batch."""
        found = [await self._inbox.get()]
        while len(found) < _MESSAGES_MAX and not self._inbox.empty():
            found.append(self._inbox.get_nowait())
        return found

    def _hear(self, heard: Heard) -> None:
        listeners = self._listeners.get(heard.subject)
        if listeners:
            message = decode_message(heard.data)
            for source, node in listeners:
                self._out += node.receive(source, message)

    async def _take_over(self, host: Host) -> None:
        self._connection.sender, self._start = host.number, host.start
        nodes = {}
        used: dict[_Key, Derivation | None] = {}
        for hosted in host.hosted:
            schedule = [(step.first, self._recipe(step, used)) for step in hosted.steps]
            node = self._nodes.get(hosted.view)
            if node is None:
                node = RelayNode(hosted.view, schedule, hosted.next, told=sys.maxsize)
            else:
                self._out += node.reschedule(schedule)
            nodes[hosted.view] = node
        self._nodes, self._derivations = nodes, used
        self._numbers = {hosted.view: hosted.number for hosted in host.hosted}
        self._listeners = {}
        for hosted in host.hosted:
            for name, source in self._heard(hosted, host.numbers):
                self._listeners.setdefault(name, []).append((source, nodes[hosted.view]))
        await self._listen()

    def _heard(self, hosted: Hosted, numbers: dict[str, int]) -> list[tuple[str, str]]:
        """Subject and source of all inputs of a view."""
        sources = dict.fromkeys(source for step in hosted.steps for source in step.inputs)
        stream = self._connection.stream
        return [
            (subject(stream, "feed", hosted.number), source)
            if source == PUBLISHER
            else (subject(stream, "view", numbers[source]), source)
            for source in sources
        ]

    async def _listen(self) -> None:
        if self._listener is not None:
            await self._listener.stop()
            self._listener = None
        if self._listeners:
            self._listener = await self._connection.listen(list(self._listeners), self._start, self._inbox.put)

    def _recipe(self, step: Step, used: dict[_Key, Derivation | None]) -> Recipe | None:
        if step.query is None:
            return None
        query = read_query(step.query)
        sources = tuple(map(read_query, step.sources))
        key = step.query, tuple(step.sources)
        if key in self._derivations:
            derive = self._derivations[key]
        else:
            derive = query.derivation(sources) if sources else None
        used[key] = derive
        return Recipe(step.epoch, query, tuple(step.inputs), sources, derive)

    async def _store(self) -> None:
        """All that views have said since the last time."""
        out, self._out = self._out, []
        messages = []
        for message, _ in out:
            number = self._numbers[message.view]
            to = subject(self._connection.stream, "view", number)
            messages.append((to, f"view.{number}.{message.seq}", encode_message(message)))
        await self._connection.store(messages)


async def _read(reader: asyncio.StreamReader, kind: type[T]) -> T:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return msgspec.msgpack.decode(await reader.readexactly(size), type=kind)


async def _main() -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    inbox: _Inbox = asyncio.Queue(_MESSAGES_MAX)

    async def commands() -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                await inbox.put(await _read(reader, Host))
        await inbox.put(Order.END)

    async def listen_again() -> None:
        await inbox.put(Order.LISTEN)

    setup = await _read(reader, Setup)
    connection = await Connection.open(setup.url, setup.stream, listen_again)
    reading = asyncio.create_task(commands())
    await Worker(connection, inbox).run()
    await reading
    await connection.close()


if __name__ == "__main__":
    try:
        asyncio.run(_main())
    except TidingsError as error:
        sys.exit(str(error))
