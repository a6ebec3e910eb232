"""The registry as one object: everything the service must still know after a restart, except changes and notices."""

from __future__ import annotations

from tidings.server.registry.subscriptions import Subscriptions
from tidings.server.registry.targets import Targets
from tidings.server.registry.tenants import TenantsAndKeys


class Registry(TenantsAndKeys, Subscriptions, Targets):
    """Tenants, keys, subscriptions and targets in SQLite or PostgreSQL.

    Every method is one transaction: when it returns, what it wrote is on disk. Methods block; any thread may call them.
    """
