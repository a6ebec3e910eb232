"""Ways to turn changes into select messages: `region` (the good one), `unicast`, `scan`, `whole` (the obvious ones).

All give the same notifications. `region` and `whole` send a change once, to everyone in a region; `whole` never looks at
points, `region` leaves out long values that all those have, and looks only whether there is anybody who has not. `unicast`
finds the affected points with an index, `scan` by comparing with every point, and both send to each one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tidings.families.listeners import Listeners
from tidings.families.optional import Remembering
from tidings.families.protocols import Created, Memory, Rows, Server
from tidings.families.select.index import find_rows
from tidings.families.select.places import Places
from tidings.families.select.reformulate import reformulate
from tidings.families.select.slim import slim
from tidings.families.select.subscription import Space
from tidings.families.targets import IndexedTargets, Targets
from tidings.model.change import TableChanges
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch


class WholeServer(Server, Remembering):
    """One message per change (two when the row changes channel), whoever and however many it concerns."""

    memory = Memory.NOTHING

    def __init__(self, space: Space) -> None:
        self.space = space
        self.listeners = Listeners()

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        messages = reformulate(self.space, changes, self.listeners.counts.keys())
        return [] if messages is None else [messages]

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        self.listeners.add(points)
        if not wants_snapshots:
            return Created(points)
        rows = tables[self.space.table.name]
        owner, position = find_rows(self.space, points, rows)
        if len(owner) == 0:
            return Created(points)
        payload = rows.take(position).select(list(self.space.projection))
        snapshots = SnapshotBatch(self.space.key, points.after[owner], points.id.take(pa.array(owner)), payload)
        return Created(points, [snapshots])

    def drop(self, points: PointBatch) -> None:
        self.listeners.add(points, -1)

    def dump(self) -> Any:
        return self.listeners.dump(self.space.channel_types)

    def load(self, state: Any) -> None:
        self.listeners.load(state)


class RegionServer(WholeServer):
    """The same without long values that whoever is concerned has already; in full only to those who have not."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._places = Places(space.dims)

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for messages in super().change(changes):
            yield slim(self.space, messages, self._places.hear)

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        self._places.add(points)
        return super().create(points, tables, wants_snapshots=wants_snapshots)

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        self._places.remove(points)

    def dump(self) -> Any:
        return {"listeners": super().dump(), "places": self._places.dump(self.space.channel_types)}

    def load(self, state: Any) -> None:
        super().load(state["listeners"])
        self._places.load(state["places"])


class _TargetServer(WholeServer):
    """Common part of the strategies that know every point and address each affected one."""

    memory = Memory.POINTS

    def __init__(self, space: Space, targets: Targets) -> None:
        super().__init__(space)
        self._targets = targets

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        messages = reformulate(self.space, changes, self.listeners.counts.keys())
        addressed = None if messages is None else self._targets.address(messages)
        return [] if addressed is None else [addressed]

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        self._targets.add(points)
        return super().create(points, tables, wants_snapshots=wants_snapshots)

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        self._targets.remove(points)

    def dump(self) -> Any:
        return {"listeners": super().dump(), "targets": self._targets.dump(self.space.channel_types)}

    def load(self, state: Any) -> None:
        super().load(state["listeners"])
        self._targets.load(state["targets"])


class UnicastServer(_TargetServer):
    def __init__(self, space: Space) -> None:
        super().__init__(space, IndexedTargets(space.dims))


class ScanServer(_TargetServer):
    def __init__(self, space: Space) -> None:
        super().__init__(space, Targets(space.dims))
