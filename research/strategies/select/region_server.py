"""The region server of select: `region`. A change becomes one message, to a region, without a look at points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch, SnapshotBatch
from research.servers.protocols import ColumnarRows, Created, Memory, Remembering, Server
from research.strategies.select.first_rows import find_rows
from research.strategies.select.reformulate import reformulate
from research.strategies.select.table_form import Predicates, TableSpace, predicates_of, table_space
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.points import PointBatch


class RegionServer(Server, Remembering):
    """One message per change to a region, independent of the number of subscriptions."""

    memory = Memory.NOTHING

    def __init__(self, space: TableSpace) -> None:
        self.space = space
        self._constrained = np.zeros(len(space.columns), np.int64)
        self._shown = np.zeros(len(space.columns), np.int64)
        """`_constrained`, `_shown`: [columns], number of subscriptions with a predicate on the column, and that show it."""

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        constrained, shown = (np.flatnonzero(part).tolist() for part in (self._constrained, self._shown))
        # Every subscription shows a column: without any there are no subscriptions.
        messages = self._messages(changes, constrained, shown) if shown else None
        return [] if messages is None else [messages]

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        predicates = predicates_of(points.details)
        self._count(predicates, 1)
        if not wants_snapshots:
            return Created(points)
        owner, position = find_rows(self.space, points, predicates, tables[self.space.table.name])
        if len(owner) == 0:
            return Created(points)
        payload = tables[self.space.table.name].take(position)
        snapshots = SnapshotBatch(self.space.key, points.after[owner], points.id.take(pa.array(owner)), payload)
        return Created(points, [snapshots])

    def drop(self, points: PointBatch) -> None:
        self._count(predicates_of(points.details), -1)

    def dump(self) -> Any:
        return {"constrained": self._constrained, "shown": self._shown}

    def load(self, state: Any) -> None:
        self._constrained, self._shown = state["constrained"].copy(), state["shown"].copy()

    def _messages(self, changes: TableChanges, constrained: list[int], shown: list[int]) -> MessageBatch | None:
        return reformulate(self.space, changes, constrained, shown)

    def _count(self, predicates: Predicates, sign: int) -> None:
        counts = np.bincount(predicates.number, minlength=len(predicates.distinct))
        for each, count in zip(predicates.distinct, counts.tolist(), strict=True):
            self._shown[list(set(each.shown))] += sign * count
            self._constrained[list({*each.equalities, *each.ranges})] += sign * count


def region(form: Form, catalog: Catalog) -> RegionServer:
    return RegionServer(table_space(catalog.table(form.shape.tables[0])))
