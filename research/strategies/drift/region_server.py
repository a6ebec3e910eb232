"""The message strategy of drift: `region`. A change goes to ranges of radii and labels, found with the threshold index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from research.servers.message import MessageBatch
from research.servers.protocols import ColumnarRows, Created, Memory, Remembering, Server
from research.strategies.drift.follower_index import Followers
from research.strategies.drift.reformulate import messages_of, regions_of, tags_of
from research.strategies.drift.rows import snapshots
from tidings.families.drift.subscription import Space, space_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.points import PointBatch


class RegionServer(Server, Remembering):
    """One message per change, to a few ranges, independent of the number of subscriptions."""

    memory = Memory.CHANGES

    def __init__(self, space: Space) -> None:
        self.space = space
        self.followers = Followers(space)

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        at, values, touched = self.followers.move(changes)
        reached = np.flatnonzero(np.diff(touched.starts))
        if len(reached) == 0:
            return []
        regions = regions_of(touched, tags_of(values)).take(reached)
        return [messages_of(self.space, changes, at[reached], regions)]

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        rows = tables[self.space.table.name]
        placed = self.followers.add(points, rows)
        return Created(placed, list(snapshots(self.space, points, rows)) if wants_snapshots else [])

    def drop(self, points: PointBatch) -> None:
        self.followers.remove(points)

    def dump(self) -> Any:
        return self.followers.dump()

    def load(self, state: Any) -> None:
        self.followers.load(state)


def region(form: Form, catalog: Catalog) -> RegionServer:
    return RegionServer(space_of(form, catalog))
