"""Subscriptions in the registry: written in large batches, one transaction each; read one by one, or by the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import asdict
from sqlalchemy import Connection, bindparam, delete, func, select, text, update

from tidings.server.registry import schema
from tidings.server.registry.database import RegistryDatabase, chunks
from tidings.server.registry.rows import State, Subscription

_ALL = [schema.subscriptions.c[name] for name in Subscription.__struct_fields__]
_OWN = schema.subscriptions.c
_LINK = schema.subscription_targets.c
# Spelt as the partial index has it: SQLite cannot know what a parameter will be.
_UNSETTLED = text("state IN ('pending', 'dropping')")


class Subscriptions(RegistryDatabase):
    """The part of the registry that says what is asked."""

    def get(self, tenant: str, subscription: str) -> Subscription | None:
        query = select(*_ALL).where(_OWN.tenant == tenant, _OWN.id == subscription)
        row = self.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else Subscription(*row)

    def get_many(self, tenant: str, subscriptions: Sequence[str]) -> dict[str, Subscription]:
        """Those of the subscriptions that there are, by id."""

        def work(connection: Connection) -> dict[str, Subscription]:
            found = {}
            for part in chunks(subscriptions):
                query = select(*_ALL).where(_OWN.tenant == tenant, _OWN.id.in_(part))
                found.update({row.id: Subscription(*row) for row in connection.execute(query)})
            return found

        return self.read(work)

    def put(self, subscriptions: Sequence[Subscription]) -> None:
        """Adds subscriptions, or replaces those that are there, all or none. Of two with the same id the later one stays."""
        latest = {(each.tenant, each.id): each for each in subscriptions}
        # In one order, so that two writers do not wait for each other.
        rows = [asdict(latest[name]) for name in sorted(latest)]
        links = [
            {"tenant": each.tenant, "subscription": each.id, "target": target}
            for each in latest.values()
            for target in dict.fromkeys(each.targets)
        ]
        if not rows:
            return

        def work(connection: Connection) -> None:
            connection.execute(self._upsert(schema.subscriptions), rows)
            _unlink(connection, latest)
            if links:
                connection.execute(schema.subscription_targets.insert(), links)

        self.write(work)

    def set_states(self, states: Iterable[tuple[str, str, State, int | None]]) -> None:
        """Stores answers of the engine: tenant, id, state and seq (None: as it was). Those not there are passed over."""
        rows = [{"of": tenant, "called": id_, "to": state, "at": seq} for tenant, id_, state, seq in states]
        if not rows:
            return
        rows.sort(key=lambda row: (str(row["of"]), str(row["called"])))
        change = (
            update(schema.subscriptions)
            .where(_OWN.tenant == bindparam("of"), _OWN.id == bindparam("called"))
            .values(state=bindparam("to"), seq=func.coalesce(bindparam("at", type_=_OWN.seq.type), _OWN.seq))
        )
        self.write(lambda connection: connection.execute(change, rows))

    def remove(self, subscriptions: Iterable[tuple[str, str]]) -> None:
        """Deletes subscriptions, given as (tenant, id); those not there are passed over."""
        names = sorted(set(subscriptions))

        def work(connection: Connection) -> None:
            for tenant, ids in _by_tenant(names).items():
                for part in chunks(ids):
                    connection.execute(delete(schema.subscriptions).where(_OWN.tenant == tenant, _OWN.id.in_(part)))
            _unlink(connection, names)

        if names:
            self.write(work)

    def page(
        self,
        tenant: str,
        limit: int,
        after: str | None = None,
        family: str | None = None,
        state: str | None = None,
    ) -> list[Subscription]:
        """The first `limit` subscriptions of a tenant behind the id `after`, in order of id."""
        query = select(*_ALL).where(_OWN.tenant == tenant).order_by(_OWN.id).limit(limit)
        for column, comparison in ((_OWN.family, family), (_OWN.state, state)):
            if comparison is not None:
                query = query.where(column == comparison)
        if after is not None:
            query = query.where(_OWN.id > after)
        return [Subscription(*row) for row in self.read(lambda connection: connection.execute(query).all())]

    def unsettled(self) -> list[Subscription]:
        """Those of all tenants that wait for the engine: pending and dropping."""
        query = select(*_ALL).where(_UNSETTLED).order_by(_OWN.tenant, _OWN.id)
        return [Subscription(*row) for row in self.read(lambda connection: connection.execute(query).all())]

    def count(self, tenant: str) -> int:
        """How many subscriptions count for the tenant's quota: pending and active ones."""
        query = select(func.count()).where(_OWN.tenant == tenant, _OWN.state.in_(["pending", "active"]))
        return self.read(lambda connection: connection.execute(query).scalar_one())

    def at_place(self, place: str) -> list[tuple[str, str]]:
        """(tenant, id) of the subscriptions of a place."""
        query = select(_OWN.tenant, _OWN.id).where(_OWN.place == place)
        return [(row[0], row[1]) for row in self.read(lambda connection: connection.execute(query).all())]

    def with_idle(self) -> list[tuple[str, str, float]]:
        """(tenant, id, idle_seconds) of the subscriptions that end when nobody reads them for so long."""
        query = select(_OWN.tenant, _OWN.id, _OWN.idle_seconds).where(_OWN.idle_seconds.is_not(None))
        return [(row[0], row[1], row[2]) for row in self.read(lambda connection: connection.execute(query).all())]

    def by_target(self, tenant: str, target: str) -> list[str]:
        """Ids of the subscriptions that name the target, in order."""
        query = select(_LINK.subscription).where(_LINK.tenant == tenant, _LINK.target == target)
        query = query.order_by(_LINK.subscription)
        return list(self.read(lambda connection: connection.execute(query).scalars().all()))


def _unlink(connection: Connection, subscriptions: Iterable[tuple[str, str]]) -> None:
    for tenant, ids in _by_tenant(subscriptions).items():
        for part in chunks(ids):
            gone = delete(schema.subscription_targets).where(_LINK.tenant == tenant, _LINK.subscription.in_(part))
            connection.execute(gone)


def _by_tenant(subscriptions: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    ids = defaultdict(list)
    for tenant, subscription in subscriptions:
        ids[tenant].append(subscription)
    return ids
