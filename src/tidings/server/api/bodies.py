"""Bodies of requests, typed: unknown fields, wrong types and absurd sizes are refused. OpenAPI is made from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

# `$` alone would let a line break pass at the end, and ids become headers.
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$(?!\n)"
Id = Annotated[str, Meta(pattern=ID_PATTERN, description="Letters, digits and . _ ~ -; at most 128 characters.")]
Sql = Annotated[str, Meta(min_length=1, max_length=65_536)]
Seconds = Annotated[float, Meta(ge=0, le=86_400 * 366)]
Name = Annotated[str, Meta(max_length=128)]


class SubscriptionBody(msgspec.Struct, forbid_unknown_fields=True):
    """A subscription: a standing query, and how its changes are delivered."""

    sql: Sql
    id: Id | None = None
    params: dict[str, Any] | list[Any] | None = None
    targets: Annotated[list[Id], Meta(max_length=16)] = []
    every_seconds: Seconds = 0
    idle_seconds: Annotated[float, Meta(ge=1, le=86_400 * 366)] | None = None
    place: Name | None = None
    metadata: dict[str, Any] = {}


class BulkLine(SubscriptionBody, forbid_unknown_fields=True):
    """A line of a bulk request: a subscription to create, or the id of one to drop."""

    sql: Sql | None = None  # type: ignore[assignment]
    drop: bool = False


class QueryBody(msgspec.Struct, forbid_unknown_fields=True):
    """A query to explain."""

    sql: Sql
    params: dict[str, Any] | list[Any] | None = None


class TargetBody(msgspec.Struct, forbid_unknown_fields=True):
    """A webhook: where notifications are posted to."""

    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    id: Id | None = None
    batch: Annotated[int, Meta(ge=1, le=1000)] = 1
    every_seconds: Seconds = 0
    format: Literal["json", "cloudevents"] = "json"


class TenantBody(msgspec.Struct, forbid_unknown_fields=True):
    """A customer of the service, apart from all others."""

    id: Id | None = None
    quota: dict[str, Annotated[int, Meta(ge=0)]] = {}


class KeyBody(msgspec.Struct, forbid_unknown_fields=True):
    """An API key."""

    role: Literal["read", "write", "admin", "operator"]
    expires_at: str | None = None


class TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """A short-lived token that may read some subscriptions: for browsers."""

    subscriptions: Annotated[list[Id], Meta(min_length=1, max_length=100)]
    ttl_seconds: Annotated[int, Meta(ge=1, le=300)] = 300
