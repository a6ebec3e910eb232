"""The registry's tables, the same in SQLite and PostgreSQL. `migrations.py` creates them; here they are only named.

Their columns are the fields of the structs in `rows.py`, in no particular order.
"""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import BigInteger, Column, Dialect, Double, MetaData, Table, Text
from sqlalchemy.types import TypeDecorator

metadata = MetaData()


class Json(TypeDecorator[Any]):
    """A value kept as JSON text; None is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else msgspec.json.encode(value).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else msgspec.json.decode(value)


versions = Table("tidings_schema", metadata, Column("version", BigInteger, nullable=False))
"""One row: the number of the last migration that ran."""

settings = Table(
    "tidings_settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

tenants = Table(
    "tidings_tenants",
    metadata,
    Column("id", Text, primary_key=True),
    Column("filter", Json, nullable=False),
    Column("quota", Json, nullable=False),
    Column("created_at", Double, nullable=False),
)

keys = Table(
    "tidings_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("sha256", Text, nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
)

subscriptions = Table(
    "tidings_subscriptions",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("sql", Text, nullable=False),
    Column("params", Json),
    Column("family", Text),
    Column("columns", Json),
    Column("key", Json),
    Column("order", Json),
    Column("state", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("seq", BigInteger),
    Column("targets", Json, nullable=False),
    Column("every_seconds", Double, nullable=False),
    Column("idle_seconds", Double),
    Column("place", Text),
    Column("metadata", Json, nullable=False),
    Column("created_at", Double, nullable=False),
)

subscription_targets = Table(
    "tidings_subscription_targets",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("subscription", Text, primary_key=True),
    Column("target", Text, primary_key=True),
)
"""`targets` of the subscriptions once more, to find the subscriptions of a target."""

targets = Table(
    "tidings_targets",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("every_seconds", Double, nullable=False),
    Column("format", Text, nullable=False),
    Column("old_secret", Text),
    Column("old_secret_until", Double),
    Column("state", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("flight_from", BigInteger),
    Column("flight_to", BigInteger),
    Column("failures", BigInteger, nullable=False),
    Column("retry_at", Double),
    Column("last_error", Text),
    Column("created_at", Double, nullable=False),
)

attempts = Table(
    "tidings_attempts",
    metadata,
    Column("number", BigInteger, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("status", BigInteger),
    Column("error", Text),
    Column("webhook_id", Text, nullable=False),
    Column("seconds", Double, nullable=False),
)

dead_letters = Table(
    "tidings_dead_letters",
    metadata,
    Column("number", BigInteger, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("subscription", Text),
    Column("webhook_id", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Double, nullable=False),
)

held_views = Table(
    "tidings_held_views",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("target", Text, primary_key=True),
    Column("subscription", Text, primary_key=True),
)
"""Of which subscriptions a target has the rows as of its position. Others that name the target are owed a snapshot."""
