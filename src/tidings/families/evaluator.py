"""How a family evaluates its subscriptions over rows that all share: the protocol of the strategy `shared`.

A micro-batch is one list of events: changes of all tables, creations and drops, merged by sequence number. A family gets the
whole list in one call and says who is told what, so the cost in Python calls depends on neither forms nor events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol

from tidings.kernels.lives import Lives
from tidings.kernels.rows import I64, U8, Rows
from tidings.model.catalog import Catalog
from tidings.model.points import PointBatch

CHANGE, CREATE, DROP = 0, 1, 2
"""Kinds of events."""


class Events(NamedTuple):
    """A micro-batch in order; at equal seq a change stands before creations and drops. All arrays [events]."""

    kind: I64
    seq: I64
    table: I64
    """Of a change: number of its table; else NONE."""
    old: I64
    """Of a change: the row's version before, NONE for an insert."""
    new: I64
    """Of a change: the row's version after, NONE for a delete."""
    slot: I64
    """Of a creation or drop: the subscription, of whatever family."""


class Projections(NamedTuple):
    """What subscriptions show, by number: projection p has entries starts[p]:starts[p + 1]."""

    starts: I64
    side: I64
    """[entries]: place of the table in FROM; 0 where there is one."""
    table: I64
    column: I64
    header: I64
    """[entries + 1]: where the text before the value stands in `headers`: brace or comma, name, colon."""
    headers: U8


class Told(NamedTuple):
    """Who is told what. A creation has exactly one entry, its snapshot; a change at most one per subscription."""

    event: I64
    slot: I64
    tail: I64
    """[told]: number of what the subscription is told; those told the same share one."""
    tails: I64
    """[tails, 4]: event, projection, first change, end of changes."""
    changes: I64
    """[changes, 2]: old and new item, NONE for none."""
    sources: I64
    """[items, sides]: versions that a joined row is made of; [0, 0] where an item is a version itself."""


class Store(Protocol):
    """Rows of all tables, as evaluators see them."""

    @property
    def rows(self) -> Rows: ...
    @property
    def handles(self) -> I64:
        """Of the arrays of `rows`."""
        ...

    def number(self, table: str) -> int:
        """The number of a table."""
        ...

    def current(self, table: int) -> I64:
        """Versions of the table's current rows; during `add` those from before the micro-batch."""
        ...

    def pack(self, versions: I64) -> Any:
        """These versions as something `tidings.model.blob.pack` takes."""
        ...

    def unpack(self, state: Any) -> I64:
        """Versions that `pack` was given, which need not be current; the caller pins them."""
        ...


class Evaluator(ABC):
    """All subscriptions of one family in one replica."""

    name: ClassVar[str]
    remembers: ClassVar[bool] = True
    """False where `apply` alters nothing: then it need not be called when state is restored from a log."""

    def __init__(self, catalog: Catalog, store: Store) -> None:
        self.catalog = catalog
        self.store = store

    @abstractmethod
    def add(self, points: PointBatch, slots: I64, lives: Lives) -> None:
        """Takes new subscriptions of one form, before the events of the micro-batch that creates them are applied.

        slots[i] is the subscription of point i. Rows are as before the micro-batch.
        """

    @abstractmethod
    def apply(self, events: Events, lives: Lives, projections: Projections) -> Told:
        """Goes through a micro-batch; `lives` also has those that are created and dropped in it."""

    @abstractmethod
    def remove(self, slots: I64) -> None:
        """Forgets subscriptions that were dropped in the micro-batch just applied."""

    def dump(self) -> Any:
        """What cannot be found again from current rows and points, as something `tidings.model.blob.pack` takes."""
        return None

    def load(self, state: Any) -> None:
        """Restores what `dump` gave; called when all points have been added again, after the rows."""
        if state is not None:
            raise TypeError(f"{type(self).__name__} has a dump, but cannot load it")

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of memory of the family's structures."""
