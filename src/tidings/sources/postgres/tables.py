"""Tables of a database as a catalog: CREATE TABLE statements with the types that values are kept as."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tidings.model.errors import TidingsError, UsageError
from tidings.sources.postgres.server import session
from tidings.sources.postgres.values import fits, kept_as
from tidings.sql import parse_catalog

_TABLES = """
SELECT c.oid, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY c.relname
"""
_COLUMNS = """
SELECT a.attname, t.oid::bigint, t.typbasetype::bigint, format_type(a.atttypid, a.atttypmod), a.attgenerated <> ''
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEY = """
SELECT array_agg(a.attname::text ORDER BY array_position(i.indkey::smallint[], a.attnum))
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0 : i.indnkeyatts - 1])
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid, i.indisprimary ORDER BY i.indisprimary DESC, i.indexrelid LIMIT 1
"""
_PLAIN = re.compile("[a-z_][a-z0-9_]*")
_SAME = {"bigint": "BIGINT", "integer": "INT", "double precision": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN"}
_SAME |= {"date": "DATE", "timestamp without time zone": "TIMESTAMP", "bytea": "BINARY"}


class _Column(NamedTuple):
    """type: its number. base: of a domain the type below it, else 0. text: as the database writes the type."""

    name: str
    type: int
    base: int
    text: str
    is_generated: bool

    @property
    def problem(self) -> str:
        """Why it cannot be followed; empty if it can."""
        if self.is_generated:
            return "it is generated, and such columns are not replicated"
        if self.base and not fits(kept_as(self.type), self.base):
            return f"it is of the domain {self.text}, whose values are not replicated as those of the type below it"
        return ""


class Described(NamedTuple):
    """statements: of tables that can be followed. left_out: lines about what cannot, and why."""

    statements: list[str]
    left_out: list[str]


def describe(dsn: str, schema: str, tables: Sequence[str]) -> Described:
    """The tables of a schema, or those of them that are named. UsageError if one that is named is not there."""
    found = Described([], [])
    with session(dsn) as connection:
        known = {name: oid for oid, name in connection.execute(_TABLES, (schema,)).fetchall()}
        for name in tables:
            if name not in known:
                raise UsageError(f"schema {schema!r} has no table {name!r}; it has {', '.join(known) or 'none'}")
        for name in tables or known:
            columns = [_Column(*row) for row in connection.execute(_COLUMNS, (known[name],)).fetchall()]
            key = connection.execute(_KEY, (known[name],)).fetchone()
            _add(found, name, columns, [] if key is None else key[0])
    return found


def _add(found: Described, table: str, columns: Sequence[_Column], key: Sequence[str]) -> None:
    kept = [column for column in columns if not column.problem]
    found.left_out.extend(f"column {each.name} of {table}: {each.problem}" for each in columns if each.problem)
    if not key or not set(key) <= {column.name for column in kept}:
        found.left_out.append(f"table {table}: it has no primary key, nor another unique index that is not deferrable")
        return
    try:
        found.statements.append(_statement(table, kept, key))
    except TidingsError as error:
        found.left_out.append(f"table {table}: {error}")


def _statement(table: str, columns: Sequence[_Column], key: Sequence[str]) -> str:
    """CREATE TABLE, with quotes where names need them. CatalogError if the table cannot be one of a catalog."""
    plain = _written(table, columns, key, quotes_all=False)
    try:
        parse_catalog(plain)
    except TidingsError:
        # Maybe a name is a word of SQL.
        quoted = _written(table, columns, key, quotes_all=True)
        parse_catalog(quoted)
        return quoted
    return plain


def _written(table: str, columns: Sequence[_Column], key: Sequence[str], *, quotes_all: bool) -> str:
    def shown(name: str) -> str:
        return name if _PLAIN.fullmatch(name) and not quotes_all else _quoted(name)

    lines = []
    for column in columns:
        kept = kept_as(column.type).value
        comment = "" if _SAME.get(column.text) == kept else f" -- {column.text}"
        lines.append(f"    {shown(column.name)} {kept},{comment}")
    lines.append(f"    PRIMARY KEY ({', '.join(map(shown, key))})")
    return "\n".join([f"CREATE TABLE {shown(table)} (", *lines, ");"])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
