"""The store of an exchange: a database and its tables. A transaction that met another one inserting the same key runs again."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from tidings.database import Database
from tidings.exchange.errors import StoreError
from tidings.exchange.schema import metadata

_SCHEMA_LOCK = 0x7464_6E67
"""Number of the advisory lock under which PostgreSQL's tables are created."""


class Store(Database):
    """A database with the tables of an exchange, which are created if they are missing."""

    what = "store"
    error = StoreError
    advice = "; when it can, call again with the same ids"
    collisions_max = 5

    def _create_tables(self, connection: Connection) -> None:
        if not self._is_sqlite:
            # Two sessions that create the same table collide in PostgreSQL, IF NOT EXISTS or not.
            connection.execute(select(func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
        metadata.create_all(connection)
