"""Answers as clients get them. Routes make these, and the OpenAPI description is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339, in UTC."""
Position = Annotated[str, Meta(description="EPOCH-SEQ: where a client may resume.")]


class Health(TypedDict):
    status: Literal["ok"]


class Readiness(TypedDict):
    ready: bool
    engine: str
    epoch: str | None
    seq: int | None
    lag_seconds: float | None


class Retention(TypedDict):
    seconds: float
    bytes: int


class About(TypedDict):
    version: str
    engine: str
    epoch: str
    families: list[str]
    limits: dict[str, int | None]
    retention: Retention


class CatalogColumn(TypedDict):
    name: str
    type: str


class CatalogTable(TypedDict):
    name: str
    key: list[str]
    columns: list[CatalogColumn]


class Tables(TypedDict):
    tables: list[CatalogTable]


class Order(TypedDict):
    by: str
    descending: bool
    shown: bool


class Shown(TypedDict):
    """A subscription. seq, position: None while the engine has not answered."""

    id: str
    sql: str
    params: dict[str, Any] | list[Any] | None
    family: str | None
    state: Literal["pending", "active", "refused", "dropping", "dropped"]
    version: int
    seq: int | None
    position: Position | None
    columns: list[str] | None
    key: list[str] | None
    order: Order | None
    targets: list[str]
    every_seconds: float
    idle_seconds: float | None
    place: str | None
    metadata: dict[str, Any]
    created_at: Time
    stream: str


class SubscriptionPage(TypedDict):
    subscriptions: list[Shown]
    next: str | None


class DroppedSubscription(TypedDict):
    id: str
    state: Literal["dropped"]
    seq: int


class Estimate(TypedDict):
    changes: int
    notifications: int
    per_hour: float
    bytes_per_hour: float


class Explained(TypedDict):
    family: str
    form: str
    points: list[str]
    columns: list[str]
    key: list[str]
    order: Order | None
    cost: str
    estimate: Estimate | None


class Rows(TypedDict):
    position: Position
    seq: int
    rows: list[dict[str, Any]]


class Polled(TypedDict):
    """Changes behind a position. notifications: lines of out.jsonl."""

    position: Position
    up_to_date: bool
    notifications: list[dict[str, Any]]


class RefusedRecord(TypedDict):
    line: int
    reason: str


class Applied(TypedDict):
    """Changes that are durable and applied."""

    accepted: int
    refused: list[RefusedRecord]
    seq: int
    position: Position


class StoredChanges(TypedDict):
    """Changes that are durable, and will be applied: the engine is Spark."""

    stored: int


class QuarantinedRecord(TypedDict):
    number: int
    seq: int | None
    reason: str
    raw: str
    source: str
    time: Time


class QuarantinePage(TypedDict):
    records: list[QuarantinedRecord]
    next: int | None


class ShownTarget(TypedDict):
    id: str
    url: str
    batch: int
    every_seconds: float
    format: Literal["json", "cloudevents"]
    state: Literal["active", "failing", "gone", "paused"]
    pending: int
    dead: int
    last_error: str | None
    created_at: Time


class NewTarget(ShownTarget):
    """A target that was just made: its secret is shown this once."""

    secret: str


class TargetPage(TypedDict):
    targets: list[ShownTarget]


class NewSecret(TypedDict):
    id: str
    secret: str


class Dropped(TypedDict):
    id: str
    state: Literal["dropped", "revoked"]


class ShownAttempt(TypedDict):
    at: Time
    status: int | None
    error: str | None
    webhook_id: str
    seconds: float


class AttemptPage(TypedDict):
    attempts: list[ShownAttempt]


class ShownLetter(TypedDict):
    number: int
    subscription: str | None
    webhook_id: str
    seq: int | None
    body: str
    reason: str
    at: Time


class LetterPage(TypedDict):
    dead_letters: list[ShownLetter]
    next: int | None


class Replayed(TypedDict):
    replayed: int


class ShownTenant(TypedDict):
    id: str
    filter: dict[str, str]
    quota: dict[str, int]
    created_at: Time


class TenantPage(TypedDict):
    tenants: list[ShownTenant]


class NewKey(TypedDict):
    """A key that was just made: it is shown this once."""

    id: str
    key: str
    role: Literal["read", "write", "admin", "operator"]
    expires_at: Time | None


class Token(TypedDict):
    token: str
    expires_at: Time
