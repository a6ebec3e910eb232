"""The registry: tenants, keys, subscriptions and webhook targets, in SQLite or PostgreSQL."""

from tidings.server.registry.database import RegistryError, registry_url
from tidings.server.registry.registry import Registry
from tidings.server.registry.rows import (
    ROLES,
    Attempt,
    DeadLetter,
    Key,
    Role,
    State,
    Subscription,
    Target,
    TargetState,
    Tenant,
)
from tidings.server.registry.tenants import KEY_PREFIX

__all__ = [
    "KEY_PREFIX",
    "ROLES",
    "Attempt",
    "DeadLetter",
    "Key",
    "Registry",
    "RegistryError",
    "Role",
    "State",
    "Subscription",
    "Target",
    "TargetState",
    "Tenant",
    "registry_url",
]
