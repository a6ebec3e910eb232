"""The protocols every family of subscriptions implements: where a query lies, how changes become messages, what clients see.

SQL --shape--> Family.place --> points        (at the door)
change --> Server.change --> messages         (at the server, per form)
message + points it reached --> Views.tell    (at the gateway, per form)

What a form is says a value (`families/spec.py`); what only some families need is in `families/optional.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.notification import snapshot_tail
from tidings.model.points import Placement, PointBatch
from tidings.sql.shape import Shape


class Rows(Protocol):
    """A table's current rows, as servers see them when a subscription is created.

    Rows sit at positions; `alive` tells which positions hold a current row.
    """

    @property
    def alive(self) -> BoolArray: ...
    def __len__(self) -> int: ...
    def codes(self, column: str) -> tuple[Int64Array, BoolArray]: ...
    def take(self, positions: Int64Array) -> pa.RecordBatch: ...
    def rows(self) -> pa.RecordBatch: ...
    def find(self, keys: Iterable[ChannelKey]) -> Int64Array:
        """Positions of the rows with these primary keys, written as channels are; -1 where there is none."""
        ...


class Memory(Enum):
    """What the messages of a server depend on beside the change itself."""

    NOTHING = "nothing"
    """On nothing but whether anybody might listen.

    Such a server gets all changes of a micro-batch at once, when those who came are there and those who go are not yet
    gone: gateways know who hears what. Others get them cut at every moment somebody comes or goes.
    """
    POINTS = "points"
    """On who listens."""
    CHANGES = "changes"
    """On earlier changes too, which are played again when state is restored from a log."""


class Created(NamedTuple):
    """New subscriptions as a server has taken them in: where they lie, and this shard's rows of their snapshots."""

    points: PointBatch
    snapshots: Sequence[SnapshotBatch] = ()


class Server(ABC):
    """The work of a form, or of several together, at the server, in one shard. Calls come in sequence order."""

    memory: ClassVar[Memory]

    @abstractmethod
    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        """Messages for changes of one of the tables."""

    @abstractmethod
    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        """Takes new subscriptions; gives them back where they are to lie, and this shard's rows of their snapshots.

        A server hosted with the rows may choose coordinates along axes that zones are not cut along; others give the
        points back as they came. `tables` are the current rows of the shard, also those that came before the server
        did. Nobody waits for snapshots while state is being restored.
        """

    @abstractmethod
    def drop(self, points: PointBatch) -> None:
        """Forgets subscriptions."""


@dataclass(frozen=True)
class Told:
    """What views tell: subscription slot `slot[i]` is told `tails[tail[i]]` at `seq[i]`."""

    seq: Int64Array
    slot: Int64Array
    tail: Int64Array
    tails: list[str]


@dataclass(frozen=True)
class FirstRows:
    """First rows of new views: the view at slot[i], created after seq[i], starts with rows[starts[i]:starts[i + 1]].

    Where no view has any, there are no `rows`. They come from many shards, and so in any order.
    """

    slot: Int64Array
    seq: Int64Array
    starts: Int64Array
    rows: pa.RecordBatch | None

    def tails(self, texts: Sequence[str]) -> list[str]:
        """The lines' tails, given each row as text. Sorting makes a line the same every time."""
        cuts = self.starts.tolist()
        return [
            snapshot_tail(seq, sorted(texts[start:stop]))
            for seq, start, stop in zip(self.seq.tolist(), cuts[:-1], cuts[1:], strict=True)
        ]


@dataclass(frozen=True)
class Pairs:
    """Deliveries: message `message[i]` of the batch has reached the point at `slot[i]`, with `tags[i]` of its region."""

    message: Int64Array
    slot: Int64Array
    tags: np.ndarray[Any, np.dtype[np.uint8]]


class Views(ABC):
    """The held state of all subscriptions of one form at one gateway; subscriptions are known by slot."""

    @abstractmethod
    def create(self, slots: Int64Array, points: PointBatch) -> None:
        """Starts views for new points."""

    @abstractmethod
    def drop(self, slots: Int64Array) -> None:
        """Ends views."""

    @abstractmethod
    def snapshots(self, first: FirstRows) -> list[str]:
        """Fills new views with their first rows and gives the tail of each one's line."""

    @abstractmethod
    def tell(self, messages: MessageBatch, pairs: Pairs) -> Told:
        """Applies delivered messages and tells what changed: at most once per subscription and seq.

        Batches of several shards come one by one, in any order, unless views remember (`RememberingViews`).
        """


PlainTables = dict[str, dict[Any, dict[str, Any]]]
"""Tables as the reference sees them: name -> primary key -> row."""


class Reference(ABC):
    """The definition of what is right: answers recomputed from plain rows."""

    is_by_row: ClassVar[bool] = False
    """Whether an answer is that to each row alone, taken together, with at most one row of each."""

    @abstractmethod
    def answer(self, shape: Shape, constants: Any, catalog: Catalog, tables: PlainTables, held: Any) -> Any:
        """The query's result from plain rows and what it holds (`HoldingReference`), as a list of rows (a multiset)."""


class Explanation(ABC):
    """What the family does, in words."""

    summary: ClassVar[str]
    """What it serves, with an example."""

    @abstractmethod
    def lines(self, form: Form, placement: Placement, catalog: Catalog, strategy: str) -> Sequence[tuple[str, str]]:
        """(label, text) of one query, for `tidings explain`."""


class Family(ABC):
    """A kind of standing query. Stateless: one instance serves all."""

    name: ClassVar[str]
    strategies: ClassVar[tuple[str, ...]]
    """Names of the ways to reformulate; the first is the default."""
    reference: ClassVar[Reference]
    explanation: ClassVar[Explanation]

    @abstractmethod
    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        """Whether queries of this shape belong to the family."""

    @abstractmethod
    def place(self, shape: Shape, constants: Any, catalog: Catalog) -> Placement:
        """The form and point(s) of a query; `shape.is_plain` unless the family is `Disjunctive`."""

    @abstractmethod
    def spec(self, form: Form, catalog: Catalog) -> FormSpec:
        """What a form is."""

    @abstractmethod
    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server: ...

    @abstractmethod
    def views(self, form: Form, catalog: Catalog) -> Views: ...
