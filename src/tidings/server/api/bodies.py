"""Bodies of requests, typed: unknown fields, wrong types and absurd sizes are refused. OpenAPI is made from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

# `$` alone would let a line break pass at the end, and ids become headers.
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$(?!\n)"
SHOWN_PATTERN = ID_PATTERN.removesuffix(r"(?!\n)")
"""As the description has it: in JSON Schema `$` is the end alone."""
Id = Annotated[
    str,
    Meta(
        pattern=ID_PATTERN,
        description="Letters, digits and . _ ~ -; at most 128 characters.",
        extra_json_schema={"pattern": SHOWN_PATTERN},
    ),
]
Sql = Annotated[str, Meta(min_length=1, max_length=65_536)]
Seconds = Annotated[float, Meta(ge=0, le=86_400 * 366)]
Name = Annotated[str, Meta(max_length=128)]
# JSON knows numbers alone: 5.0 is as whole as 5.
Whole = Annotated[float, Meta(ge=1, le=10**9, multiple_of=1)]


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
    batch: Annotated[float, Meta(ge=1, le=1000, multiple_of=1)] = 1
    every_seconds: Seconds = 0
    format: Literal["json", "cloudevents"] = "json"


class QuotaBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A tenant's own numbers; null: those of all."""

    subscriptions: Whole | None = None
    connections: Whole | None = None
    creations_per_second: Whole | None = None

    def numbers(self) -> dict[str, int]:
        return {name: int(number) for name, number in msgspec.structs.asdict(self).items() if number is not None}


class TenantBody(msgspec.Struct, forbid_unknown_fields=True):
    """A customer of the service, apart from all others."""

    id: Id | None = None
    filter: Annotated[dict[str, str], Meta(max_length=0)] = {}
    """Conditions on rows are not there yet: one that is not kept to must be refused."""
    quota: QuotaBody = msgspec.field(default_factory=QuotaBody)


class NewTenantBody(TenantBody, forbid_unknown_fields=True, kw_only=True):
    """A tenant to create."""

    id: Id


class KeyBody(msgspec.Struct, forbid_unknown_fields=True):
    """An API key."""

    role: Literal["read", "write", "admin", "operator"]
    expires_at: Annotated[str, Meta(max_length=64, extra_json_schema={"format": "date-time"})] | None = None


class TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """A short-lived token that may read some subscriptions: for browsers."""

    subscriptions: Annotated[list[Id], Meta(min_length=1, max_length=100)]
    ttl_seconds: Annotated[float, Meta(ge=1, le=300)] = 300
