"""The subscriptions of some forms as the servers of all strategies see them, and whom messages reach.

A network is not simulated. What it would carry at least is known all the same: every message has to get to each broker that
has somebody for it. A subscription has one broker, whatever the strategy. Brokers have as many subscriptions each, that lie
next to each other by their ranges on a table and on the one that filters it, be they of one form or several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from research.servers.forms import project_all
from research.servers.message import MessageBatch
from research.servers.protocols import Server
from research.servers.space import places
from research.strategies.join.join_server import JoinServer
from research.strategies.join.semijoin.shared import semijoin_form
from research.strategies.join.servers import server_of
from research.strategies.join.space import Space, space_of
from research.strategies.join.subscriber_index import SubscriberIndex
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.points import PointBatch

BROKERS = 1_000
"""As in the paper."""
_MESSAGES_AT_ONCE = 2_000


class Reach(NamedTuple):
    """An element per message."""

    brokers: Int64Array
    deliveries: Int64Array


class Subscribers:
    """Who subscribes; nobody comes or goes."""

    def __init__(self, catalog: Catalog, points: Sequence[PointBatch], table: str, brokers: int = BROKERS) -> None:
        """`table`: by whose rows, and those that filter them, subscriptions are spread over brokers."""
        self._catalog = catalog
        self._points = points
        self.table = table
        self._brokers = brokers
        self._indexes: dict[str, SubscriberIndex] = {}
        for batch in points:
            index = SubscriberIndex(space_of(Form.from_key(batch.form), catalog))
            index.add(np.arange(len(batch)), batch.coords)
            self._indexes[batch.form] = index
        self.broker = self._homes(table)
        """By form, of each subscription."""

    def server(self, strategy: str, rows: Iterable[TableChanges]) -> Server:
        """A server with rows and subscriptions in place."""
        server = server_of(self._catalog, strategy)
        for points in self._points:
            server.create(points, {}, wants_snapshots=False)
        for changes in rows:
            skip(server, changes)
        return server

    def reach(self, messages: MessageBatch) -> Reach:
        """Whom messages reach; one to a single subscription reaches that."""
        if messages.target is not None:
            return Reach(np.ones(len(messages), np.int64), np.ones(len(messages), np.int64))
        parts = [
            self._reach(messages.take(np.arange(start, min(len(messages), start + _MESSAGES_AT_ONCE))))
            for start in range(0, len(messages), _MESSAGES_AT_ONCE)
        ]
        return Reach(*(np.concatenate(found) for found in zip(*parts, strict=True)))

    def _reach(self, messages: MessageBatch) -> Reach:
        is_met = np.zeros((len(messages), self._brokers), np.bool_)
        deliveries = np.zeros(len(messages), np.int64)
        for own in project_all(messages, self._catalog):
            message, slot, _ = self._indexes[own.form].affected(own.regions)
            is_met[message, self.broker[own.form][slot]] = True
            deliveries += np.bincount(message, minlength=len(messages))
        return Reach(is_met.sum(axis=1), deliveries)

    def _homes(self, table: str) -> dict[str, Int64Array]:
        """The brokers of all subscriptions: forms whose rows of a table are filtered alike are spread together."""
        together: dict[Space, list[PointBatch]] = {}
        for batch in self._points:
            space = space_of(Form.from_key(batch.form), self._catalog)
            number = space.side_of(table)
            by = min(other for sides in space.join_columns if number in sides for other in sides if other != number)
            together.setdefault(space_of(semijoin_form(space, number, (by,)), self._catalog), []).append(batch)
        found: dict[str, Int64Array] = {}
        total, taken, done = sum(map(len, self._points)), 0, 0
        for semijoin, batches in together.items():
            coords = [batch.coords[:, places(self._indexes[batch.form].space.axes, semijoin.axes)] for batch in batches]
            done += sum(map(len, batches))
            own = self._brokers * done // max(1, total) - taken
            brokers = taken + brokers_of(np.concatenate(coords), own)
            ends = np.cumsum([len(batch) for batch in batches])
            found |= {batch.form: part for batch, part in zip(batches, np.split(brokers, ends[:-1]), strict=True)}
            taken += own
        return found


def skip(server: Server, changes: TableChanges) -> None:
    """Lets a server know of changes that it need not tell anybody."""
    if isinstance(server, JoinServer):
        server.see(changes)


def brokers_of(coords: Int64Array, brokers: int) -> Int64Array:
    """The broker of each point: space is cut in two, with as many points for each broker, until there is one.

    A cut goes through the ends of those ranges that are shortest for how far they are spread, because values that lie within
    ranges then concern the fewest brokers. What counts are places among all ends, not values.
    """
    found = np.zeros(len(coords), np.int64)
    ranges = [_places(coords[:, column : column + 2]) for column in range(0, coords.shape[1], 2)]
    ends = np.concatenate(ranges, axis=1) if ranges else np.zeros((len(coords), 1))
    parts = [(np.arange(len(coords)), 0, brokers)]
    while parts:
        points, first, count = parts.pop()
        if count <= 1 or len(points) == 0:
            found[points] = first
            continue
        lower = count // 2
        size = len(points) * lower // count
        own = ends[points]
        lengths = np.repeat((own[:, 1::2] - own[:, 0::2]).mean(axis=0), 2) + 1 if ranges else np.ones(1)
        column = int((own.std(axis=0) / lengths).argmax())
        order = points[np.argpartition(own[:, column], min(size, len(points) - 1))]
        parts += [(order[:size], first, lower), (order[size:], first + lower, count - lower)]
    return found


def _places(ends: Int64Array) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Ends by their places in the order of all."""
    _, place = np.unique(ends, return_inverse=True)
    return place.reshape(ends.shape).astype(np.float64)
