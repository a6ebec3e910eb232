"""What the registry keeps, as values: one frozen struct per table. Moments are seconds since 1970, UTC."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["read", "write", "admin", "operator"]
ROLES: tuple[Role, ...] = ("read", "write", "admin", "operator")
"""From the weakest to the strongest: each may do what those before it may."""

State = Literal["pending", "active", "refused", "dropping", "dropped"]
TargetState = Literal["active", "failing", "gone", "paused"]


class Tenant(msgspec.Struct, frozen=True):
    """A customer of the service. filter: a condition per table; quota: its own numbers instead of the general ones."""

    id: str
    filter: dict[str, str] = {}
    quota: dict[str, int] = {}
    created_at: float = 0.0


class Key(msgspec.Struct, frozen=True):
    """An API key, known by its hash only: the key itself is shown once, when it is made."""

    id: str
    tenant: str
    role: Role
    sha256: str
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None

    def is_valid(self, now: float) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Subscription(msgspec.Struct, frozen=True):
    """A subscription as its owner wrote it, and what the engine answered.

    state: `pending` and `dropping` wait for the engine's answer. version counts edits; seq is that of the last answer.
    """

    tenant: str
    id: str
    sql: str
    params: Any = None
    family: str | None = None
    columns: list[Any] | None = None
    key: list[Any] | None = None
    order: dict[str, Any] | None = None
    state: State = "pending"
    version: int = 1
    seq: int | None = None
    targets: list[str] = []
    every_seconds: float = 0.0
    idle_seconds: float | None = None
    place: str | None = None
    metadata: dict[str, Any] = {}
    created_at: float = 0.0


class Target(msgspec.Struct, frozen=True):
    """A webhook, and how far it has got: everything up to log seq `position` is delivered.

    flight_from, flight_to: the range of the batch that is being sent, stored before its first try, so that each try sends the
    same one. old_secret signs too until old_secret_until.
    """

    tenant: str
    id: str
    url: str
    secret: str
    batch: int = 1
    every_seconds: float = 0.0
    format: Literal["json", "cloudevents"] = "json"
    old_secret: str | None = None
    old_secret_until: float | None = None
    state: TargetState = "active"
    position: int = 0
    flight_from: int | None = None
    flight_to: int | None = None
    failures: int = 0
    retry_at: float | None = None
    last_error: str | None = None
    created_at: float = 0.0

    def __repr__(self) -> str:
        """Without url and secrets: a log must never show them."""
        return f"Target(tenant={self.tenant!r}, id={self.id!r}, state={self.state!r}, position={self.position})"


class Attempt(msgspec.Struct, frozen=True):
    """One request to a target. status: of the response, if there was one."""

    tenant: str
    target: str
    at: float
    status: int | None
    error: str | None
    webhook_id: str
    seconds: float


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that was given up. number: in the order of giving up; the registry assigns it."""

    tenant: str
    target: str
    subscription: str | None
    webhook_id: str
    seq: int
    body: str
    reason: str
    at: float
    number: int = 0
