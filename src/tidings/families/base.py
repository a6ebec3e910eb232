"""The protocols every family of subscriptions implements: where a query lies, how changes become messages, what clients see.

SQL --shape--> Family.place --> points        (at the door)
change --> Server.change --> messages         (at the server, per form)
message + points it reached --> Views.tell    (at the gateway, per form)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges, runs_of
from tidings.model.channel import ChannelKey
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.notification import snapshot_tail
from tidings.model.points import Placement, PointBatch
from tidings.sql.compiler import Clause
from tidings.sql.shape import ColumnRef, Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store

SHARED = "shared"
"""The strategy of evaluating subscriptions over rows that all of them share; others send messages to regions."""


class Partition(Enum):
    """How the work of a form is spread over shards."""

    ROW = "row"
    """With the rows themselves, by primary key: each change can be handled knowing its own row alone."""
    VALUE = "value"
    """By the values of certain columns (`Family.partition_columns`): rows with equal values meet in one shard."""


@dataclass(frozen=True)
class Form:
    """All subscriptions of one shape in one family: one parameter space. `variant` is the family's own distinction."""

    family: str
    shape: Shape
    variant: str = ""

    @cached_property
    def key(self) -> str:
        """Text that identifies the form in every process and from which it can be made again."""
        return msgspec.json.encode((self.family, self.shape, self.variant)).decode()

    @staticmethod
    def from_key(key: str) -> Form:
        family, shape, variant = msgspec.json.decode(key, type=tuple[str, Shape, str])
        return Form(family, shape, variant)


PlainTables = dict[str, dict[Any, dict[str, Any]]]
"""Tables as the reference sees them: name -> primary key -> row."""


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


class Created(NamedTuple):
    """New subscriptions as a server has taken them in: where they lie, and this shard's rows of their snapshots."""

    points: PointBatch
    snapshots: Sequence[SnapshotBatch] = ()


class Objection(NamedTuple):
    """Why a family cannot serve a query that is of its kind: the problem, the clause to point at, what would work."""

    problem: str
    clause: Clause
    hint: str


class Server(ABC):
    """The work of a form, or of several together, at the server, in one shard. Calls come in sequence order."""

    remembers_changes: ClassVar[bool] = False
    """True where `change` alters state: then changes are played again when state is restored from a log."""

    is_oblivious: ClassVar[bool] = False
    """True where messages depend on the change alone, and on nothing but whether anybody might listen.

    Such a server gets all changes of a micro-batch at once, when those who came are there and those who go are not yet
    gone: gateways know who hears what. Others get them cut at every moment somebody comes or goes.
    """

    @abstractmethod
    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        """Messages for changes of one of the tables."""

    def stretch(self, changes: Sequence[TableChanges]) -> Iterable[MessageBatch]:
        """For Partition.VALUE: messages for all changes up to some moment, of all tables, at most one batch each.

        Messages of one seq must be together, in order; beyond that batches may come in any. This goes from one change of table
        to the next, which for tables that change in turn is often; a server that knows better does better.
        """
        for run in runs_of(changes):
            yield from self.change(run)

    @abstractmethod
    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        """Takes new subscriptions; gives them back where they are to lie, and this shard's rows of their snapshots.

        A server hosted with the rows may choose coordinates, where zones are not cut (`Family.cuts`); others give the
        points back as they came. `tables` are the current rows of the shard, also those that came before the server
        did. Nobody waits for snapshots while state is being restored.
        """

    @abstractmethod
    def drop(self, points: PointBatch) -> None:
        """Forgets subscriptions."""

    def decide(self) -> Any:
        """For Partition.VALUE: what to do otherwise from now on, asked at the end of each micro-batch; None: nothing.

        Decisions, something `pack` takes, are kept in the log. So a server that is restored follows those made before
        rather than making its own, and all else may depend on nothing but rows and points as they are.
        """
        return None

    def follow(self, decision: Any, seq: int) -> Iterable[MessageBatch]:
        """Does as decided, after a later change, whose seq this is; sends what that takes."""
        raise TypeError(f"{type(self).__name__} has decided something, but cannot follow")

    def recover(self) -> None:
        """For Partition.VALUE: changes have just been played again, summed up, and nothing sent: others once sent more.

        A server that relies on what it has sent must not do so for what came before.
        """
        return

    @abstractmethod
    def dump(self) -> Any:
        """State as something `tidings.model.blob.pack` takes; `load` on a new server restores it."""

    @abstractmethod
    def load(self, state: Any) -> None: ...


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

    wants_order: ClassVar[bool] = False
    """True where messages must be applied in sequence order; else batches of several shards are told one by one.

    Messages of one seq keep the order of their own batch; between shards there is none.
    """
    remembers: ClassVar[bool] = False
    """True where `snapshots` and `tell` alter state: then they are called again when state is restored from a log."""

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
        """Applies delivered messages and tells what changed: at most once per subscription and seq."""

    def is_memorable(self, batch: MessageBatch | SnapshotBatch) -> bool:
        """For views that remember: False for batches that leave state as it is, which need not be kept in the log."""
        return True

    def dump(self, slots: Int64Array) -> Any:
        """What the views of these slots hold beyond their points, as something `pack` takes."""
        return None

    def load(self, slots: Int64Array, state: Any) -> None:
        """Restores what `dump` gave; the same views may now have other slots."""
        if state is not None:
            raise TypeError(f"{type(self).__name__} has a dump, but cannot load it")


