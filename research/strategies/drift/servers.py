"""Servers of the baselines of drift."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from research.servers.listeners import Listeners
from research.servers.message import MessageBatch
from research.servers.protocols import ColumnarRows, Created, Memory, Remembering, Server
from research.strategies.drift.followers import BaselineFollowers
from research.strategies.drift.reformulate import ASKED, messages_of, regions_of, tags_of
from research.strategies.drift.region_server import RegionServer
from research.strategies.drift.rows import changed_keys, snapshots, values_of
from tidings.families.drift.subscription import DIMS, Space, space_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.points import PointBatch
from tidings.model.region import Regions, TagArray


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


def scan(form: Form, catalog: Catalog) -> ScanServer:
    return ScanServer(space_of(form, catalog))


def unicast(form: Form, catalog: Catalog) -> UnicastServer:
    return UnicastServer(space_of(form, catalog))


def relax(form: Form, catalog: Catalog) -> RelaxServer:
    return RelaxServer(space_of(form, catalog))


def everyone(tags: TagArray) -> Regions:
    """A region of all points for each of the tags."""
    lo = np.full((len(tags), DIMS), CODE_MIN, np.int64)
    return Regions(lo, np.full_like(lo, CODE_MAX), tags, np.arange(len(tags) + 1))
