"""What join messages come to, change by change, and whom they reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from tidings.bench.join_data import JoinData
from tidings.bench.join_player import R, S
from tidings.families.join.payload import PLACED, SIDE
from tidings.families.join.subscription import Space
from tidings.families.registry import project_all
from tidings.families.spec import Form
from tidings.kernels.forest import PointForest
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.model.region import Regions
from tidings.network.wire import wire_sizes


@dataclass(frozen=True)
class Tally:
    """An element a change."""

    messages: Int64Array
    boxes: Int64Array
    bytes: Int64Array
    exposed: Int64Array
    """Rows of S that are sent late."""
    points: Int64Array
    """Boxes to which a new row of R goes: the points of its skyline."""
    insertions: Int64Array
    """1 for a change that is one."""

    def __len__(self) -> int:
        return len(self.messages)

    @staticmethod
    def of(space: Space, changes: TableChanges, sent: Sequence[MessageBatch]) -> Tally:
        def per_change(counts: Sequence[Int64Array]) -> Int64Array:
            total = np.zeros(len(changes), np.int64)
            for batch, count in zip(sent, counts, strict=True):
                np.add.at(total, batch.seq - changes.seq[0], count)
            return total

        sides = [_sides_of(space, batch) for batch in sent]
        placed = [_placed(batch.regions) for batch in sent]
        return Tally(
            per_change([np.ones(len(batch), np.int64) for batch in sent]),
            per_change([np.diff(batch.regions.starts) for batch in sent]),
            per_change([wire_sizes(batch) for batch in sent]),
            per_change([(side == S).astype(np.int64) for side in sides]),
            per_change([np.where(side == R, count, 0) for side, count in zip(sides, placed, strict=True)]),
            changes.has.astype(np.int64),
        )

    @staticmethod
    def concat(tallies: Sequence[Tally]) -> Tally:
        return Tally(*(np.concatenate([getattr(tally, field.name) for tally in tallies]) for field in fields(Tally)))

    def bytes_over(self, other: Tally) -> float:
        """Bytes for those by another strategy, of the changes that both have."""
        count = min(len(self), len(other))
        return float(self.bytes[:count].sum() / other.bytes[:count].sum())

    def points_over(self, other: Tally) -> float:
        count = min(len(self), len(other))
        return float(self.points[:count].sum() / other.points[:count].sum())


def _sides_of(space: Space, messages: MessageBatch) -> Int64Array:
    """The side of a space that each message carries a row of."""
    if messages.to:
        return np.full(len(messages), space.side_of(Form.from_key(messages.form).variant))
    sides: Int64Array = messages.payload.column(SIDE).to_numpy()
    return sides


def _placed(regions: Regions) -> Int64Array:
    """Boxes of each region in which a row is to be held."""
    ends = np.concatenate([[0], np.cumsum(regions.tags == PLACED)])
    count: Int64Array = ends[regions.starts[1:]] - ends[regions.starts[:-1]]
    return count


def head(sent: Sequence[MessageBatch], changes: TableChanges) -> list[MessageBatch]:
    """Those of the messages that tell of these changes, which are the first."""
    return [batch.take(np.flatnonzero(batch.seq <= changes.seq[-1])) for batch in sent]


class Crowd:
    """The points of all subscriptions, known by their numbers."""

    def __init__(self, data: JoinData) -> None:
        points = data.points().coords
        self._data = data
        self._forest = PointForest(points.shape[1])
        self._forest.add_many(np.zeros(len(points), np.int64), np.arange(len(points)), points)

    def deliveries(self, sent: Sequence[MessageBatch]) -> int:
        """How many points the messages reach; one that gets two of them counts twice."""
        regions = [own for batch in sent if batch.target is None for own in project_all(batch, self._data.catalog)]
        return sum(map(self._count, regions)) + sum(len(batch) for batch in sent if batch.target is not None)

    def affected(self, changes: TableChanges, sent: Sequence[MessageBatch]) -> list[Int64Array]:
        """Those for whom each insertion among the changes adds to the answer, if regions are exact.

        These are the points that get the new row itself: what is sent late goes to some of them.
        """
        found: list[Int64Array] = [np.empty(0, np.int64) for _ in range(len(changes))]
        for batch in (own for messages in sent for own in project_all(messages, self._data.catalog)):
            at = batch.seq - changes.seq[0]
            own = np.flatnonzero((_sides_of(self._data.space, batch) == R) & changes.has[at])
            for i, members in zip(at[own].tolist(), self._members(batch.take(own)), strict=True):
                found[i] = members
        return [found[i] for i in np.flatnonzero(changes.has).tolist()]

    def _members(self, batch: MessageBatch) -> list[Int64Array]:
        regions = batch.regions
        nobody = np.zeros(len(batch), np.int64)
        starts, slots, _ = self._forest.stab(nobody, regions.lo, regions.hi, regions.tags, regions.starts)
        return [np.sort(part).astype(np.int64) for part in np.split(slots, starts[1:-1])] if len(batch) else []

    def _count(self, batch: MessageBatch) -> int:
        regions = batch.regions
        return int(self._forest.count(np.zeros(len(batch), np.int64), regions.lo, regions.hi, regions.starts).sum())
