"""Replays the changes of join data on a server, or on the part of it that computes regions; counts messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from research.bench.join.data import JoinData
from research.servers.changes import ChangeBatch
from research.servers.forms import project_all
from research.servers.message import MessageBatch
from research.servers.protocols import ColumnarRows, Replanning
from research.stages.table_store import TableStore
from research.strategies.join.boxes import Boxes
from research.strategies.join.payload import PLACED, SIDE
from research.strategies.join.relations.store import RelationStore
from research.strategies.join.semijoin.skylines import Question, Skyline
from research.strategies.join.servers import server_of
from research.strategies.join.space import Space
from research.strategies.join.subscriber_index import SubscriberIndex
from research.wire import wire_sizes
from research.workloads.join.tables import BINARY
from tidings.families.spec import Form
from tidings.kernels.point_index import PointIndex
from tidings.model.change import Op, TableChanges
from tidings.model.codes import BoolArray, Int64Array, codes_of_doubles
from tidings.model.region import Regions

R, S = 0, 1
"""Numbers of the sides."""
_COLUMNS = [table.value for table in BINARY.tables]


class JoinReplay:
    """A server by one strategy, with all rows and subscriptions in place."""

    def __init__(self, data: JoinData, strategy: str) -> None:
        self._server = server_of(data.catalog, strategy)
        stores = {table.name: TableStore(table) for table in data.catalog.tables}
        for batch in data.inserts():
            stores[batch.table].replay(batch)
        tables: dict[str, ColumnarRows] = {**stores}
        self._server.create(data.points(), tables, wants_snapshots=False)

    def play(self, changes: TableChanges) -> list[MessageBatch]:
        sent = list(self._server.change(changes))
        if isinstance(self._server, Replanning) and (decision := self._server.decide()) is not None:
            sent.extend(self._server.follow(decision, int(changes.seq[-1])))
        return sent


def portions(data: JoinData, at_a_time: int, changes_max: int) -> Iterator[TableChanges]:
    """The first changes after the rows, with their images."""
    given = 0
    for batch in data.updates():
        for start in range(0, len(batch), at_a_time):
            stop = min(start + at_a_time, len(batch), start + changes_max - given)
            if stop > start:
                yield data.images(batch.slice(start, stop))
                given += stop - start


class Arrived(NamedTuple):
    """Changes of R as arrays, after columns and keys have been read."""

    codes: Int64Array
    """[change, 1]"""
    value: Int64Array
    cell: Int64Array
    entry: Int64Array
    is_insert: BoolArray

    def insertions(self) -> Arrived:
        at = self.is_insert
        return Arrived(self.codes[at], self.value[at], self.cell[at], self.entry[at], at[at])


class BaseSide:
    """Computes regions of changed rows of R (skylines over the rows of S), and keeps the index of the rows of R up to date."""

    def __init__(self, data: JoinData, skyline: Skyline) -> None:
        self._space, self._skyline = data.space, skyline
        self._subscribers = SubscriberIndex(data.space)
        self._subscribers.add(np.arange(data.size), data.coords())
        self._edge = RelationStore().graph(data.space, {}).edges[R, S]
        for batch in data.inserts():
            self._keep(self.arrive(batch), data.space.side_of(batch.table))

    def arrive(self, batch: ChangeBatch) -> Arrived:
        side = self._space.side_of(batch.table)
        codes = codes_of_doubles(batch.rows.column(_COLUMNS[side]).to_numpy())[:, None]
        value, cell = self._edge.index(side).locate(batch.rows, codes, np.ones(len(batch), np.bool_))
        return Arrived(codes, value, cell, batch.rows.column("id").to_numpy(), batch.op != Op.DELETE)

    def play(self, rows: Arrived) -> int:
        """Applies changes. Returns the number of boxes of their regions."""
        self._keep(rows, R)
        gone = rows.codes[~rows.is_insert]
        return len(self.draw(rows.insertions())) + len(Boxes.all(self._space, len(gone)).hold(R, gone))

    def draw(self, rows: Arrived) -> Boxes:
        """The boxes of insertions."""
        # With one range column, codes of S rows are in the index.
        others = np.empty((0, 1), np.int64)
        question = Question(self._space, self._subscribers, R, rows.codes, S, self._edge.index(S), others)
        return self._skyline.draw(question, rows.value)[1]

    def _keep(self, rows: Arrived, side: int) -> None:
        self._edge.index(side).change(rows.cell, rows.entry, rows.codes, rows.is_insert)


@dataclass(frozen=True)
class Tally:
    """Counts of messages; all arrays [changes]."""

    messages: Int64Array
    boxes: Int64Array
    bytes: Int64Array
    exposed: Int64Array
    """Rows of S that are sent late."""
    points: Int64Array
    """Boxes of the region of a new row of R: the points of its skyline."""
    insertions: Int64Array
    """1 for an insertion, else 0."""

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
        """Bytes divided by those of another strategy, over the changes that both have."""
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
    """[regions]: number of boxes with tag PLACED."""
    ends = np.concatenate([[0], np.cumsum(regions.tags == PLACED)])
    count: Int64Array = ends[regions.starts[1:]] - ends[regions.starts[:-1]]
    return count


def head(sent: Sequence[MessageBatch], changes: TableChanges) -> list[MessageBatch]:
    """The messages of these changes, which must be the first ones."""
    return [batch.take(np.flatnonzero(batch.seq <= changes.seq[-1])) for batch in sent]


class JoinSubscribers:
    """The points of all subscriptions, known by their numbers."""

    def __init__(self, data: JoinData) -> None:
        points = data.coords()
        self._data = data
        self._forest = PointIndex(points.shape[1])
        self._forest.add_many(np.zeros(len(points), np.int64), np.arange(len(points)), points)

    def deliveries(self, sent: Sequence[MessageBatch]) -> int:
        """Number of points that the messages reach; a point that gets two of them counts twice."""
        regions = [own for batch in sent if batch.target is None for own in project_all(batch, self._data.catalog)]
        return sum(map(self._count, regions)) + sum(len(batch) for batch in sent if batch.target is not None)

    def affected(self, changes: TableChanges, sent: Sequence[MessageBatch]) -> list[Int64Array]:
        """For each insertion among the changes, the points whose answers it extends, if regions are exact.

        These are the points that get the new row itself; rows sent late go to some of the same points.
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
