"""The catalog: which tables there are, their columns, types and keys. Frozen; made once from `catalog.sql`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidings.model.errors import CatalogError
from tidings.model.types import ColumnType


@dataclass(frozen=True)
class Column:
    """A column. is_added: added by ALTER TABLE; records that do not have it mean null.

    is_internal: kept with a row for those who evaluate it, and never shown.
    """

    name: str
    type: ColumnType
    is_added: bool = False
    is_internal: bool = False

    def __post_init__(self) -> None:
        if any(character in '"\\' or character < " " for character in self.name):
            raise CatalogError(
                f"the column name {self.name!r} has a quote, backslash or control character, which rows cannot use"
            )


@dataclass(frozen=True)
class ConstraintOptions:
    """How the rows of a table of constraints are matched.

    is_classic: every attribute of the *subscription* must be met, instead of every attribute of the publication.
    auction: (attribute, whether the highest bid wins) where its publications are lots to be bid for.
    is_kept: whether publications stay; else each is told at its seq to those whom it meets, and is gone.
    """

    is_classic: bool = False
    auction: tuple[str, bool] | None = None
    is_kept: bool = True


CONSTRAINT_COLUMNS = (
    Column("id", ColumnType.TEXT),
    Column("where", ColumnType.TEXT),
    Column("constraint", ColumnType.BINARY, is_internal=True),
    Column("expires", ColumnType.BIGINT, is_internal=True),
    Column("until", ColumnType.TIMESTAMP, is_internal=True),
    Column("time", ColumnType.TIMESTAMP, is_internal=True),
)
"""What is kept of a row that is a constraint: its id, its text, and what the family that serves it compiles the text to.

expires, until: the seq or the time at which it goes by itself; null for never. time: the time of its record, if it has one.
"""


@dataclass(frozen=True, eq=False)
class Table:
    """A live table. `rows == "constraints"`: its rows are constraints (offers) on `attributes`, known by an id.

    columns: of the rows that are kept. attributes: what conditions compare; the columns themselves unless rows are constraints.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    rows: str = "values"
    attributes: tuple[Column, ...] = ()
    constraints: ConstraintOptions = ConstraintOptions()

    def __post_init__(self) -> None:
        if not self.attributes:
            object.__setattr__(self, "attributes", self.columns)

    @staticmethod
    def of_constraints(name: str, attributes: tuple[Column, ...], options: ConstraintOptions) -> Table:
        """A table whose rows are constraints on these attributes."""
        return Table(name, CONSTRAINT_COLUMNS, ("id",), "constraints", attributes, options)

    @property
    def has_constraints(self) -> bool:
        return self.rows == "constraints"

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def shown(self) -> tuple[Column, ...]:
        """The columns that `SELECT *` shows."""
        return tuple(column for column in self.columns if not column.is_internal)

    @cached_property
    def axes(self) -> tuple[Column, ...]:
        """The attributes with each geometric one replaced by its coordinates, which are DOUBLE."""
        return tuple(axis for attribute in self.attributes for axis in axes_of(attribute))

    @cached_property
    def axis_numbers(self) -> dict[str, int]:
        return {axis.name: number for number, axis in enumerate(self.axes)}

    def axis(self, name: str) -> Column:
        return self.axes[self.axis_numbers[name]]

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column.type.arrow) for column in self.columns])

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def column(self, name: str) -> Column:
        """The named column; CatalogError lists what there is when the name is unknown."""
        found = self._by_name.get(name)
        if found is None:
            raise CatalogError(f"table {self.name!r} has no column {name!r}; it has {', '.join(self.column_names)}")
        return found


def axes_of(attribute: Column) -> tuple[Column, ...]:
    """The coordinates of a geometric attribute: of a point x and y; of a box its sides, and per direction its extent.

    A box is known by its sides x1 <= x2 and y1 <= y2. The extents x and y are no values of their own: a set of boxes has the
    interval from its least x1 to its greatest x2 there, so that two sets of boxes meet iff their intervals do on all six axes.
    """
    if attribute.type is ColumnType.POINT:
        names: tuple[str, ...] = ("x", "y")
    elif attribute.type is ColumnType.BOX:
        names = ("x1", "x2", "x", "y1", "y2", "y")
    else:
        return (attribute,)
    return tuple(Column(f"{attribute.name}.{name}", ColumnType.DOUBLE) for name in names)


@dataclass(frozen=True, eq=False)
class Catalog:
    """All tables. Compared by identity: it is made once, and serves as a key of caches on hot paths."""

    tables: tuple[Table, ...]

    @cached_property
    def _by_name(self) -> dict[str, Table]:
        return {table.name: table for table in self.tables}

    def table(self, name: str) -> Table:
        found = self._by_name.get(name)
        if found is None:
            known = ", ".join(table.name for table in self.tables) or "none"
            raise CatalogError(f"unknown table {name!r}; the catalog has {known}")
        return found

    def has_table(self, name: str) -> bool:
        return name in self._by_name

    def objection_to(self, earlier: Catalog) -> str | None:
        """Why rows kept for an earlier catalog cannot be used with this one; None if they can.

        They can if there are only more tables, or more columns at the end of tables.
        """
        for table in earlier.tables:
            if not self.has_table(table.name):
                return f"table {table.name!r} is gone"
            now = self.table(table.name)
            if (table.key, table.rows, table.constraints) != (now.key, now.rows, now.constraints):
                return f"the key or the kind of rows of table {table.name!r} is another"
            if table.has_constraints and table.attributes != now.attributes:
                return f"the attributes of table {table.name!r} are others"
            for at, column in enumerate(table.columns):
                if at >= len(now.columns) or (now.columns[at].name, now.columns[at].type) != (column.name, column.type):
                    return f"column {column.name!r} of table {table.name!r} is gone, has moved or has another type"
        return None
