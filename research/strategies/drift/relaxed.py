"""Relaxed creation, and with it may and must: strategies that are exact by definitions of their own.

`relaxed`: of subscriptions with one radius all were always last told the same, as the paper on value-based notification has it
in section 3: one that comes gets the row that those before it hold, which may be older than the present one. No labels are
needed, and a message has ranges of radii alone.

`choice`: `moved(x) BETWEEN a AND b` by the rule of its section 6.1 (see `kernels.choice_tree`): told when somebody must be and
the others may. A point is (a, b), as `RangeDoor` compiles it, and those with the same ranges hold the same.

What one subscriber is told then depends on who else is there, so places cannot evaluate for themselves: these run in
`research.stages` only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.protocols import ColumnarRows, Created
from research.strategies.drift.follower_index import KINDS, Followers
from research.strategies.drift.kernels.choice_index import ChoiceIndex
from research.strategies.drift.kernels.threshold_index import ThresholdIndex
from research.strategies.drift.region_server import RegionServer
from research.strategies.drift.rows import Float64Array, snapshots_of, values_of
from tidings.families.drift.subscription import Space, space_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.channel import channel_keys
from tidings.model.codes import Int64Array, code_of, doubles_of_codes
from tidings.model.errors import UsageError
from tidings.model.points import Event, PointBatch
from tidings.model.types import ColumnType
from tidings.pipeline.door import Door

_VERSIONS_MIN = 1_000


class RangeDoor(Door):
    """Compiles `BETWEEN a AND b` to the point (a, b), and `>= r` to (r, r)."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog, keeps_queries=True)
        self._ranges: dict[str, list[int]] = {}

    def take(self) -> list[PointBatch]:
        return [self._ranged(points) for points in super().take()]

    def _ranged(self, points: PointBatch) -> PointBatch:
        assert self.queries is not None
        coords = points.coords.copy()
        events = zip(points.event.tolist(), points.order.tolist(), points.id.to_pylist(), strict=True)
        for i, (event, order, id) in enumerate(events):
            if event == Event.CREATE:
                numbers = self.queries[order][1].constants.movement
                self._ranges[id] = [code_of(ColumnType.DOUBLE, number) for number in (numbers[0], numbers[-1])]
            coords[i] = self._ranges[id]
        return replace(points, coords=coords)


