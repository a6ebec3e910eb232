"""The protocols of region servers: a server turns changes into messages to regions of the points of its form.

change --> Server.change --> messages         (per form, or for all forms of a family)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol

import pyarrow as pa

from research.servers.message import MessageBatch, SnapshotBatch
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.points import PointBatch


class ColumnarRows(Protocol):
    """A table's current rows, as a server reads them when a subscription is created.

    Rows have positions; `alive` [positions] is True where a position holds a current row. `codes` returns the codes and the
    validity of a column, both [positions]; `take` the rows at some positions, `rows` all current rows.
    """

    @property
    def alive(self) -> BoolArray: ...
    def __len__(self) -> int: ...
    def codes(self, column: str) -> tuple[Int64Array, BoolArray]: ...
    def take(self, positions: Int64Array) -> pa.RecordBatch: ...
    def rows(self) -> pa.RecordBatch: ...
    def find(self, keys: Iterable[ChannelKey]) -> Int64Array:
        """Positions of the rows with these primary keys, [keys]; -1 if there is no such row. Keys are encoded as channels."""
        ...


class Memory(Enum):
    """What the messages of a server depend on, apart from the change itself. Decides how `Server` is called."""

    NOTHING = "nothing"
    """On nothing, except whether there are subscriptions at all.

    In the tables stage such a server gets all changes of a table in a micro-batch in one call, after all creations and before
    all drops of the micro-batch; gateways compare seqs to find who hears a message. Other servers get the changes between
    two subscription events in one call.
    """
    POINTS = "points"
    """On the present subscriptions."""
    CHANGES = "changes"
    """On subscriptions and earlier changes. A log replay therefore passes changes to the server."""


class Created(NamedTuple):
    """Result of `Server.create`: the points with final coordinates, and this shard's rows of their snapshots."""

    points: PointBatch
    snapshots: Sequence[SnapshotBatch] = ()


class Server(ABC):
    """Turns changes into messages for one form, or for several forms together, in one shard. Called in sequence order."""

    memory: ClassVar[Memory]

    @abstractmethod
    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        """Returns the messages for changes of one of the tables."""

    @abstractmethod
    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        """Adds new subscriptions. Returns their points with final coordinates, and this shard's rows of their snapshots.

        A server of the tables stage may choose coordinates along axes that zones are not cut along; other servers must return
        the points unchanged. tables: current rows of the shard, including those from before the server was made.
        wants_snapshots: False during a log replay.
        """

    @abstractmethod
    def drop(self, points: PointBatch) -> None:
        """Removes subscriptions."""


MakeServer = Callable[[Form, Catalog], Server]
"""Makes the server of a form in one shard."""


# What only some servers are


class FamilyServer(Server):
    """A server for all forms of its family in a shard. Without it each form has a server of its own."""


class Remembering(ABC):
    """A server with state that a dump must include."""

    @abstractmethod
    def dump(self) -> Any:
        """State as something `tidings.model.blob.pack` takes; `load` on a new server restores it."""

    @abstractmethod
    def load(self, state: Any) -> None: ...


class Moving(ABC):
    """A server that moves points of earlier subscriptions when others are created. For senders; stages cannot follow."""

    @abstractmethod
    def moved(self) -> PointBatch | None:
        """Subscriptions that lie elsewhere since the last call, as dropped and created again; None if there are none."""


class Interleaving(ABC):
    """A server of several tables that takes changes of all of them in one call."""

    @abstractmethod
    def change_many(self, changes: Sequence[TableChanges]) -> Iterable[MessageBatch]:
        """Messages for changes of several tables. changes: at most one batch per table.

        Messages of one seq must be in one batch, in order; the batches may be in any order.
        """


class Replanning(ABC):
    """A server that may change its plan while it runs."""

    @abstractmethod
    def decide(self) -> Any:
        """Returns a plan change to log, or None. Called once per micro-batch.

        A plan change must be something `tidings.model.blob.pack` takes. During a log replay `decide` is not called: the
        server follows the logged plan changes. Apart from these its messages may depend on current rows and points only.
        """

    @abstractmethod
    def follow(self, decision: Any, seq: int) -> Iterable[MessageBatch]:
        """Carries out a plan change, after the change with this seq. Returns the messages that this takes."""

    @abstractmethod
    def recover(self) -> None:
        """Called after a log replay. What was sent earlier is unknown: assume any subscriber may hold any older row."""
