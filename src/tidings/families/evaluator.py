"""How a family evaluates its subscriptions over rows that all share: the protocol of the strategy `shared`.

A micro-batch is one list of events: changes of all tables, creations and drops, merged by sequence number. A family gets the
whole list in one call and says who is told what, so the cost in Python calls depends on neither forms nor events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np

from tidings.kernels.events import Events, Projections, Told
from tidings.kernels.lives import Lives
from tidings.kernels.rows import I64, Rows
from tidings.model.points import PointBatch

_NOTHING = np.empty(0, np.int64)


class RowSource(Protocol):
    """Rows as those see them who need not keep any."""

    @property
    def rows(self) -> Rows: ...
    @property
    def handles(self) -> I64:
        """Of the arrays of `rows`."""
        ...

    def number(self, table: str) -> int:
        """The number of a table."""
        ...


class Store(RowSource, Protocol):
    """Rows of all tables, as evaluators see them that keep some."""

    def count(self, table: int) -> int:
        """How many rows the table has."""
        ...

    def current(self, table: int) -> I64:
        """Versions of the table's current rows; in `add` those from before the micro-batch. Not for use in `apply`."""
        ...

    def records(self, table: str, versions: I64) -> tuple[I64, I64]:
        """(records of versions of a table, [versions, words], how they are laid out)."""
        ...

    def texts_of(self, version: int) -> list[bytes]:
        """The values of a version as texts of output, `null` for null; of internal columns as they are kept."""
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
        """Forgets subscriptions that were dropped in the micro-batch just applied, and what was kept for nobody else.

        Rows are as after the micro-batch.
        """

    def held(self) -> tuple[I64, I64]:
        """(slots, versions): rows of which a subscription was last told otherwise than they are, as it was told them."""
        return _NOTHING, _NOTHING

    def dump(self, numbers: I64 | None = None) -> Any:
        """What cannot be found again from current rows and points, as something `tidings.model.blob.pack` takes.

        numbers: [slots], the slot that each subscription has in the dump, NONE for those that are left out; None: all as here.
        """
        return None

    def load(self, state: Any) -> None:
        """Restores what `dump` gave; called when all points have been added again, after the rows."""
        if state is not None:
            raise TypeError(f"{type(self).__name__} has a dump, but cannot load it")

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Approximate bytes of the family's structures. Called once per micro-batch: takes no time per subscription."""
