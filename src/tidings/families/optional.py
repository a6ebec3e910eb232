"""What only some families, servers and views need, each a small protocol of its own to inherit from beside the required one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tidings.families.protocols import Pairs, PlainTables, Reference, Server, Views
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
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


class Projecting(ABC):
    """A family whose messages may be for several forms, each of which wants the payload in columns of its own."""

    @abstractmethod
    def project(self, form: Form, messages: MessageBatch, catalog: Catalog) -> pa.RecordBatch:
        """The payload of messages to several forms, of which this is one, as its views read it."""


class Gathering(ABC):
    """A family whose message strategies have one form for many of those that the door knows."""

    @abstractmethod
    def gathered(self, points: PointBatch, catalog: Catalog) -> PointBatch:
        """Points of one form, as the door gives them, in the form they have for message strategies.

        A subscription has one point there, and its drop the same as its creation.
        """


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
    """A server of several tables that can take changes of all of them at once."""

    @abstractmethod
    def change_many(self, changes: Sequence[TableChanges]) -> Iterable[MessageBatch]:
        """Messages for all changes up to some moment, at most one batch per table.

        Messages of one seq must be in one batch, in order; the batches may come in any order.
        """


class Replanning(ABC):
    """A server that may change its plan while it runs."""

    @abstractmethod
    def decide(self) -> Any:
        """Returns a plan change to log, or None. Called once per micro-batch.

        Plan changes are something `tidings.model.blob.pack` takes. A restored server follows those in the log and makes none
        of its own; all else it does depends on current rows and points alone.
        """

    @abstractmethod
    def follow(self, decision: Any, seq: int) -> Iterable[MessageBatch]:
        """Carries a plan change out, after the change with this seq; gives the messages that this takes."""

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


class Matching(ABC):
    """Views that find out themselves, with an index of their own, whom messages concern; gateways keep none for them.

    Messages come as they were sent, with regions along the axes they name. `Views.tell` is given what `find` gave, or,
    where messages name their subscriptions, pairs of these.
    """

    @abstractmethod
    def find(self, messages: MessageBatch, moved: Int64Array, born: Int64Array, died: Int64Array) -> Pairs:
        """Who is told of messages.

        moved: slots created or dropped in this micro-batch; of these those with born[slot] < seq <= died[slot] are told,
        of all others everyone.
        """

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the index."""
