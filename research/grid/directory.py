"""The directory: the partition in force and its version, and the passage from one version to the next.

The next version is built beside the one in force, in phases. In each, the directory tells a group of servers to do something
and goes on when all have answered:

    BUILD    new servers   begin to exist, empty
    COPY     old servers   send what they hold to the new ones, a piece at a time, and go on serving; what is written
                           meanwhile is sent as well
    CLOSE    old servers   stop applying writes, and say which they have applied last
    SETTLE   old servers   apply the writes that only some of them had, refuse the rest, send the last changes
    OPEN     new servers   have all they were sent, and are ready

Then the directory changes partition and version: one assignment, before which no client can know the new version, and since
CLOSE no server applies a write under the old one. Clients that join from CLOSE on are answered after this flip. So
clients stop for as long as it takes to send what was written during the last piece of the copy, not for the whole copy.

The first partition is brought into force in the same way, from version 0, which has no servers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from research.grid.messages import (
    Build,
    Built,
    Close,
    Closed,
    Copied,
    Copy,
    Join,
    Joined,
    Message,
    Open,
    Opened,
    Retire,
    Settle,
    Settled,
    ToDirectory,
    Write,
)
from tidings.exchange.grid.partition import Partition, ServerAddress
from tidings.model.errors import TidingsError

COPY_LIMIT = 1024
"""Constraints that a server copies before it looks at its writes again, besides those that were written meanwhile."""


class RepartitionError(TidingsError):
    """The partition cannot be changed now."""


class Phase(Enum):
    """How far the passage to the next version has come; each phase waits for its kind of answer."""

    STEADY = None
    BUILD = Built
    COPY = Copied
    CLOSE = Closed
    SETTLE = Settled
    OPEN = Opened


class Directory:
    """Knows the partition in force, and puts another into force."""

    def __init__(self, copy_limit: int = COPY_LIMIT) -> None:
        self.partition: Partition | None = None
        self.version = 0
        self.phase = Phase.STEADY
        self._copy_limit = copy_limit
        self._joining: dict[str, None] = {}
        self._next = Partition()
        self._awaited: set[ServerAddress] = set()
        self._closed: list[Closed] = []
        self._settled: list[Settled] = []

    def repartition(self, partition: Partition) -> list[Message]:
        """Begins the passage to another partition, one at a time; returns what is to be sent."""
        if self.phase is not Phase.STEADY:
            raise RepartitionError(
                f"version {self.version + 1} is still being made ({self.phase.name}); ask again when it is in force"
            )
        self._next = partition
        return self._enter(Phase.BUILD)

    def receive(self, message: ToDirectory) -> list[Message]:
        """Handles a message; returns what is to be sent."""
        if isinstance(message, Join):
            return self._join(message.client)
        # Anything else than the awaited answers is a repetition.
        if type(message) is not self.phase.value or message.server not in self._awaited:
            return []
        if isinstance(message, Copied) and message.remaining:
            return [Copy(message.server, self._next, self._copy_limit)]
        if isinstance(message, Closed):
            self._closed.append(message)
        elif isinstance(message, Settled):
            self._settled.append(message)
        self._awaited.remove(message.server)
        return [] if self._awaited else self._enter_next()

    def _join(self, client: str) -> list[Message]:
        if self.partition is not None and self.phase in (Phase.STEADY, Phase.BUILD, Phase.COPY):
            return [Joined(client, self.partition, self.version)]
        self._joining[client] = None
        return []

    def _enter_next(self) -> list[Message]:
        phases = list(Phase)
        return self._flip() if self.phase is phases[-1] else self._enter(phases[phases.index(self.phase) + 1])

    def _enter(self, phase: Phase) -> list[Message]:
        self.phase = phase
        orders = self._orders()
        self._awaited = {order.to for order in orders}
        return [*orders] if orders else self._enter_next()

    def _orders(self) -> list[Build] | list[Copy] | list[Close] | list[Settle] | list[Open]:
        old = self._servers()
        new = self._next.servers(self.version + 1)
        match self.phase:
            case Phase.BUILD:
                return [Build(server, self._next) for server in new]
            case Phase.COPY:
                return [Copy(server, self._next, self._copy_limit) for server in old]
            case Phase.CLOSE:
                return [Close(server) for server in old]
            case Phase.SETTLE:
                missing = missing_writes(self._closed)
                return [Settle(server, tuple(missing.get(server, ()))) for server in old]
            case _:
                numbers = _last_numbers(self._closed)
                return [Open(server, numbers, self._loads_of(server)) for server in new]

    def _loads_of(self, server: ServerAddress) -> dict[ServerAddress, int]:
        return {settled.server: settled.loads[server] for settled in self._settled if server in settled.loads}

    def _servers(self) -> tuple[ServerAddress, ...]:
        return () if self.partition is None else self.partition.servers(self.version)

    def _flip(self) -> list[Message]:
        retired = self._servers()
        self.partition, self.version, self.phase = self._next, self.version + 1, Phase.STEADY
        joined = [Joined(client, self.partition, self.version) for client in self._joining]
        self._joining, self._closed, self._settled = {}, [], []
        return [*joined, *(Retire(server) for server in retired)]


def missing_writes(closed: Iterable[Closed]) -> dict[ServerAddress, list[Write]]:
    """The writes that some servers applied and others, which are to hold them as well, did not."""
    has_applied = {each.server: each.numbers for each in closed}
    last: dict[str, Write] = {}
    for each in closed:
        for client, write in each.writes.items():
            if client not in last or last[client].number < write.number:
                last[client] = write
    missing: dict[ServerAddress, list[Write]] = {}
    for client, write in last.items():
        for server in write.servers:
            if has_applied[server].get(client, 0) < write.number:
                missing.setdefault(server, []).append(replace(write, to=server))
    return missing


def _last_numbers(closed: Iterable[Closed]) -> dict[str, int]:
    last: dict[str, int] = {}
    for each in closed:
        for client, number in each.numbers.items():
            last[client] = max(number, last.get(client, 0))
    return last
