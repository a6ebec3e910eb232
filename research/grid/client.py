"""A client: finds the rows of its constraints by itself, and tries again when its version is out of force.

Operations are done one after the other, in the order in which they are asked for. Each has a number, which it keeps however
often it is tried, so that no server applies it twice. All servers that hold the constraint, before or after, have to answer:

    all have applied it    it is done
    all refuse             the version is out of force: the client joins, and tries under the new partition, on other servers
    some refuse            they are of a version that has ended, and before it ended they applied what any had: it is done
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from research.grid.messages import Answer, Join, Joined, Message, ToClient, Write
from tidings.exchange.grid.partition import Constraint, Partition, ServerAddress, Side


@dataclass(frozen=True, slots=True)
class _Operation:
    side: Side
    id: str
    constraint: Constraint | None


class Client:
    """One client, which alone writes the constraints that it has published or subscribed.

    A client that starts again takes up where it was: `number` is that of its last operation that is done, `held` is what it
    has in the grid. An operation that may not be done has to be the next one.
    """

    def __init__(
        self, name: str, *, number: int = 0, held: Mapping[tuple[Side, str], Constraint] | None = None
    ) -> None:
        self.name = name
        self.number = number
        self.held: dict[tuple[Side, str], Constraint] = dict(held or {})
        self.version = 0
        """The version that the client knows of; 0 before it has joined."""
        self._partition: Partition | None = None
        self._is_joining = False
        self._operations: deque[_Operation] = deque()
        self._unanswered: dict[ServerAddress, Write] = {}
        self._is_applied = False

    @property
    def pending(self) -> int:
        """How many operations are not done yet."""
        return len(self._operations)

    def publish(self, id: str, constraint: Constraint) -> list[Message]:
        """Publishes a constraint, in place of the publication that has this id if there is one."""
        return self._ask(_Operation(Side.PUBLICATION, id, constraint))

    def delete(self, id: str) -> list[Message]:
        """Takes a publication back."""
        return self._ask(_Operation(Side.PUBLICATION, id, None))

    def subscribe(self, id: str, constraint: Constraint) -> list[Message]:
        """Subscribes with a constraint, in place of the subscription that has this id if there is one."""
        return self._ask(_Operation(Side.SUBSCRIPTION, id, constraint))

    def unsubscribe(self, id: str) -> list[Message]:
        """Takes a subscription back."""
        return self._ask(_Operation(Side.SUBSCRIPTION, id, None))

    def receive(self, message: ToClient) -> list[Message]:
        """Handles a message; returns what is to be sent."""
        return self._joined(message) if isinstance(message, Joined) else self._answered(message)

    def resend(self) -> list[Message]:
        """What has not been answered, to be sent again: for transports that lose messages."""
        return [Join(self.name)] if self._is_joining else [*self._unanswered.values()]

    def _ask(self, operation: _Operation) -> list[Message]:
        self._operations.append(operation)
        return self._try() if len(self._operations) == 1 else []

    def _try(self) -> list[Message]:
        """Sends the first operation to all servers concerned."""
        if not self._operations:
            return []
        if self._partition is None:
            self._is_joining = True
            return [Join(self.name)]
        operation = self._operations[0]
        servers = self._concerned(operation, self._partition)
        about = (self.name, self.number + 1, operation.side, operation.id, operation.constraint, servers)
        self._unanswered = {server: Write(server, *about) for server in servers}
        self._is_applied = False
        return [*self._unanswered.values()]

    def _concerned(self, operation: _Operation, partition: Partition) -> tuple[ServerAddress, ...]:
        """Those that hold the constraint before or after; of all rows, where it is neither known nor given."""
        old = self.held.get((operation.side, operation.id))
        known = [constraint for constraint in (old, operation.constraint) if constraint is not None]
        met = {row for constraint in known for row in partition.rows_of(operation.side, constraint)}
        rows = sorted(met) if known else range(partition.rows)
        return partition.servers_of(self.version, operation.side, operation.id, rows)

    def _joined(self, message: Joined) -> list[Message]:
        if not self._is_joining or message.version <= self.version:
            return []
        self._is_joining = False
        self._partition, self.version = message.partition, message.version
        return self._try()

    def _answered(self, answer: Answer) -> list[Message]:
        if answer.number != self.number + 1 or answer.server not in self._unanswered:
            return []
        del self._unanswered[answer.server]
        self._is_applied |= answer.is_applied
        if self._unanswered:
            return []
        if self._is_applied:
            self._done()
        else:
            self._partition = None
        return self._try()

    def _done(self) -> None:
        operation = self._operations.popleft()
        self.number += 1
        if operation.constraint is not None:
            self.held[operation.side, operation.id] = operation.constraint
        else:
            self.held.pop((operation.side, operation.id), None)
