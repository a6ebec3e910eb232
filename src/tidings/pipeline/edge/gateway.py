"""What a gateway makes of its parcels: notifications of its subscriptions, each once, or the wish for a base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidings.model.blob import pack, pieces, unpack
from tidings.model.errors import TidingsError, UsageError
from tidings.model.notification import NO_NOTIFICATIONS, NotificationBatch
from tidings.pipeline.edge.partial import PartialReplica
from tidings.pipeline.edge.wire import Base, Kind, Parcel, Query, base_of, notices_of, pack_of
from tidings.pipeline.registrar import Answer
from tidings.sql import parse_catalog


class Taken(NamedTuple):
    """What came of a parcel. created: subscriptions that are there from now on; ended: ids of those that are no more."""

    passed: int
    told: NotificationBatch
    answers: Sequence[Answer] = ()
    created: Sequence[Query] = ()
    ended: Sequence[str] = ()
    is_whole: bool = False
    """Whether `told` are snapshots of all subscriptions, and there are no others: what was told before does not count."""
    parcels: Sequence[Parcel] = ()
    """Of a broker, which tells nobody: what the nodes below it are sent."""


class Gateway:
    """The subscriptions of a place. Parcels that it has had are passed over; one that does not follow makes it need a base."""

    def __init__(self) -> None:
        self.run = ""
        """The job whose parcels these are; empty: there was none."""
        self.batch = 0
        """The last micro-batch of which there was a parcel."""
        self.needs_base = True
        self.queries: dict[str, Query] = {}
        """The living subscriptions, by id."""
        self._replica: PartialReplica | None = None
        """None where notices are received."""
        self._catalog_sql = ""
        self.passed = 0

    @property
    def nbytes(self) -> int:
        return 0 if self._replica is None else self._replica.nbytes

    @property
    def has_rows(self) -> bool:
        """Whether it is sent rows, and evaluates; else notices."""
        return self._replica is not None

    @property
    def rows(self) -> int:
        """Number of rows that it holds."""
        return 0 if self._replica is None else self._replica.size_counts()["rows"]

    @property
    def catalog_sql(self) -> str:
        """Tables of the job; empty before the first base."""
        return self._catalog_sql

    def take(self, parcel: Parcel, *, is_told: bool = True) -> Taken | None:
        """Takes a parcel. None if it is passed over. is_told: False when state is restored from parcels."""
        if parcel.kind is Kind.BASE:
            return self._take_base(parcel, is_told=is_told)
        if parcel.run == self.run and parcel.batch <= self.batch:
            return None
        if parcel.run != self.run or parcel.previous != self.batch:
            self.needs_base = True
        if self.needs_base:
            return None
        self.batch, self.passed = parcel.batch, parcel.passed
        ended = [id for id, _ in parcel.ended]
        for id in ended:
            self.queries.pop(id, None)
        self.queries |= {query.id: query for query in parcel.created}
        if (parcel.kind is Kind.ROWS) != self.has_rows:
            raise TidingsError("the job sends other than it did before, rows or notices, and no base between")
        told = self._apply(parcel, is_told=is_told)
        return Taken(parcel.passed, told, parcel.answers, parcel.created, ended)

    def _take_base(self, parcel: Parcel, *, is_told: bool) -> Taken | None:
        is_known = parcel.run == self.run and not self.needs_base
        if parcel.run == self.run and (
            parcel.batch < self.batch or (is_known and parcel.is_compulsory and parcel.batch == self.batch)
        ):
            return None
        base = base_of(parcel.body)
        former, self.queries = self.queries, {query.id: query for query in base.queries}
        # Another of our name has asked for it, or we have before a restart. We have told all that it says; but who sends to us
        # counts from now on with our having these rows, and no others.
        is_silent = is_known and not parcel.is_compulsory and parcel.previous <= self.batch
        self.run, self.batch, self.passed, self.needs_base = parcel.run, parcel.batch, parcel.passed, False
        told = self._begin(parcel, base, is_told=is_told and not is_silent)
        if is_silent:
            return Taken(parcel.passed, NO_NOTIFICATIONS)
        ended = [id for id in former if id not in self.queries]
        return Taken(parcel.passed, told, parcel.answers, base.queries, ended, is_whole=True)

    def _begin(self, parcel: Parcel, base: Base, *, is_told: bool) -> NotificationBatch:
        """Begins anew with what a base says. Gives the snapshots of all subscriptions."""
        if list(base.names) != [parcel.node]:
            raise UsageError(
                f"the place {parcel.node!r} has places below it, as {base.names[0]!r}: it needs a broker, tidings broker"
            )
        self._catalog_sql, self._replica = base.catalog_sql, None
        if not base.replica:
            return _told(base.notices, is_told=is_told)
        self._load_rows(b"".join(base.replica))
        if self._replica is None or not is_told:
            return NO_NOTIFICATIONS
        slots = self._replica.subscriptions.slots
        return self._replica.snapshots(np.array(sorted(slots.values()), np.int64))

    def _apply(self, parcel: Parcel, *, is_told: bool) -> NotificationBatch:
        if self._replica is not None:
            return self._replica.take(pack_of(parcel.body), is_told=is_told)
        return _told(parcel.body, is_told=is_told)

    def _load_rows(self, blob: bytes) -> None:
        self._replica = PartialReplica(parse_catalog(self._catalog_sql), keeps_points=True)
        self._replica.load(blob)

    def _dump_rows(self) -> bytes:
        return b"" if self._replica is None else self._replica.dump()

    def dump(self) -> bytes:
        """State for `load`."""
        state = {
            "run": self.run,
            "batch": self.batch,
            "passed": self.passed,
            "needs_base": int(self.needs_base),
            "catalog": self._catalog_sql,
            "queries": [list(query) for query in self.queries.values()],
            "replica": pieces(self._dump_rows()),
        }
        return pack(state)

    def load(self, blob: bytes) -> None:
        """Restores what `dump` gave, in a new gateway."""
        state = unpack(blob)
        self.run, self.batch, self.passed = state["run"], state["batch"], state["passed"]
        self.needs_base, self._catalog_sql = bool(state["needs_base"]), state["catalog"]
        self.queries = {query[0]: Query(*query) for query in state["queries"]}
        if state["replica"]:
            self._load_rows(b"".join(state["replica"]))


def _told(body: bytes, *, is_told: bool) -> NotificationBatch:
    return (notices_of(body) if is_told else None) or NO_NOTIFICATIONS
