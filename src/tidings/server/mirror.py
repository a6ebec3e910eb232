"""The registry of a gateway follows its feed: subscriptions that were created or dropped at the job, or at another place."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable

from msgspec.structs import replace

from tidings.model.errors import TidingsError
from tidings.server.engine.frames import Mirrored
from tidings.server.queries import Queries
from tidings.server.registry import Registry, Subscription
from tidings.sql import parse_catalog

_AT_A_TIME = 1_000


class Mirror:
    """Called by the thread of the registry alone."""

    def __init__(self, registry: Registry, place: str) -> None:
        self._registry, self._place = registry, place
        self._queries: Queries | None = None

    def take(self, mirrored: Mirrored) -> None:
        if mirrored.catalog_sql:
            # One of its own: the front's is used by another thread.
            self._queries = Queries(parse_catalog(mirrored.catalog_sql))
        known = [_tenant_id(id) for id in mirrored.ended]
        own = set(self._registry.at_place(self._place)) if mirrored.is_whole or known else set()
        if mirrored.is_whole:
            gone = own - {_tenant_id(id) for id, _, _ in mirrored.created} - set(self._waiting())
        else:
            gone = own.intersection(known)
        self._registry.remove(gone)
        for start in range(0, len(mirrored.created), _AT_A_TIME):
            self._put(mirrored.created[start : start + _AT_A_TIME])

    def _waiting(self) -> Iterable[tuple[str, str]]:
        """Those that are being created here, of which the job may not have heard."""
        return ((each.tenant, each.id) for each in self._registry.unsettled())

    def _put(self, created: list[tuple[str, str, int]]) -> None:
        by_tenant: dict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
        for engine_id, sql, seq in created:
            tenant, id = _tenant_id(engine_id)
            by_tenant[tenant][id] = sql, seq
        for tenant, wanted in by_tenant.items():
            known = self._registry.get_many(tenant, list(wanted))
            found = (self._entry(tenant, id, *each, known.get(id)) for id, each in wanted.items())
            self._registry.put([each for each in found if each is not None])

    def _entry(self, tenant: str, id: str, sql: str, seq: int, known: Subscription | None) -> Subscription | None:
        """What is to be stored; None if it is there, as this gateway has created it itself."""
        assert self._queries is not None
        is_same = known is not None and self._queries.bound(known.sql, known.params) == sql
        if known is not None and is_same and known.place == self._place:
            return None
        if known is not None and is_same:
            return replace(known, place=self._place, seq=seq)
        try:
            found = self._queries.describe(sql, None, f"{tenant}/{id}")
        except TidingsError:
            # The job has accepted it: this version of Tidings is another one.
            return None
        version = 1 if known is None else known.version + 1
        return Subscription(
            tenant,
            id,
            sql,
            None,
            found.family,
            found.columns,
            found.key,
            found.order,
            "active",
            version,
            seq,
            place=self._place,
            created_at=time.time(),
        )


def _tenant_id(engine_id: str) -> tuple[str, str]:
    tenant, _, id = engine_id.partition("/")
    return tenant, id
