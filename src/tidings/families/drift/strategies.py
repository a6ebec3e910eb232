"""Message strategies of drift: `region` (the default), and `scan`, `unicast` and `relax` as baselines.

All four give the same notifications. `region` and `scan` send a change to ranges of radii and labels, found with the threshold
index or by a scan of all subscriptions; `unicast` finds the affected subscriptions with heaps of thresholds and sends a
message to each; `relax` sends every change to all subscriptions that follow the row, and the views decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tidings.families.drift.index import BaselineFollowers, Followers
from tidings.families.drift.reformulate import ASKED, everyone, messages_of, regions_of, tags_of
from tidings.families.drift.rows import changed_keys, snapshots, values_of
from tidings.families.drift.subscription import Space
from tidings.families.listeners import Listeners
from tidings.families.optional import Remembering
from tidings.families.protocols import ColumnarRows, Created, Memory, Server
from tidings.model.change import TableChanges
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions


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


class ScanServer(RegionServer):
    """As `RegionServer`, with ranges found by comparing the new value with the thresholds of all subscriptions."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.followers = BaselineFollowers(space, with_heaps=False)


class UnicastServer(RegionServer):
    """One message per affected subscription."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.followers = self._named = BaselineFollowers(space, with_heaps=True)

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        at, values, touched = self.followers.move(changes)
        counts = np.diff(touched.starts)
        if not counts.any():
            return []
        found = regions_of(touched, tags_of(values))
        regions = Regions(found.lo, found.hi, found.tags, np.arange(len(found.tags) + 1))
        chosen = messages_of(self.space, changes, np.repeat(at, counts), regions)
        target = self._named.names(touched.label_lo)
        return [MessageBatch(chosen.form, chosen.seq, chosen.channel, regions, chosen.payload, target)]


class RelaxServer(Server, Remembering):
    """One message per change, to all subscriptions that follow the row."""

    memory = Memory.POINTS

    def __init__(self, space: Space) -> None:
        self.space = space
        self._listeners = Listeners()

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        old, new = values_of(self.space, changes.before)[0], values_of(self.space, changes.after)[0]
        # A row whose value is null before and after causes no notification.
        concerns = ~(np.isnan(old) & np.isnan(new))
        concerns &= self._listeners.hear(changed_keys(self.space, changes)[: len(self.space.pinned)], len(changes))
        at = np.flatnonzero(concerns)
        if len(at) == 0:
            return []
        tags = tags_of(new)
        tags[~np.isnan(old) & ~np.isnan(new)] = ASKED
        return [messages_of(self.space, changes, at, everyone(tags[at]), with_values=True)]

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        self._listeners.add(points)
        rows = tables[self.space.table.name]
        return Created(points, list(snapshots(self.space, points, rows)) if wants_snapshots else [])

    def drop(self, points: PointBatch) -> None:
        self._listeners.add(points, -1)

    def dump(self) -> Any:
        return self._listeners.dump(self.space.channel_types)

    def load(self, state: Any) -> None:
        self._listeners.load(state)
