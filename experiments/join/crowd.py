"""The subscriptions of a form as the servers of all strategies share them, and whom messages reach.

A network is not simulated. What it would carry at least is known all the same: every message has to get to each broker that
has somebody for it. Brokers have as many subscriptions each, that lie next to each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tidings.families.base import Server
from tidings.families.join.audience import Audience
from tidings.families.join.semijoin import SemijoinServer
from tidings.families.join.strategies import server_of
from tidings.families.join.subscription import Space
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions

BROKERS = 1_000
"""As in the paper."""
_MESSAGES_AT_ONCE = 2_000


class Reach(NamedTuple):
    """An element per message."""

    brokers: Int64Array
    deliveries: Int64Array


class Crowd:
    """Who is in a form's space; nobody comes or goes, so one index will do for all servers."""

    def __init__(self, space: Space, points: PointBatch, brokers: int = BROKERS) -> None:
        self.space = space
        self._points = points
        self._brokers = brokers
        self._audience, self._nobody = Audience(space), Audience(space)
        self._audience.add(points)
        self._broker = brokers_of(points.coords, brokers)

    def server(self, strategy: str, rows: Iterable[TableChanges]) -> Server:
        """A server with rows and subscriptions in place."""
        server = server_of(self.space, strategy)
        for changes in rows:
            self.skip(server, changes)
        if isinstance(server, SemijoinServer):
            server.audience = self._audience
        else:
            server.create(self._points, {}, wants_snapshots=False)
        return server

    def skip(self, server: Server, changes: TableChanges) -> None:
        """Lets a server know of changes that it need not tell anybody."""
        if isinstance(server, SemijoinServer):
            listening, server.audience = server.audience, self._nobody
            list(server.change(changes))
            server.audience = listening

    def reach(self, messages: MessageBatch) -> Reach:
        """Whom messages reach; one to a single subscription reaches that."""
        if messages.target is not None:
            return Reach(np.ones(len(messages), np.int64), np.ones(len(messages), np.int64))
        brokers, deliveries = [], []
        for start in range(0, len(messages), _MESSAGES_AT_ONCE):
            at = np.arange(start, min(len(messages), start + _MESSAGES_AT_ONCE))
            found = self._reach(messages.regions.take(at))
            brokers.append(found.brokers)
            deliveries.append(found.deliveries)
        return Reach(np.concatenate(brokers), np.concatenate(deliveries))

    def _reach(self, regions: Regions) -> Reach:
        message, slot, _ = self._audience.affected(np.zeros(len(regions), np.int64), regions)
        is_met = np.zeros((len(regions), self._brokers), np.bool_)
        is_met[message, self._broker[slot]] = True
        return Reach(is_met.sum(axis=1), np.bincount(message, minlength=len(regions)))


def brokers_of(coords: Int64Array, brokers: int) -> Int64Array:
    """The broker of each point: space is cut in two parts with as many points for each broker, by each column in turn."""
    found = np.zeros(len(coords), np.int64)
    parts = [(np.arange(len(coords)), 0, brokers, 0)]
    while parts:
        points, first, count, column = parts.pop()
        if count == 1 or len(points) == 0:
            found[points] = first
            continue
        lower = count // 2
        size = len(points) * lower // count
        order = points[np.argpartition(coords[points, column], min(size, len(points) - 1))]
        following = (column + 1) % coords.shape[1]
        parts += [(order[:size], first, lower, following), (order[size:], first + lower, count - lower, following)]
    return found
