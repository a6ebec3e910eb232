"""Names in a query: which tables it reads, under which aliases, and which column a name means."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TypeVar

from sqlglot import exp

from tidings.model.catalog import Catalog, Column, Table
from tidings.sql.shape import ColumnRef
from tidings.sql.source import Source

_T = TypeVar("_T")


class Scope:
    """The tables of one FROM clause, in order, by the names under which the query knows them."""

    def __init__(self, source: Source, catalog: Catalog) -> None:
        self.source = source
        self.catalog = catalog
        self.tables: dict[str, Table] = {}
        # Columns merged by USING stand for one value: an unqualified name means the first table's.
        self.merged: dict[ColumnRef, ColumnRef] = {}

    def add(self, node: exp.Expr) -> Table:
        """Take a table of FROM or JOIN into the scope."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            problem = "subqueries are not supported" if node.find(exp.Select) else "only tables can be read"
            raise self.source.error(problem, node, "name a table of the catalog")
        only(self.source, node, {"this", "alias"}, "name a table of the catalog, without a schema")
        by_name = {table.name: table for table in self.catalog.tables}
        table = find_name(by_name, node.this)
        if table is None:
            raise self.source.error(f"unknown table {node.this.name!r}", node.this, suggest(node.this.name, by_name))
        alias = node.args.get("alias")
        if alias is not None:
            only(self.source, alias, {"this"}, "columns cannot be renamed")
        name = alias.this.name if alias is not None and alias.this is not None else table.name
        if any(other.name == table.name for other in self.tables.values()):
            raise self.source.error("a table cannot be joined with itself", node, "use each table once")
        if name in self.tables:
            raise self.source.error(f"the name {name!r} stands for two tables", node, "use another alias")
        self.tables[name] = table
        return table

    @property
    def has_constraints(self) -> bool:
        """Whether the query is a constraint itself, to be matched with the rows of a table of constraints."""
        return any(table.has_constraints for table in self.tables.values())

    def table_named(self, identifier: exp.Identifier) -> Table:
        table = find_name(self.tables, identifier)
        if table is None:
            problem = f"unknown table or alias {identifier.name!r}"
            raise self.source.error(problem, identifier, suggest(identifier.name, self.tables))
        return table

    def resolve(self, node: exp.Column) -> tuple[ColumnRef, Column]:
        """The column that a possibly qualified name means."""
        if node.args.get("db") or node.args.get("catalog") or not isinstance(node.this, exp.Identifier):
            raise self.source.error("this is not a column", node, "write column or table.column")
        qualifier = node.args.get("table")
        if qualifier is not None:
            return self._column_of(self.table_named(qualifier), node.this)
        return self.lookup(node.this, list(self.tables.values()))

    def lookup(self, identifier: exp.Identifier, tables: list[Table]) -> tuple[ColumnRef, Column]:
        """The column an unqualified name means among the tables."""
        found: dict[ColumnRef, Column] = {}
        for table in tables:
            column = find_name({column.name: column for column in table.attributes}, identifier)
            if column is not None:
                ref = ColumnRef(table.name, column.name)
                found.setdefault(self.merged.get(ref, ref), column)
        if len(found) == 1:
            return next(iter(found.items()))
        if found:
            names = " or ".join(f"{ref.table}.{ref.column}" for ref in found)
            raise self.source.error(f"column {identifier.name!r} is ambiguous", identifier, f"write {names}")
        known = [column.name for table in tables for column in table.attributes]
        raise self.source.error(f"unknown column {identifier.name!r}", identifier, suggest(identifier.name, known))

    def _column_of(self, table: Table, identifier: exp.Identifier) -> tuple[ColumnRef, Column]:
        by_name = {column.name: column for column in table.attributes}
        column = find_name(by_name, identifier)
        if column is None:
            problem = f"table {table.name!r} has no column {identifier.name!r}"
            raise self.source.error(problem, identifier, suggest(identifier.name, by_name))
        return ColumnRef(table.name, column.name), column


def find_name(known: dict[str, _T], identifier: exp.Identifier) -> _T | None:
    """Exact match first; then, unless quoted, the only match that differs in case alone."""
    name = identifier.name
    if name in known:
        return known[name]
    if identifier.args.get("quoted"):
        return None
    alike = [value for key, value in known.items() if key.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def suggest(name: str, known: dict[str, _T] | list[str] | tuple[str, ...]) -> str:
    """A hint with the known names that look alike, or else some of them."""
    by_lower = {key.lower(): key for key in known}
    close = [by_lower[match] for match in get_close_matches(name[:100].lower(), by_lower, n=3)]
    if close:
        return f"did you mean {' or '.join(close)}?"
    some = list(known)[:10]
    return f"known are {', '.join(some)}{', ...' if len(known) > len(some) else ''}"


def only(source: Source, node: exp.Expr, honoured: set[str], hint: str) -> None:
    """Refuse a node that carries anything besides the arguments we honour."""
    for name, value in node.args.items():
        if value and name not in honoured:
            raise source.error("this form is not supported", node, hint)
