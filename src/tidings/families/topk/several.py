"""The server of forms with ranges of several columns, which knows its points and what is the last row each of them holds.

With one range, the rows beside a row tell where it matters; with several there are no such neighbours. So a change is
looked up among the points: those whose ranges hold the row, old or new, where it is no worse than their k-th. Messages
go to a few boxes around these. Others in the boxes get the row as well, for their ranges hold it too, and let it go again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tidings.families.optional import Remembering
from tidings.families.protocols import Created, Memory, Rows, Server
from tidings.families.topk.index import Ranked
from tidings.families.topk.reformulate import messages_of, tiles_of
from tidings.families.topk.subscription import Space
from tidings.kernels.holdings import Holdings
from tidings.model.change import TableChanges
from tidings.model.channel import group_channels
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch


class SeveralRangesServer(Server, Remembering):
    """A message for the row that has changed, one for those who lose it, and one for each row that takes its place."""

    memory = Memory.CHANGES

    def __init__(self, space: Space) -> None:
        self.space = space
        self.holdings = Holdings(space.k, len(space.ranges))
        self.ranked = Ranked(space, self.holdings)

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        step = self.ranked.change(changes)
        if len(step.change) == 0:
            return []
        return [messages_of(self.space, self.ranked, changes.seq, step, tiles_of(step))]

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        if not self.ranked.is_filled:
            self.ranked.fill(tables[self.space.table.name])
        self.holdings.add(*self.ranked.placed(points))
        return Created(points, self.ranked.first_rows(points) if wants_snapshots else [])

    def drop(self, points: PointBatch) -> None:
        self.holdings.remove(*self.ranked.placed(points))

    def dump(self) -> Any:
        sets, coords, copies = self.holdings.points()
        channel = list(self.ranked.channels(sets))
        return {"ranked": self.ranked.dump(), "channel": channel, "coords": coords, "copies": copies}

    def load(self, state: Any) -> None:
        self.ranked.load(state["ranked"])
        copies = state["copies"]
        group, keys = group_channels(state["channel"], len(copies))
        sets = self.ranked.sets_of(keys)[group]
        self.holdings.add(np.repeat(sets, copies), np.repeat(state["coords"], copies, axis=0))
