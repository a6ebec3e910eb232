"""Description of a form as a value: the space of its points, the tables it reads, the columns it shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec

from tidings.model.catalog import Catalog
from tidings.model.space import ParameterSpace
from tidings.sql.shape import ColumnRef, Shape


@dataclass(frozen=True)
class Form:
    """All subscriptions of one shape in one family; they share a parameter space. variant: any finer distinction it makes.

    is_net: its subscriptions are told the net effect of each micro-batch; families need not know.
    """

    family: str
    shape: Shape
    variant: str = ""
    is_net: bool = False

    @cached_property
    def key(self) -> str:
        """Text that identifies the form in every process; `from_key` makes the form of it."""
        known = (self.family, self.shape, self.variant)
        return msgspec.json.encode((*known, True) if self.is_net else known).decode()

    @staticmethod
    def from_key(key: str) -> Form:
        try:
            return Form(*msgspec.json.decode(key, type=tuple[str, Shape, str]))
        except msgspec.ValidationError:
            return Form(*msgspec.json.decode(key, type=tuple[str, Shape, str, bool]))


@dataclass(frozen=True)
class FormSpec:
    """What the pipeline needs to know of a form."""

    space: ParameterSpace
    tables: tuple[str, ...]
    """In the order of FROM."""
    shown: tuple[tuple[ColumnRef, str], ...]
    """(column, its name in the output) for each column of a row of the answer."""


def shown_of_table(shape: Shape, catalog: Catalog) -> tuple[tuple[ColumnRef, str], ...]:
    """The shown columns of a query of one table, each under its own name."""
    table = shape.tables[0]
    every = (ColumnRef(table, name) for name in catalog.table(table).column_names)
    return tuple((ref, ref.column) for ref in (every if shape.projection is None else shape.projection))
