"""What a form is, as a value: the space its points lie in, the tables it looks at, how its work is sharded, what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec

from tidings.model.catalog import Catalog
from tidings.model.space import ParameterSpace
from tidings.sql.shape import ColumnRef, Shape


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


@dataclass(frozen=True)
class ByRow:
    """With the rows, by primary key: a change can be handled knowing its own row alone. All shards know all points."""


@dataclass(frozen=True)
class ByKey:
    """With the one row that a point follows: only the shard of that row knows the point, and may choose its coordinates."""

    components: tuple[int, ...]
    """Where the columns of the row's primary key stand in the channel."""


@dataclass(frozen=True)
class ByValues:
    """Rows with equal values in these columns meet in one shard."""

    columns: tuple[tuple[str, tuple[str, ...]], ...]
    """Each table, and its columns."""


@dataclass(frozen=True)
class Together:
    """All rows of the tables meet in one shard. Colocation key: forms of a family with equal keys share that shard."""

    key: str


Sharding = ByRow | ByKey | ByValues | Together


@dataclass(frozen=True)
class FormSpec:
    """All that pipeline and network need to know of a form to carry its work and its messages."""

    space: ParameterSpace
    tables: tuple[str, ...]
    """In the order of FROM."""
    sharding: Sharding
    shown: tuple[tuple[ColumnRef, str], ...]
    """The columns of a row of the answer, and the name of each."""

    @property
    def is_with_rows(self) -> bool:
        """Whether the work is done where the rows are kept; else rows are sent on to where they meet."""
        return isinstance(self.sharding, ByRow | ByKey)


def shown_of_table(shape: Shape, catalog: Catalog) -> tuple[tuple[ColumnRef, str], ...]:
    """What a query of one table shows: columns under their own names."""
    table = shape.tables[0]
    every = (ColumnRef(table, name) for name in catalog.table(table).column_names)
    return tuple((ref, ref.column) for ref in (every if shape.projection is None else shape.projection))
