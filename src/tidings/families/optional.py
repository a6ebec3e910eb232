"""Protocols that only some families and servers implement, each by inheriting from it beside the required base class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pyarrow as pa

from tidings.families.protocols import Explanation, PlainTables, Reference, Server
from tidings.families.spec import Form
from tidings.model.catalog import Catalog, Table
from tidings.model.change import TableChanges
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.sql.compiler import Clause
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store

SHARED = "shared"
"""Name of the strategy that evaluates subscriptions over rows shared by all. All other strategies send messages to regions."""


# Families


class Evaluating(ABC):
    """A family with the strategy `shared`."""

    @abstractmethod
    def evaluates(self, form: Form) -> bool:
        """Whether subscriptions of the form can be evaluated over shared rows."""

    def needs_shared_rows(self, form: Form) -> bool:
        """Whether the form has no message strategy, so that `shared` is used even if another strategy is asked for."""
        return False

    @abstractmethod
    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        """Makes the evaluator of all subscriptions of the family in one replica."""


class Publishing(ABC):
    """A family that serves tables whose rows are written in a language of their own, which is compiled when a row comes in."""

    @abstractmethod
    def compiler(self, table: Table, catalog: Catalog) -> Callable[[str], bytes]:
        """A function from a row's text to what is kept with the row; it raises SqlError for a text that makes no sense."""


class Objection(NamedTuple):
    """Why a family cannot serve a query of a shape that it claims: the problem, the clause to point at, what would work."""

    problem: str
    clause: Clause
    hint: str


class Objecting(ABC):
    """A family that cannot serve all queries of the shapes it claims."""

    @abstractmethod
    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        """Why a query of a claimed shape cannot be served; None if it can."""


class Disjunctive(ABC):
    """A family that serves queries with several disjuncts or IS NULL (`Shape.disjuncts`, `Shape.nulls`)."""

    @abstractmethod
    def serves_disjuncts(self, shape: Shape) -> bool:
        """Whether a query of a claimed shape that is not plain can be served."""


class Projecting(ABC):
    """A family whose messages may be addressed to several forms, each with its own payload columns."""

    @abstractmethod
    def project(self, form: Form, messages: MessageBatch, catalog: Catalog) -> pa.RecordBatch:
        """The payload of messages addressed to several forms, in the columns that views of `form`, one of these, read."""


class Gathering(ABC):
    """A family whose message strategies use other forms than the door: one for many of these, or many for one."""

    @abstractmethod
    def gathered(self, points: PointBatch, catalog: Catalog) -> Sequence[PointBatch]:
        """Points of one form of the door as points of the forms that message strategies use, a batch of each form.

        A subscription has one point there; its drop must have the same point as its creation.
        """


class ChannellessExplanation(Explanation):
    """Of a family without channels, whose index is like no other's: it has words of its own for the strategy `shared`."""

    shared_costs: ClassVar[str]
    """What a change costs with the strategy `shared`."""
    shared_only: ClassVar[str]
    """Which queries have no message strategy (`Evaluating.needs_shared_rows`)."""


class Trace(ABC):
    """Follows one subscription through the changes, to explain afterwards which notifications it got and why."""

    @abstractmethod
    def change(self, changes: TableChanges) -> None:
        """Takes changes of any table. Must be called with all changes, in sequence order."""

    @abstractmethod
    def lines(self) -> Sequence[tuple[str, str]]:
        """(label, text) of each line that describes the subscription's present state."""


class Tracing(ABC):
    """A family whose answers depend on earlier rows too, so that explaining one takes a trace."""

    @abstractmethod
    def trace(self, shape: Shape, constants: Any, catalog: Catalog, born: int) -> Trace:
        """Makes a trace of a subscription created after seq `born`."""


class HoldingReference(Reference):
    """The reference of a family whose answers depend on earlier notifications."""

    @abstractmethod
    def hold(self, shape: Shape, constants: Any, catalog: Catalog, tables: PlainTables, held: Any) -> Any:
        """New state of a subscription, given its state before these changes (None: it is new)."""


class RowReference(Reference):
    """The reference of a family whose answer to several rows is the answers to each row alone, at most one row each."""


class PlacedReference(Reference):
    """The reference of a family whose answer is made of rows that keep their place when their values change."""

    @abstractmethod
    def placed(self, shape: Shape, constants: Any, catalog: Catalog, tables: PlainTables) -> dict[Any, dict[str, Any]]:
        """The rows of the answer by place (primary keys of the rows they are made of), in the order changes are told in."""

    def answer(self, shape: Shape, constants: Any, catalog: Catalog, tables: PlainTables, held: Any) -> Any:
        return list(self.placed(shape, constants, catalog, tables).values())


# Servers


class FamilyServer(Server):
    """A server for all forms of its family in a shard. Without it each form has a server of its own."""


class Remembering(ABC):
    """A server with state that a dump must include."""

    @abstractmethod
    def dump(self) -> Any:
        """State as something `tidings.model.blob.pack` takes; `load` on a new server restores it."""

    @abstractmethod
    def load(self, state: Any) -> None: ...


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
