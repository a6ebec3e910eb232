"""The protocols that every family implements.

SQL --shape--> Family.place --> points                (at the door)
points, changes --> Family.evaluator --> who is told what

What an evaluator is: `families/evaluator.py`. A form is described by a `FormSpec` (`families/spec.py`). Protocols that only
some families need: `families/optional.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog
from tidings.model.points import Placement
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store

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


class Family(ABC):
    """A kind of standing query. There is one instance per process, without state."""

    name: ClassVar[str]
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
        """Returns the description of a form: space, tables, shown columns."""

    @abstractmethod
    def evaluator(self, catalog: Catalog, store: Store) -> Evaluator:
        """Makes the evaluator of all subscriptions of the family in one replica."""
