"""What clients, servers and the directory of a grid say to each other. Values; how they travel is up to the transport.

    client -> directory    Join         the answer is Joined
    client -> server       Write        the answer is Answer
    directory -> server    Build, Copy, Close, Settle, Open, each answered by Built, Copied, Closed, Settled, Opened; Retire
    server -> server       Load
    server -> outside      Report

Messages may arrive in any order and more than once. Those from and to clients may be lost: a client sends them again
(`Client.resend`). Those within the server farm must arrive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tidings.exchange.grid.partition import Constraint, Partition, ServerAddress, Side


@dataclass(frozen=True, slots=True)
class Join:
    """Asks the directory for the partition in force."""

    client: str


@dataclass(frozen=True, slots=True)
class Joined:
    """The partition in force and its version."""

    to: str
    partition: Partition
    version: int


@dataclass(frozen=True, slots=True)
class Write:
    """A client's operation number `number`: the constraint with this id is now this one; None: it is no more."""

    to: ServerAddress
    client: str
    number: int
    side: Side
    id: str
    constraint: Constraint | None
    servers: tuple[ServerAddress, ...]
    """All that are told: whoever holds the constraint before or after."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a write is applied. If not, its version is out of force, and no server of that version has applied it.

    A server that is forgotten refuses even what it had applied. The next try has the same number, so nothing is applied twice.
    """

    to: str
    server: ServerAddress
    number: int
    is_applied: bool


class Kind(Enum):
    """What has become of a pair."""

    MATCH = "match"
    END = "end"
    """The publication is gone, or replaced by a new one with the same id."""


@dataclass(frozen=True, slots=True)
class Report:
    """A pair has come to be, or has ended. Equal reports have equal ids, whichever server makes them, and however often.

    The numbers are those of the writes that made the two constraints: a constraint that is written anew makes new pairs. A
    subscription's own end is not reported, as nobody is left to hear of it. The two reports of a pair may come from different
    servers, and so overtake each other.
    """

    kind: Kind
    client: str
    """Whose subscription it is."""
    publication: str
    publication_number: int
    subscription: str
    subscription_number: int

    @property
    def id(self) -> str:
        """For consumers to tell repeated reports from new ones."""
        numbers = f"{self.publication_number}/{self.subscription_number}"
        return f"{self.kind.value}/{numbers}/{len(self.publication)}/{self.publication}/{self.subscription}"


@dataclass(frozen=True, slots=True)
class Build:
    """A server of the next version begins to exist, empty."""

    to: ServerAddress
    partition: Partition


@dataclass(frozen=True, slots=True)
class Built:
    server: ServerAddress


@dataclass(frozen=True, slots=True)
class Copy:
    """Asks a server to send its next constraints to the servers of the next version, so that `limit` fewer remain."""

    to: ServerAddress
    target: Partition
    limit: int


@dataclass(frozen=True, slots=True)
class Copied:
    server: ServerAddress
    remaining: int


@dataclass(frozen=True, slots=True)
class Held:
    """A constraint that one write made; the client and the number of the write name it for good."""

    client: str
    number: int
    side: Side
    id: str
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class Load:
    """Constraints that a server of the next version is to hold, or no longer (`is_held` false)."""

    to: ServerAddress
    source: ServerAddress
    place: int
    """Counts the loads of this source to this server, from 0."""
    entries: tuple[tuple[Held, bool], ...]


@dataclass(frozen=True, slots=True)
class Close:
    """No write is applied from now on, until `Settle` says which."""

    to: ServerAddress


@dataclass(frozen=True, slots=True)
class Closed:
    """What a closed server has applied: each client's last number, and its last write under this version."""

    server: ServerAddress
    numbers: Mapping[str, int]
    writes: Mapping[str, Write]


@dataclass(frozen=True, slots=True)
class Settle:
    """Writes that other servers applied before they closed. With them the version ends: all others are refused."""

    to: ServerAddress
    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """All is copied: `loads` says how many loads were sent to which server."""

    server: ServerAddress
    loads: Mapping[ServerAddress, int]


@dataclass(frozen=True, slots=True)
class Open:
    """A server of the next version has to serve as soon as it has all loads: so many of each source."""

    to: ServerAddress
    numbers: Mapping[str, int]
    loads: Mapping[ServerAddress, int]


@dataclass(frozen=True, slots=True)
class Opened:
    server: ServerAddress


@dataclass(frozen=True, slots=True)
class Retire:
    """The version is out of force everywhere: the server may be forgotten."""

    to: ServerAddress


ToDirectory = Join | Built | Copied | Closed | Settled | Opened
ToServer = Write | Build | Copy | Load | Close | Settle | Open | Retire
ToClient = Joined | Answer
Message = ToDirectory | ToServer | ToClient | Report
