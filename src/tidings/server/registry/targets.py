"""Webhook targets in the registry: how far each has got, what was tried, and what was given up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict
from sqlalchemy import Connection, delete, func, select, update

from tidings.server.registry import schema
from tidings.server.registry.database import RegistryDatabase, chunks
from tidings.server.registry.rows import Attempt, DeadLetter, Target

ATTEMPTS_KEPT = 100
"""How many attempts a target keeps."""

_TARGET = [schema.targets.c[name] for name in Target.__struct_fields__]
_ATTEMPT = [schema.attempts.c[name] for name in Attempt.__struct_fields__]
_LETTER = [schema.dead_letters.c[name] for name in DeadLetter.__struct_fields__]
_CHANGEABLE = frozenset(Target.__struct_fields__) - {"tenant", "id"}


class Targets(RegistryDatabase):
    """The part of the registry that says where notices are sent to."""

    def put_target(self, target: Target) -> None:
        """Adds a target, or replaces it."""
        self.write(lambda connection: connection.execute(self._upsert(schema.targets), asdict(target)))

    def get_target(self, tenant: str, target: str) -> Target | None:
        own = schema.targets.c
        query = select(*_TARGET).where(own.tenant == tenant, own.id == target)
        row = self.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else Target(*row)

    def list_targets(self, tenant: str | None = None) -> list[Target]:
        """The targets of a tenant, or of all."""
        query = select(*_TARGET).order_by(schema.targets.c.tenant, schema.targets.c.id)
        if tenant is not None:
            query = query.where(schema.targets.c.tenant == tenant)
        return [Target(*row) for row in self.read(lambda connection: connection.execute(query).all())]

    def update_target(self, tenant: str, target: str, **fields: Any) -> bool:
        """Sets fields of a target; False if there is none."""
        return self.update_targets([(tenant, target, fields)]) == 1

    def update_targets(self, changes: Sequence[tuple[str, str, Mapping[str, Any]]]) -> int:
        """Sets fields of several targets in one transaction: (tenant, id, fields). Gives how many of them there are."""
        unknown = {name for _, _, fields in changes for name in fields} - _CHANGEABLE
        if unknown:
            raise TypeError(f"a target has no field {', '.join(sorted(unknown))} that could change")
        own = schema.targets.c

        def work(connection: Connection) -> int:
            found = 0
            for tenant, target, fields in sorted(changes, key=lambda change: change[:2]):
                change = update(schema.targets).where(own.tenant == tenant, own.id == target).values(**fields)
                found += connection.execute(change).rowcount
            return found

        changes = [change for change in changes if change[2]]
        return self.write(work) if changes else 0

    def remove_target(self, tenant: str, target: str) -> bool:
        """Deletes a target, its attempts, dead letters and held views; False if there is none. Subscriptions still name it."""

        def work(connection: Connection) -> bool:
            own = schema.targets.c
            gone = connection.execute(delete(schema.targets).where(own.tenant == tenant, own.id == target))
            for table in (schema.attempts, schema.dead_letters, schema.held_views):
                connection.execute(delete(table).where(table.c.tenant == tenant, table.c.target == target))
            return gone.rowcount > 0

        return self.write(work)

    def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Stores attempts in their order; of every target the last hundred stay."""
        own = schema.attempts.c

        def work(connection: Connection) -> None:
            connection.execute(schema.attempts.insert(), [asdict(attempt) for attempt in attempts])
            for tenant, target in sorted({(attempt.tenant, attempt.target) for attempt in attempts}):
                ours = (own.tenant == tenant) & (own.target == target)
                newest = select(own.number).where(ours).order_by(own.number.desc())
                too_old = newest.offset(ATTEMPTS_KEPT).limit(1).scalar_subquery()
                connection.execute(delete(schema.attempts).where(ours, own.number <= too_old))

        if attempts:
            self.write(work)

    def list_attempts(self, tenant: str, target: str, limit: int = ATTEMPTS_KEPT) -> list[Attempt]:
        """The last attempts, the newest first."""
        own = schema.attempts.c
        query = select(*_ATTEMPT).where(own.tenant == tenant, own.target == target)
        query = query.order_by(own.number.desc()).limit(limit)
        return [Attempt(*row) for row in self.read(lambda connection: connection.execute(query).all())]

    def add_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Stores messages that were given up, numbered in their order."""
        rows = [{name: value for name, value in asdict(letter).items() if name != "number"} for letter in letters]
        if rows:
            self.write(lambda connection: connection.execute(schema.dead_letters.insert(), rows))

    def page_dead_letters(self, tenant: str, target: str, limit: int, after: int = 0) -> list[DeadLetter]:
        """The first `limit` dead letters behind the number `after`."""
        own = schema.dead_letters.c
        query = select(*_LETTER).where(own.tenant == tenant, own.target == target, own.number > after)
        query = query.order_by(own.number).limit(limit)
        return [DeadLetter(*row) for row in self.read(lambda connection: connection.execute(query).all())]

    def remove_dead_letters(self, tenant: str, target: str, numbers: Iterable[int]) -> int:
        """Deletes dead letters by number; gives how many there were."""
        own = schema.dead_letters.c
        wanted = sorted(set(numbers))

        def work(connection: Connection) -> int:
            found = 0
            for part in chunks(wanted):
                gone = delete(schema.dead_letters).where(own.tenant == tenant, own.target == target)
                found += connection.execute(gone.where(own.number.in_(part))).rowcount
            return found

        return self.write(work) if wanted else 0

    def count_dead_letters(self, tenant: str, target: str) -> int:
        own = schema.dead_letters.c
        query = select(func.count()).where(own.tenant == tenant, own.target == target)
        return self.read(lambda connection: connection.execute(query).scalar_one())

    # Held views

    def held_views(self, tenant: str, target: str) -> set[str]:
        """Ids of the subscriptions of which the target has the rows, as of its position."""
        own = schema.held_views.c
        query = select(own.subscription).where(own.tenant == tenant, own.target == target)
        return set(self.read(lambda connection: connection.execute(query).scalars().all()))

    def settle_target(
        self,
        tenant: str,
        target: str,
        fields: Mapping[str, Any],
        *,
        held: Iterable[str] = (),
        lost: Iterable[str] = (),
        letters: Sequence[DeadLetter] = (),
    ) -> bool:
        """Stores how far a target has got, in one transaction; False, and nothing, if there is no such target.

        held: subscriptions of which it now has the rows. lost: those of which it has them no longer, so a snapshot is owed.
        A state is only set if the target has not been paused meanwhile.
        """
        own, view = schema.targets.c, schema.held_views.c
        state = fields.get("state")
        progress = {name: value for name, value in fields.items() if name != "state"}
        gained = [{"tenant": tenant, "target": target, "subscription": each} for each in sorted(set(held))]
        gone = sorted(set(lost))
        rows = [{name: value for name, value in asdict(letter).items() if name != "number"} for letter in letters]

        def work(connection: Connection) -> bool:
            change = update(schema.targets).where(own.tenant == tenant, own.id == target)
            # Also finds out whether the target is there, if there are no fields to set.
            if not connection.execute(change.values({"id": target, **progress})).rowcount:
                return False
            if state is not None:
                connection.execute(change.where(own.state.in_(["active", "failing"])).values(state=state))
            for part in chunks(gone):
                ours = (view.tenant == tenant) & (view.target == target)
                connection.execute(delete(schema.held_views).where(ours, view.subscription.in_(part)))
            if gained:
                connection.execute(self._insert_missing(schema.held_views), gained)
            if rows:
                connection.execute(schema.dead_letters.insert(), rows)
            return True

        return self.write(work)

    def begin_epoch(self, position: int) -> None:
        """Brings all targets to the start of a new log: each subscription is owed a snapshot as of then."""

        def work(connection: Connection) -> None:
            connection.execute(delete(schema.held_views))
            connection.execute(update(schema.targets).values(position=position, flight_from=None, flight_to=None))

        self.write(work)
