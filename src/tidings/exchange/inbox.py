"""The inbox: how a receiver of notices, which may come more than once, lets each have its effect exactly once.

The receiver's database keeps the ids of the notices it has dealt with. Id and effect are written in one transaction: after a
crash there are both or neither, and a notice that comes again is known by its id.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, insert, select

from tidings.exchange.ids import checked_id
from tidings.exchange.records import Notice
from tidings.exchange.schema import inbox
from tidings.exchange.store import Store


class Inbox:
    """The notices that one consumer has dealt with. The store may be the consumer's own."""

    def __init__(self, store: Store, consumer: str) -> None:
        self._store = store
        self._consumer = checked_id("consumer", consumer)

    def receive(self, notice: Notice, effect: Callable[[Connection, Notice], object]) -> bool:
        """Lets a notice have its effect, unless it had it before. Whether it had it now.

        What `effect` writes by the connection it is given happens once. It may be called again if the transaction fails, so
        it should do nothing else.
        """

        def received(connection: Connection) -> bool:
            key = {"consumer": self._consumer, "id": notice.id}
            known = select(inbox.c.id).where(inbox.c.consumer == self._consumer, inbox.c.id == notice.id)
            if connection.execute(known).one_or_none() is not None:
                return False
            connection.execute(insert(inbox).values(**key))
            effect(connection, notice)
            return True

        return self._store.write(received)
