"""The catalog: which tables there are, their columns, types and keys. Frozen; made once from `catalog.sql`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidings.model.errors import CatalogError
from tidings.model.types import ColumnType


@dataclass(frozen=True)
class Column:
    """A column. is_added: added by ALTER TABLE; records that do not have it mean null."""

    name: str
    type: ColumnType
    is_added: bool = False

    def __post_init__(self) -> None:
        if any(character in '"\\' or character < " " for character in self.name):
            raise CatalogError(
                f"the column name {self.name!r} has a quote, backslash or control character, which rows cannot use"
            )


@dataclass(frozen=True, eq=False)
class Table:
    """A live table. `rows == "constraints"`: its rows are constraints (offers), known by an id outside the columns."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    rows: str = "values"

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

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
            if (table.key, table.rows) != (now.key, now.rows):
                return f"the key or the kind of rows of table {table.name!r} is another"
            for at, column in enumerate(table.columns):
                if at >= len(now.columns) or (now.columns[at].name, now.columns[at].type) != (column.name, column.type):
                    return f"column {column.name!r} of table {table.name!r} is gone, has moved or has another type"
        return None
