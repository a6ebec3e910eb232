"""Protocols that only some families implement, each by inheriting from it beside the required base class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tidings.families.protocols import Explanation, PlainTables, Reference
from tidings.families.spec import Form
from tidings.model.catalog import Catalog, Table
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.points import PointBatch
from tidings.model.region import Regions
from tidings.sql.compiler import Clause
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Store

SHARED = "shared"
"""Name of the strategy that evaluates subscriptions over rows shared by all: every family's own."""
REGION = "region"
"""Name of the strategy by which rows find gateways by regions (`Regional`), where subscriptions are evaluated as ever."""


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


class RegionSpace(NamedTuple):
    """A space that subscriptions of a table are points in, by the ends of their ranges: (lo, hi) along each of some axes."""

    family: str
    table: Table
    axes: tuple[int, ...]
    """Numbers of columns, or of `Table.axes`, as the family likes."""


class SpacePoints(NamedTuple):
    """Subscriptions as points of a space."""

    space: RegionSpace
    at: Int64Array
    """Which points of the door these are; one of each subscription."""
    coords: Int64Array
    """[points, 2 * axes]."""


class Regional(ABC):
    """A family whose rows say, each by itself, where the subscriptions are that need it: in a region of their space.

    A region may hold more points than need the row, and never holds fewer. It depends on neither other rows nor points.
    """

    @abstractmethod
    def is_regional(self, form: Form) -> bool:
        """Whether rows find the subscriptions of a form by regions."""

    @abstractmethod
    def in_space(self, points: PointBatch, catalog: Catalog) -> Sequence[SpacePoints]:
        """Points of one form of the door as points of the spaces that regions are in."""

    @abstractmethod
    def regions(self, space: RegionSpace, store: Store, versions: Int64Array) -> Regions:
        """The region of each version of a row of the table."""


class ChannellessExplanation(Explanation):
    """Of a family without channels, whose index is like no other's: it has words of its own for what a change costs."""

    costs: ClassVar[str]
    """What a change costs."""


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
