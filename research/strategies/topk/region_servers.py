"""The message strategy of top-k: `dense`. A row goes to the tiles where it matters, of the plane or, if a form has several
ranges, of a space of more axes; without a look at points.
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
from tidings.model.points import PointBatch
from tidings.model.region import Regions


class DenseServer(Server, Remembering):
    """`dense`: at most k tiles for a row that rises, and some for each row that takes the place of one that falls.

    With several ranges they are more, the more rows and axes there are.
    """

    memory = Memory.CHANGES
    at_a_time = 8_192
    """Changes handled at a time. They have several times as many messages, and larger arrays are slow to allocate."""

    def __init__(self, space: Space, ranked: RankedRows | None = None) -> None:
        self.space = space
        if ranked is None:
            ranked = ranked_rows(space) if len(space.ranges) > 1 else RankedRows(space)
        self.ranked = ranked
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


def ranked_rows(space: Space, eps: float | None = None, *, is_sparse: bool = False) -> RankedRows:
    """Rows of a form with several ranges."""
    return RankedRows(space, BoxTopkIndex(space.k, len(space.ranges), eps or 0.0, is_sparse=is_sparse))


def dense(form: Form, catalog: Catalog) -> DenseServer:
    return DenseServer(space_of(form, catalog))