class Trace(ABC):
    """Follows one subscription through the changes of its table, to say afterwards why it was told what, and when."""

    @abstractmethod
    def change(self, changes: TableChanges) -> None:
        """Changes to any table, from the first on, in sequence order."""

    @abstractmethod
    def lines(self) -> Sequence[tuple[str, str]]:
        """(label, text) of where the subscription stands now."""


class Family(ABC):
    """A kind of standing query. Stateless: one instance serves all."""

    name: ClassVar[str]
    strategies: ClassVar[tuple[str, ...]]
    """Names of the ways to reformulate; the first is the default."""
    partition: ClassVar[Partition] = Partition.ROW
    summary: ClassVar[str]

    @abstractmethod
    def claims(self, shape: Shape, catalog: Catalog) -> bool:
        """Whether queries of this shape belong to the family."""

    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        """Why a query of a shape that the family claims cannot be served after all."""
        return None

    def has_strategy(self, name: str) -> bool:
        """Whether there is such a way to reformulate; beside those listed there may be some with a parameter."""
        return name in self.strategies

    @abstractmethod
    def place(self, shape: Shape, constants: Any, catalog: Catalog) -> Placement:
        """The form and point(s) of a query."""

    def net(self, form: Form) -> Form | None:
        """The form of the same queries for those who want no more than the net effect of each micro-batch; None: there is none.

        What a subscription of such a form is told carries the last seq of the changes it sums up.
        """
        return None

    @abstractmethod
    def dims(self, form: Form) -> int:
        """Dimensions of the form's space."""

    @abstractmethod
    def channel_types(self, form: Form, catalog: Catalog) -> tuple[pa.DataType, ...]:
        """Arrow types of the components of the form's channels."""

    @abstractmethod
    def server(self, form: Form, catalog: Catalog, strategy: str) -> Server: ...

    def shares_server(self, strategy: str) -> bool:
        """Whether one server takes the subscriptions of all forms of the family that come to a shard."""
        return False

    def gathers(self, form: Form, *, is_spread: bool) -> str:
        """For Partition.VALUE: forms of one text are served in one shard, where their work is not spread by values.

        `is_spread`: whether there are other shards. Forms that have nothing to do with each other better go to several.
        """
        return form.key

    def heard(self, form: Form, messages: MessageBatch, catalog: Catalog) -> MessageBatch:
        """Messages for several forms, of which this is one, as messages of this form alone."""
        raise TypeError(f"{self.name} has no messages for several forms")

    @abstractmethod
    def views(self, form: Form, catalog: Catalog) -> Views: ...

    def evaluates(self, form: Form) -> bool:
        """Whether subscriptions of the form can be evaluated over shared rows (strategy `shared`)."""
        return False

    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        """What evaluates subscriptions over shared rows."""
        raise TypeError(f"{self.name} has no strategy {SHARED!r}")

    def shown(self, shape: Shape, catalog: Catalog) -> Sequence[tuple[ColumnRef, str]]:
        """The columns of a row of the answer, and the name of each."""
        table = shape.tables[0]
        every = (ColumnRef(table, name) for name in catalog.table(table).column_names)
        return [(ref, ref.column) for ref in (every if shape.projection is None else shape.projection)]

    def hold(self, shape: Shape, constants: Any, catalog: Catalog, tables: PlainTables, held: Any) -> Any:
        """The reference's memory: what a subscription holds now, given what it held before (None: it is new).

        For families whose answers depend on what was told before; all others need none.
        """
        return None

    @abstractmethod
    def answer(self, shape: Shape, constants: Any, catalog: Catalog, tables: PlainTables, held: Any) -> Any:
        """The reference: the query's result from plain rows and what `hold` gave, as a list of rows (a multiset)."""

    @abstractmethod
    def explain(self, form: Form, placement: Placement, catalog: Catalog, strategy: str) -> Sequence[tuple[str, str]]:
        """(label, text) lines for `tidings explain`."""

    def trace(self, shape: Shape, constants: Any, catalog: Catalog, born: int) -> Trace | None:
        """A trace of a subscription created after `born`; None where answers follow from the current rows alone."""
        return None

    def follows_rows(self, form: Form, catalog: Catalog) -> bool:
        """For Partition.ROW: True where a point's channel is the primary key of the one row it looks at.

        Then a point is known only to the shard of its row, which lets its server choose the point's coordinates.
        """
        return False

    def cuts(self, form: Form) -> Sequence[bool] | None:
        """Which coordinates zones may be cut along, the channel first; None: all.

        Not along those a server chooses, for a drop must find the zone without it; nor between the points of one
        subscription if its view looks at all of them.
        """
        return None

    def partition_columns(self, form: Form) -> dict[str, tuple[str, ...]]:
        """For Partition.VALUE: per table the columns whose values decide the shard; none: the form stays in one shard."""
        return {}
