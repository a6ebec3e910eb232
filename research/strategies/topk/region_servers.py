"""The message strategy of top-k: `dense`. A row goes to the tiles of the plane where it matters, without a look at points.

Forms with option `net`, and forms with several ranges, have one server each, whatever the strategy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from research.servers.listeners import Listeners
from research.servers.message import MessageBatch
from research.servers.protocols import ColumnarRows, Created, Memory, Remembering, Server
from research.strategies.topk.kernels.box_topk import BoxTopkIndex
from research.strategies.topk.ranked_rows import RankedRows, RowSends
from research.strategies.topk.reformulate import messages_of, tiles_of
from tidings.families.spec import Form
from tidings.families.topk.subscription import Space, space_of
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.channel import group_channels
from tidings.model.points import PointBatch
from tidings.model.region import Regions


class DenseServer(Server, Remembering):
    """`dense`: at most k tiles for a row that rises, and some for each row that takes the place of one that falls."""

    memory = Memory.CHANGES
    at_a_time = 8_192
    """Changes handled at a time. They have several times as many messages, and larger arrays are slow to allocate."""

    def __init__(self, space: Space, ranked: RankedRows | None = None) -> None:
        self.space = space
        self.ranked = RankedRows(space) if ranked is None else ranked
        self._listeners = Listeners()

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for start in range(0, len(changes), self.at_a_time):
            part = changes.slice(start, min(len(changes), start + self.at_a_time))
            batch = self.ranked.change(part)
            if len(batch.change) == 0:
                continue
            messages = messages_of(self.space, self.ranked, part.seq, batch, self._regions(batch))
            heard = self._listeners.hear(messages.channel, len(messages))
            if heard.any():
                yield messages.take(np.flatnonzero(heard))

    def _regions(self, batch: RowSends) -> Regions:
        return tiles_of(batch)

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        if not self.ranked.is_filled:
            self.ranked.fill(tables[self.space.table.name])
        self._listeners.add(points)
        return Created(points, self.ranked.first_rows(points) if wants_snapshots else [])

    def drop(self, points: PointBatch) -> None:
        self._listeners.add(points, -1)

    def dump(self) -> Any:
        return {"ranked": self.ranked.dump(), "listeners": self._listeners.dump(self.space.channel_types)}

    def load(self, state: Any) -> None:
        self.ranked.load(state["ranked"])
        self._listeners.load(state["listeners"])


class SeveralRangesServer(Server, Remembering):
    """Serves ranges of several columns.

    With one range, the neighbours of a row determine where it matters; with several ranges there are no such neighbours. So the
    old and the new row are looked up among the points: those whose ranges contain the row, where it is no worse than their k-th
    row. Messages (the changed row, its deletion, each row that takes its place) go to a few boxes around these points. Other
    points in the boxes get the row as well; their views discard it.
    """

    memory = Memory.CHANGES

    def __init__(self, space: Space) -> None:
        self.space = space
        self.index = BoxTopkIndex(space.k, len(space.ranges))
        self.ranked = RankedRows(space, self.index)

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        batch = self.ranked.change(changes)
        if len(batch.change) == 0:
            return []
        return [messages_of(self.space, self.ranked, changes.seq, batch, tiles_of(batch))]

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        if not self.ranked.is_filled:
            self.ranked.fill(tables[self.space.table.name])
        self.index.add(*self.ranked.placed(points))
        return Created(points, self.ranked.first_rows(points) if wants_snapshots else [])

    def drop(self, points: PointBatch) -> None:
        self.index.remove(*self.ranked.placed(points))

    def dump(self) -> Any:
        sets, coords, copies = self.index.points()
        channel = list(self.ranked.channels(sets))
        return {"ranked": self.ranked.dump(), "channel": channel, "coords": coords, "copies": copies}

    def load(self, state: Any) -> None:
        self.ranked.load(state["ranked"])
        copies = state["copies"]
        group, keys = group_channels(state["channel"], len(copies))
        sets = self.ranked.sets_of(keys)[group]
        self.index.add(np.repeat(sets, copies), np.repeat(state["coords"], copies, axis=0))


def dense(form: Form, catalog: Catalog) -> DenseServer | SeveralRangesServer:
    space = space_of(form, catalog)
    return SeveralRangesServer(space) if len(space.ranges) > 1 else DenseServer(space)
