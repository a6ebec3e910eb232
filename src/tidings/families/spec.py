"""Description of a form as a value: the space of its points, the tables it reads, its sharding, the columns it shows."""

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
class ByRow:
    """Served in the tables stage, in every shard: a change is handled knowing its own row only. All shards know all points."""


@dataclass(frozen=True)
class ByKey:
    """Served in the tables stage, in the shard of the row that a point follows. Only that shard knows the point, and may choose
    its coordinates.
    """

    components: tuple[int, ...]
    """For each column of the row's primary key, its place among the components of the channel."""


@dataclass(frozen=True)
class ByValues:
    """Served in the forms stage; rows with equal values in these columns meet in one shard."""

    columns: tuple[tuple[str, tuple[str, ...]], ...]
    """(table, its columns) for each table."""


@dataclass(frozen=True)
class Together:
    """Served in the forms stage, all rows of the tables in one shard. Colocation key: forms with equal keys share the shard."""

    key: str


Sharding = ByRow | ByKey | ByValues | Together


@dataclass(frozen=True)
class FormSpec:
    """What the pipeline and the network need to know of a form."""

    space: ParameterSpace
    tables: tuple[str, ...]
    """In the order of FROM."""
    sharding: Sharding
    shown: tuple[tuple[ColumnRef, str], ...]
    """(column, its name in the output) for each column of a row of the answer."""

    @property
    def is_with_rows(self) -> bool:
        """Whether the form is served in the tables stage; else in the forms stage."""
        return isinstance(self.sharding, ByRow | ByKey)


def shown_of_table(shape: Shape, catalog: Catalog) -> tuple[tuple[ColumnRef, str], ...]:
    """The shown columns of a query of one table, each under its own name."""
    table = shape.tables[0]
    every = (ColumnRef(table, name) for name in catalog.table(table).column_names)
    return tuple((ref, ref.column) for ref in (every if shape.projection is None else shape.projection))
