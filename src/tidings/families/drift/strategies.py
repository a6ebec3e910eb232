"""The message strategy of drift: `region`. A change goes to ranges of radii and labels, found with the threshold index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tidings.families.drift.index import Followers
from tidings.families.drift.reformulate import messages_of, regions_of, tags_of
from tidings.families.drift.rows import snapshots
from tidings.families.drift.subscription import Space
from tidings.families.optional import Remembering
from tidings.families.protocols import ColumnarRows, Created, Memory, Server
from tidings.model.change import TableChanges
from tidings.model.message import MessageBatch
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