class SharedFollowers(Followers):
    """Members with equal keys are one for the index. The time of an anchor is the number of the version of the row."""

    def __init__(self, space: Space, index: Any) -> None:
        super().__init__(space)
        self.index = index
        self._members: Counter[tuple[int, float, int]] = Counter()
        """Key of members, with their audience -> how many there are."""
        self._versions: dict[int, pa.RecordBatch] = {}
        """Number -> row, of those that somebody holds and some others."""
        self._top = 0
        self._swept_at = _VERSIONS_MIN

    def add(self, points: PointBatch, rows: ColumnarRows) -> PointBatch:
        audience = self._audiences_of(points, rows)
        fresh = []
        for key in self._keys(points, audience):
            self._members[key] += 1
            if self._members[key] == 1:
                fresh.append(key)
        self.index.add(*_columns(fresh))
        return points

    def remove(self, points: PointBatch) -> None:
        channels = channel_keys(points.channel, len(points))
        audience = np.array([self._audiences.get(channel, -1) for channel in channels], np.int64)
        gone = []
        for key in self._keys(points, audience):
            self._members[key] -= 1
            if not self._members[key]:
                del self._members[key]
                gone.append(key)
        self.index.remove(*_columns(gone))
        for channel in set(channels) & self._audiences.keys():
            if self.index.member_count(self._audiences[channel]) == 0:
                self._forget_audience(channel)

    def held(self, points: PointBatch) -> tuple[Int64Array, pa.RecordBatch | None]:
        """(index of the point, row) for every row that members hold; None if there is no row."""
        owners, versions = [], []
        channels = channel_keys(points.channel, len(points))
        audience = np.array([self._audiences.get(channel, -1) for channel in channels], np.int64)
        for i, (channel, number, reach, label) in enumerate(
            zip(channels, audience.tolist(), *_coordinates(points), strict=True)
        ):
            if number < 0:
                continue
            for key in [channel] if self.space.follows_one_row else self._items_on.get(channel, ()):
                anchor = self.index.anchor(self._items[key], reach, label)
                if anchor is not None:
                    owners.append(i)
                    versions.append(self._versions[anchor[1]])
        return np.array(owners, np.int64), _joined(versions)

    def _keys(self, points: PointBatch, audience: Int64Array) -> list[tuple[int, float, int]]:
        keys = zip(audience.tolist(), *_coordinates(points), strict=True)
        return [key for key in keys if key[0] >= 0]

    def _observe(self, rows: pa.RecordBatch) -> tuple[Float64Array, Int64Array]:
        values, _ = values_of(self.space, rows)
        numbers = np.arange(self._top, self._top + len(rows))
        self._top += len(rows)
        for i, number in enumerate(numbers.tolist()):
            if not np.isnan(values[i]):
                self._versions[number] = rows.slice(i, 1)
        if len(self._versions) > self._swept_at:
            self._sweep(set(numbers.tolist()))
        return values, numbers

    def _sweep(self, kept: set[int]) -> None:
        """Forgets the versions that nobody holds, but for these."""
        for item in self._items.values():
            kept.add(self.index.value(item)[1])
            kept.update(np.unique(_times(self.index, item)).tolist())
        self._versions = {number: row for number, row in self._versions.items() if number in kept}
        self._swept_at = max(_VERSIONS_MIN, 2 * len(self._versions))

    def dump(self) -> dict[str, Any]:
        self._sweep(set())
        keys = _columns(list(self._members))
        rows = _joined(list(self._versions.values()))
        counts = np.array(list(self._members.values()), np.int64)
        versions = [self._top, np.array(list(self._versions), np.int64), rows]
        return super().dump() | {"members": [*keys, counts], "versions": versions}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        *keys, counts = (column.tolist() for column in state["members"])
        self._members.update(dict(zip(zip(*keys, strict=True), counts, strict=True)))
        self._top, numbers, rows = state["versions"]
        self._versions = {number: rows.slice(i, 1) for i, number in enumerate(numbers.tolist())}


def _times(index: ThresholdIndex | ChoiceIndex, item: int) -> Int64Array:
    return index.runs(item).time if isinstance(index, ThresholdIndex) else index.times(item)


def _coordinates(points: PointBatch) -> tuple[list[float], list[int]]:
    return doubles_of_codes(points.coords[:, 0]).tolist(), points.coords[:, 1].tolist()


def _columns(keys: list[tuple[int, float, int]]) -> tuple[Int64Array, Float64Array, Int64Array]:
    audience, reach, label = zip(*keys, strict=True) if keys else ((), (), ())
    return np.array(audience, np.int64), np.array(reach, np.float64), np.array(label, np.int64)


def _joined(rows: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    return pa.concat_batches(rows) if rows else None


class SharedServer(RegionServer):
    """As `RegionServer`, for subscriptions that hold what those with the same point hold."""

    def __init__(self, space: Space, index: Any) -> None:
        if space.patience is not None:
            raise UsageError("this strategy of drift does not know silent_for")
        self.space = space
        self.followers: SharedFollowers = SharedFollowers(space, index)

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        placed = self.followers.add(points, tables[self.space.table.name])
        owner, rows = self.followers.held(points) if wants_snapshots else (None, None)
        if owner is None or rows is None:
            return Created(placed)
        return Created(placed, list(snapshots_of(self.space, points, owner, rows)))


def relaxed(form: Form, catalog: Catalog) -> SharedServer:
    space = space_of(form, catalog)
    return SharedServer(space, ThresholdIndex(KINDS[space.kind]))


def choice(form: Form, catalog: Catalog) -> SharedServer:
    space = space_of(form, catalog)
    return SharedServer(space, ChoiceIndex(KINDS[space.kind]))
