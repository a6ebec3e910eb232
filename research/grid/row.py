"""A server of a row: holds constraints under one version of the partition, applies writes, and reports pairs.

A server never changes its version. It is built empty beside the servers in force, loaded by these, opened, closed when the
next version takes over, settled, and forgotten:

    LOADING --Open--> OPEN --Close--> CLOSED --Settle--> SETTLED --Retire-->
    (collects          (applies        (keeps writes      (refuses
     loads, silent)     and reports)    unanswered)        writes)

A pair is reported when the later of its two constraints is applied, by the server that then owns the pair. Loads are
silent: the earlier version has reported all pairs among what it copied. So a change of version neither repeats nor loses
reports.

A write goes to several servers, and it is applied on all of them or on none, although each applies it at once:

- A closed server neither applies nor refuses. The directory compares what all closed servers have applied. A write that any of
  them has, the others are given by Settle; a write that none has is then refused by all.
- A client has one operation under way at a time, numbers its operations and keeps the number when it tries again. So the last
  write of each client is all that can be missing anywhere, and a number that is not higher than the last has been applied.

What a server does depends on the messages it was given and their order alone. A server that is restored from a log of these
says the same again; receivers know repeated messages, and consumers of reports know `Report.id`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

from research.grid.messages import (
    Answer,
    Build,
    Built,
    Close,
    Closed,
    Copied,
    Copy,
    Held,
    Kind,
    Load,
    Message,
    Open,
    Opened,
    Report,
    Retire,
    Settle,
    Settled,
    ToServer,
    Write,
)
from tidings.exchange.grid.partition import Partition, ServerAddress, Side, report_code

Match = Callable[[Any, Any], Sequence[tuple[int, int]]]
"""match(publication's payload, subscription's payload): the pairs of disjuncts that match, by their places."""


class _State(Enum):
    LOADING = "loading"
    OPEN = "open"
    CLOSED = "closed"
    SETTLED = "settled"


class RowServer:
    """One server under one version."""

    def __init__(self, address: ServerAddress, partition: Partition, match: Match) -> None:
        self.address = address
        self._partition = partition
        self._match = match
        self._state = _State.LOADING
        self._held: dict[Side, dict[str, Held]] = {side: {} for side in Side}
        self._numbers: dict[str, int] = {}
        self._last: dict[str, Write] = {}
        self._waiting: dict[str, Write] = {}
        self._shadow = _Shadow()
        self._copying: _Copying | None = None

    def receive(self, message: ToServer) -> list[Message]:
        """Handles a message; returns what is to be sent."""
        match message:
            case Write():
                return self._write(message)
            case Copy():
                return self._copy(message)
            case Load():
                return self._load(message)
            case Close():
                return self._close()
            case Settle():
                return self._settle(message)
            case Open():
                return self._open(message)
            case Build():
                return [Built(self.address)]
            case Retire():
                return []

    def held(self, side: Side) -> list[Held]:
        """The constraints held."""
        return list(self._held[side].values())

    # Writes

    def _write(self, write: Write) -> list[Message]:
        if self._has_applied(write):
            return [self._answer(write, is_applied=True)]
        if self._state is _State.OPEN:
            return [*self._apply(write), self._answer(write, is_applied=True)]
        if self._state is _State.SETTLED:
            return [self._answer(write, is_applied=False)]
        self._waiting[write.client] = write
        return []

    def _has_applied(self, write: Write) -> bool:
        return write.number <= self._numbers.get(write.client, 0)

    def _answer(self, write: Write, *, is_applied: bool) -> Answer:
        return Answer(write.client, self.address, write.number, is_applied)

    def _apply(self, write: Write) -> list[Message]:
        self._numbers[write.client] = write.number
        self._last[write.client] = write
        reports: list[Message] = []
        same_side = self._held[write.side]
        old = same_side.pop(write.id, None)
        if old is not None:
            if write.side is Side.PUBLICATION:
                reports += self._reports(Kind.END, old)
            self._copy_later(old, is_held=False)
        if write.constraint is not None and self.address.row in self._partition.rows_of(write.side, write.constraint):
            new = Held(write.client, write.number, write.side, write.id, write.constraint)
            same_side[write.id] = new
            reports += self._reports(Kind.MATCH, new)
            self._copy_later(new, is_held=True)
        return reports

    def _reports(self, kind: Kind, one: Held) -> list[Report]:
        """Reports of this constraint with each of the other side that it makes a pair with, where this row owns the pair."""
        if one.side is Side.PUBLICATION:
            pairs = [(one, other) for other in self._held[Side.SUBSCRIPTION].values()]
        else:
            pairs = [(other, one) for other in self._held[Side.PUBLICATION].values()]
        return [
            Report(kind, subscription.client, publication.id, publication.number, subscription.id, subscription.number)
            for publication, subscription in pairs
            if self._owns(publication, subscription)
        ]

    def _owns(self, publication: Held, subscription: Held) -> bool:
        matching = self._match(publication.constraint.payload, subscription.constraint.payload)
        if not matching:
            return False
        code = report_code(publication.constraint, subscription.constraint, matching)
        return self._partition.row_of(code) == self.address.row

    # The end of a version: constraints are copied to the servers of the next one.

    def _copy(self, message: Copy) -> list[Message]:
        if self._copying is None:
            everything = (held for side in Side for held in self._held[side].values() if self._is_copied_here(held))
            self._copying = _Copying(self.address, message.target, everything)
        loads = self._copying.take(message.limit)
        return [*loads, Copied(self.address, self._copying.remaining)]

    def _copy_later(self, held: Held, *, is_held: bool) -> None:
        if self._copying is not None and self._is_copied_here(held):
            self._copying.add(held, is_held=is_held)

    def _is_copied_here(self, held: Held) -> bool:
        """Of the servers that hold a constraint, the first copies it."""
        row = self._partition.rows_of(held.side, held.constraint)[0]
        column = self._partition.columns_of(held.side, held.id)[0]
        return (row, column) == (self.address.row, self.address.column)

    def _close(self) -> list[Message]:
        if self._state is _State.OPEN:
            self._state = _State.CLOSED
        return [Closed(self.address, dict(self._numbers), dict(self._last))]

    def _settle(self, message: Settle) -> list[Message]:
        if self._copying is None:
            raise ValueError(f"{self.address} was told to settle before it was told where to copy to")
        self._state = _State.SETTLED
        out: list[Message] = []
        for write in message.writes:
            if not self._has_applied(write):
                out += self._apply(write)
        out += [self._answer(write, is_applied=self._has_applied(write)) for write in self._waiting.values()]
        self._waiting.clear()
        out += self._copying.take(self._copying.remaining)
        return [*out, Settled(self.address, self._copying.loads)]

    # The beginning of a version

    def _load(self, message: Load) -> list[Message]:
        if self._state is not _State.LOADING:
            return []
        self._shadow.load(message)
        return self._open_when_loaded()

    def _open(self, message: Open) -> list[Message]:
        if self._state is not _State.LOADING:
            return [Opened(self.address)]
        self._shadow.opening = message
        return self._open_when_loaded()

    def _open_when_loaded(self) -> list[Message]:
        opening = self._shadow.complete()
        if opening is None:
            return []
        for held in self._shadow.held.values():
            self._held[held.side][held.id] = held
        self._numbers = dict(opening.numbers)
        self._shadow = _Shadow()
        self._state = _State.OPEN
        return [Opened(self.address)]


class _Copying:
    """What a server still has to copy: first all that it holds, then every change since, in order.

    Constraints are never changed, only made and ended, so the receivers need not know about order (`_Shadow`). Each piece is
    larger than what has come since the one before, so that copying ends however much is written.
    """

    def __init__(self, source: ServerAddress, target: Partition, everything: Iterable[Held]) -> None:
        self._source = source
        self._target = target
        self._entries = deque((held, True) for held in everything)
        self._since = 0
        self._loads: Counter[ServerAddress] = Counter()

    @property
    def remaining(self) -> int:
        return len(self._entries)

    @property
    def loads(self) -> dict[ServerAddress, int]:
        """How many loads were sent to each server."""
        return dict(self._loads)

    def add(self, held: Held, *, is_held: bool) -> None:
        self._entries.append((held, is_held))
        self._since += 1

    def take(self, limit: int) -> list[Load]:
        """As many entries as have come since the last time and `limit` more: a load for each server that is to have some."""
        parts: dict[ServerAddress, list[tuple[Held, bool]]] = {}
        count, self._since = limit + self._since, 0
        for _ in range(min(count, len(self._entries))):
            held, is_held = self._entries.popleft()
            rows = self._target.rows_of(held.side, held.constraint)
            for server in self._target.servers_of(self._source.version + 1, held.side, held.id, rows):
                parts.setdefault(server, []).append((held, is_held))
        loads = [Load(server, self._source, self._loads[server], tuple(part)) for server, part in parts.items()]
        self._loads.update(parts.keys())
        return loads


class _Shadow:
    """What a server has been given before it opens. Loads come in any order: what has ended once does not come back."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, int], Held] = {}
        self.opening: Open | None = None
        self._ended: set[tuple[str, int]] = set()
        self._places: dict[ServerAddress, set[int]] = {}

    def load(self, message: Load) -> None:
        self._places.setdefault(message.source, set()).add(message.place)
        for held, is_held in message.entries:
            name = (held.client, held.number)
            if not is_held:
                self._ended.add(name)
                self.held.pop(name, None)
            elif name not in self._ended:
                self.held[name] = held

    def complete(self) -> Open | None:
        """The message that opens the server, once all the loads that it announces are here."""
        if self.opening is None:
            return None
        expected = self.opening.loads.items()
        return self.opening if all(len(self._places.get(source, ())) == count for source, count in expected) else None


class Farm:
    """The servers of one process, by address. Makes and forgets them as the directory says."""

    def __init__(self, match: Match) -> None:
        self.servers: dict[ServerAddress, RowServer] = {}
        self._match = match
        self._retired = 0

    def receive(self, message: ToServer) -> list[Message]:
        """Passes a message to its server. A write of a version that is gone is refused."""
        address = message.to
        if isinstance(message, Build) and address not in self.servers and address.version > self._retired:
            self.servers[address] = RowServer(address, message.partition, self._match)
        server = self.servers.get(address)
        if server is not None and isinstance(message, Retire):
            self._retired = max(self._retired, address.version)
            del self.servers[address]
        if server is not None:
            return server.receive(message)
        return [Answer(message.client, address, message.number, False)] if isinstance(message, Write) else []
