"""The outbox: notices are written in the transaction that they report, and handed on afterwards until someone has taken them.

So nothing is told that did not happen, and nothing that happened goes untold. A crash between handing a notice on and noting
that down hands it on again: receivers know a notice by its id (`inbox.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import Connection, Row, delete, false, func, insert, select, true, update

from tidings.exchange.records import Notice
from tidings.exchange.schema import outbox
from tidings.exchange.store import Store

_BATCH = 100


def add(connection: Connection, notices: Iterable[Notice]) -> None:
    """Writes notices in the transaction of the connection."""
    rows = [{"id": notice.id, "destination": notice.destination, "body": json.dumps(notice.body)} for notice in notices]
    if rows:
        connection.execute(insert(outbox), rows)


class Outbox:
    """Hands the notices of a store on, at least once each.

    Those about one auction come in the order of its transactions; in SQLite all do. One deliverer is enough. Several are safe:
    each hands on in order what nobody has noted as delivered, so that receivers see more repeats and the same first times.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def deliver(self, send: Callable[[Notice], object], *, destination: str | None = None, batch: int = _BATCH) -> int:
        """Calls `send` with every notice that is waiting, or those of one destination, and returns how many these were.

        Once `send` has returned its notice counts as delivered, which is noted when a batch is through. If `send` raises, those
        before it are noted, the error goes on to the caller, and the next call begins with the notice that failed: with a
        destination given, the others' do not wait for one that is out of reach.
        """
        count = 0
        while waiting := self._waiting(destination, max(1, batch)):
            taken: list[int] = []
            try:
                for row in waiting:
                    send(Notice(row.id, row.destination, json.loads(row.body)))
                    taken.append(row.position)
            finally:
                self._note(taken)
            count += len(taken)
        return count

    def pending(self) -> int:
        """How many notices wait."""
        query = select(func.count()).select_from(outbox).where(outbox.c.is_delivered == false())
        return self._store.read(lambda connection: connection.execute(query).scalar_one())

    def discard_delivered(self) -> int:
        """Deletes the notices that were delivered, and returns how many."""
        query = delete(outbox).where(outbox.c.is_delivered == true())
        return self._store.write(lambda connection: connection.execute(query).rowcount)

    def _waiting(self, destination: str | None, count: int) -> list[Row[Any]]:
        query = select(outbox).where(outbox.c.is_delivered == false()).order_by(outbox.c.position).limit(count)
        if destination is not None:
            query = query.where(outbox.c.destination == destination)
        return self._store.read(lambda connection: list(connection.execute(query)))

    def _note(self, positions: list[int]) -> None:
        if positions:
            query = update(outbox).where(outbox.c.position.in_(positions)).values(is_delivered=True)
            self._store.write(lambda connection: connection.execute(query).rowcount)
