"""What only some families, servers and views need, each a small protocol of its own to inherit from beside the required one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tidings.families.protocols import PlainTables, Reference, Server, Views
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.sql.compiler import Clause
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store

SHARED = "shared"
"""The strategy of evaluating subscriptions over rows that all of them share; others send messages to regions."""


# Families


class Evaluating(ABC):
    """A family with the strategy `shared`."""

    @abstractmethod
    def evaluates(self, form: Form) -> bool:
        """Whether subscriptions of the form can be evaluated over shared rows."""

    def needs_shared_rows(self, form: Form) -> bool:
        """Whether they can be evaluated in no other way, whatever strategy is asked for."""
        return False

    @abstractmethod
    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        """What evaluates them."""


class Objection(NamedTuple):
    """Why a family cannot serve a query that is of its kind: the problem, the clause to point at, what would work."""

    problem: str
    clause: Clause
    hint: str


class Objecting(ABC):
    """A family that cannot serve all queries of the shapes it claims."""

    @abstractmethod
    def objection(self, shape: Shape, catalog: Catalog) -> Objection | None:
        """Why a query of a shape that the family claims cannot be served after all."""


class Disjunctive(ABC):
    """A family whose queries may have several disjuncts and ask for null (`Shape.disjuncts`, `Shape.nulls`)."""

    @abstractmethod
    def serves_disjuncts(self, shape: Shape) -> bool:
        """Whether a query of a shape that the family claims, and that is not plain, can be served."""


class Parametric(ABC):
    """A family with strategies that have a parameter, beside those it lists."""

    @abstractmethod
    def has_strategy(self, name: str) -> bool: ...


class Netting(ABC):
    """A family that can serve those who want no more than the net effect of each micro-batch."""

    @abstractmethod
    def net(self, form: Form) -> Form | None:
        """The form of the same queries for them; None: there is none.

        What a subscription of such a form is told carries the last seq of the changes it sums up.
        """


class Carrying(ABC):
    """A family whose messages may be for several forms, each of which wants the payload in columns of its own."""

    @abstractmethod
    def carried(self, form: Form, messages: MessageBatch, catalog: Catalog) -> pa.RecordBatch:
        """The payload of messages to several forms, of which this is one, as its views read it."""


class Trace(ABC):
    """Follows one subscription through the changes of its table, to say afterwards why it was told what, and when."""

    @abstractmethod
    def change(self, changes: TableChanges) -> None:
        """Changes to any table, from the first on, in sequence order."""

    @abstractmethod
    def lines(self) -> Sequence[tuple[str, str]]:
        """(label, text) of where the subscription stands now."""


class Tracing(ABC):
    """A family whose answers do not follow from the current rows alone."""

    @abstractmethod
    def trace(self, shape: Shape, constants: Any, catalog: Catalog, born: int) -> Trace:
        """A trace of a subscription created after `born`."""


class HoldingReference(Reference):
    """The reference of a family whose answers depend on what was told before."""

    @abstractmethod
    def hold(self, shape: Shape, constants: Any, catalog: Catalog, tables: PlainTables, held: Any) -> Any:
        """What a subscription holds now, given what it held before (None: it is new)."""


# Servers


class FamilyServer(Server):
    """A server that takes the subscriptions of all forms of its family that come to a shard."""


class Remembering(ABC):
    """A server with state to be restored: who listens, or what it makes of rows."""

    @abstractmethod
    def dump(self) -> Any:
        """State as something `tidings.model.blob.pack` takes; `load` on a new server restores it."""

    @abstractmethod
    def load(self, state: Any) -> None: ...


class Interleaving(ABC):
    """A server of several tables that need not go from one change of table to the next, as tables may change in turn."""

    @abstractmethod
    def stretch(self, changes: Sequence[TableChanges]) -> Iterable[MessageBatch]:
        """Messages for all changes up to some moment, of all tables, at most one batch each.

        Messages of one seq must be together, in order; beyond that batches may come in any.
        """


class Replanning(ABC):
    """A server, where rows are sent on to, that may come to do its work otherwise."""

    @abstractmethod
    def decide(self) -> Any:
        """What to do otherwise from now on, asked at the end of each micro-batch; None: nothing.

        Decisions, something `pack` takes, are kept in the log. So a server that is restored follows those made before
        rather than making its own, and all else may depend on nothing but rows and points as they are.
        """

    @abstractmethod
    def follow(self, decision: Any, seq: int) -> Iterable[MessageBatch]:
        """Does as decided, after a later change, whose seq this is; sends what that takes."""

    @abstractmethod
    def recover(self) -> None:
        """Called after a log replay. What was sent earlier is unknown: assume any subscriber may hold any older row."""


# Views


class RememberingViews(Views):
    """Views that hold more than their points: `snapshots` and `tell` alter state.

    Messages come in sequence order, those of one seq in the order of their own batch; between shards there is none. Both
    calls are made again when state is restored from a log.
    """

    def is_memorable(self, batch: MessageBatch | SnapshotBatch) -> bool:
        """False for batches that leave state as it is, which need not be kept in the log."""
        return True

    @abstractmethod
    def dump(self, slots: Int64Array) -> Any:
        """What the views of these slots hold beyond their points, as something `pack` takes."""

    @abstractmethod
    def load(self, slots: Int64Array, state: Any) -> None:
        """Restores what `dump` gave; the same views may now have other slots."""
