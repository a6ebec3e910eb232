"""The publication and its tables: created if missing, checked if there, before anything is read.

A published table whose rows have no identity makes the *writer's* updates fail, so that identities are checked first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tidings.model.catalog import Catalog
from tidings.model.errors import UsageError
from tidings.sources.postgres.records import Followed
from tidings.sources.postgres.server import Connection
from tidings.sources.postgres.values import fits

_TABLE = """
SELECT c.oid, c.relkind, c.relreplident FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
"""
_COLUMNS = """
SELECT a.attname, t.oid, t.typbasetype, format_type(t.oid, a.atttypmod), a.attgenerated <> ''
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""
_INDEXES = """
SELECT i.indisprimary, i.indisreplident, i.indimmediate, array_agg(a.attname::text)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0 : i.indnkeyatts - 1])
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid, i.indisprimary, i.indisreplident, i.indimmediate
"""
_PUBLICATION = """
SELECT puballtables, pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot FROM pg_publication WHERE pubname = %s
"""


class _Published(NamedTuple):
    schema: str
    table: str
    columns: list[str] | None
    filter: str | None


def check_server(connection: Connection) -> None:
    """UsageError if the server cannot replicate logically."""
    level = _value(connection, "SHOW wal_level")
    if level != "logical":
        raise UsageError(
            f"the server's wal_level is {level!r}: set wal_level = logical in postgresql.conf"
            " (ALTER SYSTEM SET wal_level = 'logical') and restart the server"
        )
    if connection.info.server_version < 130000:
        raise UsageError(f"the server is PostgreSQL {connection.info.server_version // 10000}; 13 or later is needed")
    if _value(connection, "SHOW server_encoding") == "SQL_ASCII":
        raise UsageError(
            "the database's encoding is SQL_ASCII: texts have no defined meaning. Use a database with UTF8"
        )


def check_tables(connection: Connection, tables: Sequence[Followed], catalog: Catalog) -> None:
    """UsageError if a table is not as the catalog says, or its old rows could not be told apart."""
    for table in tables:
        _check_table(connection, table, catalog)


def _check_table(connection: Connection, table: Followed, catalog: Catalog) -> None:
    name = f"{table.schema}.{table.table}"
    found = connection.execute(_TABLE, (table.schema, table.table)).fetchone()
    if found is None:
        raise UsageError(
            f"the server has no table {name}; say where it is: option schema, or tables=SCHEMA.{table.table},.."
        )
    oid, _, identity = found
    rows = connection.execute(_COLUMNS, (oid,)).fetchall()
    columns = {column: rest for column, *rest in rows}
    for column in catalog.table(table.name).columns:
        if column.name not in columns:
            raise UsageError(
                f"table {name} has no column {column.name!r}, which the catalog has; it has {', '.join(columns)}"
            )
        type, base, text, is_generated = columns[column.name]
        # Changes name a domain, the snapshot its base type: both must read as the catalog says.
        if not fits(column.type, type) or (base and not fits(column.type, base)):
            raise UsageError(
                f"column {column.name!r} of {name} is {text}, which cannot be {column.type.value} as the catalog says"
            )
        if is_generated:
            raise UsageError(f"column {column.name!r} of {name} is generated: such columns are not replicated")
    indexes = connection.execute(_INDEXES, (oid,)).fetchall()
    key = set(table.key)
    if not any(is_immediate and set(members) <= key for *_, is_immediate, members in indexes):
        raise UsageError(
            f"table {name}: nothing says that ({', '.join(table.key)}), its key in the catalog, is unique. Give it a primary"
            " key or a unique index on these columns that is not deferrable"
        )
    # The right to read it.
    connection.execute(selection(table, "LIMIT 0"))
    known = _identity(identity, indexes, set(columns))
    if not key <= known:
        raise UsageError(
            f"table {name} has no replica identity with its key ({', '.join(table.key)}): updates and deletes could not be"
            f" told apart, and if it was published without any they would fail. Run: ALTER TABLE {name} REPLICA IDENTITY FULL"
        )


def selection(table: Followed, more: str = "") -> Any:
    """A query for the rows of a table, with the columns of the catalog."""
    from psycopg import sql

    columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
    query = sql.SQL("SELECT {} FROM {} {}")
    return query.format(columns, sql.Identifier(table.schema, table.table), sql.SQL(more))


def _identity(kind: str, indexes: Sequence[tuple[bool, bool, bool, list[str]]], columns: set[str]) -> set[str]:
    """The columns that old rows have."""
    if kind == "f":
        return columns
    for is_primary, is_identity, is_immediate, members in indexes:
        if is_immediate and ((kind == "d" and is_primary) or (kind == "i" and is_identity)):
            return set(members)
    return set()


def check_publication(connection: Connection, name: str, tables: Sequence[Followed]) -> bool:
    """Whether the publication is there. UsageError if it is, and leaves something out that the tables have."""
    found = connection.execute(_PUBLICATION, (name,)).fetchone()
    if found is None:
        return False
    _, has_all, is_via_root = found
    if not has_all:
        raise UsageError(
            f"the publication {name!r} leaves changes out. Run: ALTER PUBLICATION {name} SET (publish = 'insert, update,"
            " delete, truncate')"
        )
    published = {(each.schema, each.table): each for each in _published(connection, name)}
    for table in tables:
        each = published.get((table.schema, table.table))
        if each is None:
            root = " SET (publish_via_partition_root = true), and" if not is_via_root else ""
            raise UsageError(
                f"the publication {name!r} does not have {table.schema}.{table.table}. Run: ALTER PUBLICATION {name}{root}"
                f" ADD TABLE {table.schema}.{table.table} (rows that are there already are not sent), or name another"
                " publication and slot to begin anew"
            )
        missing = set() if each.columns is None else _columns(connection, table) - set(each.columns)
        if missing or each.filter:
            what = f"the column {min(missing)!r}" if missing else f"rows that are not {each.filter}"
            raise UsageError(f"the publication {name!r} leaves out {what} of {table.schema}.{table.table}")
    return True


def create_publication(connection: Connection, name: str, tables: Sequence[Followed]) -> None:
    from psycopg import sql

    members = sql.SQL(", ").join(sql.Identifier(table.schema, table.table) for table in tables)
    create = sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)")
    connection.execute(create.format(sql.Identifier(name), members))


def drop_publication(connection: Connection, name: str) -> None:
    from psycopg import sql

    connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(name)))


def _columns(connection: Connection, table: Followed) -> set[str]:
    """Those columns of the catalog that the table has. One that was dropped since the run began is no reason to end it."""
    oid, *_ = connection.execute(_TABLE, (table.schema, table.table)).fetchone()
    return {name for name, *_ in connection.execute(_COLUMNS, (oid,)).fetchall()} & set(table.columns)


def _published(connection: Connection, name: str) -> list[_Published]:
    more = "attnames::text[], rowfilter" if connection.info.server_version >= 150000 else "NULL::text[], NULL::text"
    query = f"SELECT schemaname::text, tablename::text, {more} FROM pg_publication_tables WHERE pubname = %s"
    return [_Published(*row) for row in connection.execute(query, (name,)).fetchall()]


def _value(connection: Connection, query: str) -> str:
    row = connection.execute(query).fetchone()
    return str(row[0])
