"""The protocols that every family implements: placing queries, and turning changes into messages to regions of them.

SQL --shape--> Family.place --> points        (at the door)
change --> Server.change --> messages         (region servers, per form)

How subscriptions are evaluated over shared rows: `families/evaluator.py`.

A form is described by a `FormSpec` (`families/spec.py`). Protocols that only some families need: `families/optional.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import pyarrow as pa

from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import Placement, PointBatch
from tidings.sql.shape import Shape


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


PlainTables = dict[str, dict[Any, dict[str, Any]]]
"""Tables as the reference sees them: name -> primary key -> row."""


class Reference(ABC):
    """The definition of correct answers, by recomputation from plain rows. Tests compare everything with it."""

    @abstractmethod
    def answer(self, shape: Shape, constants: Any, catalog: Catalog, tables: PlainTables, held: Any) -> Any:
        """The answer as a list of rows in any order (a multiset). held: state of the subscription, for a `HoldingReference`."""


class Explanation(ABC):
    """Texts about the family for `tidings explain` and error messages."""

    summary: ClassVar[str]
    """Which queries the family serves, with an example."""

    @abstractmethod
    def lines(self, form: Form, placement: Placement, catalog: Catalog) -> Sequence[tuple[str, str]]:
        """(label, text) of each line that `tidings explain` prints about a query."""


MakeServer = Callable[[Form, Catalog], Server]
"""Makes the server of a form in one shard."""


class Family(ABC):
    """A kind of standing query. There is one instance per process, with no state but the strategies added to it."""

    name: ClassVar[str]
    strategies: ClassVar[tuple[str, ...]]
    """Names of its own message strategies; the first is the default."""
    placed_tag: ClassVar[int] = 1
    """Tag of the boxes of a region in which subscriptions need the message's row; in others they lose it."""
    reference: ClassVar[Reference]
    explanation: ClassVar[Explanation]

    @abstractmethod
    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        """Whether queries of this shape belong to the family."""

    @abstractmethod
    def place(self, shape: Shape, constants: Any, catalog: Catalog) -> Placement:
        """Returns the form and point(s) of a query. `shape.is_plain` holds unless the family is `Disjunctive`."""

    @abstractmethod
    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        """Returns the description of a form: space, tables, sharding, shown columns."""

    @cached_property
    def added(self) -> dict[str, MakeServer]:
        """Message strategies that are not its own, by name (`registry.add_strategy`)."""
        return {}

    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        """Makes the server of a form in one shard. strategy: one of its own, or one that was added."""
        make = self.added.get(strategy)
        return self.own_server(form, catalog, strategy) if make is None else make(form, catalog)

    @abstractmethod
    def own_server(self, form: Form, catalog: Catalog, strategy: str) -> Server:
        """Makes the server of a form in one shard. strategy: one of `strategies`."""
