"""A join relaxed to one selection per table: a row goes to everyone whose predicates on its table hold it, partner or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.base import Created, Rows, Server
from tidings.families.join.rows import GONE, PLACED, carried, codes_in, fits, keys_of
from tidings.families.join.subscription import Space
from tidings.families.listeners import Listeners
from tidings.model.change import TableChanges, concat_batches
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions


class RelaxedServer(Server):
    """One message per change, to all whose predicates on the table hold the old or the new row."""

    is_oblivious = True

    def __init__(self, space: Space) -> None:
        self.space = space
        self._listeners = Listeners()

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        if not self._listeners.counts:
            return []
        number = self.space.side_of(changes.table)
        old = codes_in(self.space, number, changes.before, changes.had)
        new = codes_in(self.space, number, changes.after, changes.has)
        at = np.flatnonzero(old.counts | new.counts)
        if len(at) == 0:
            return []
        # The new row's box first, then the old one's, where there are any.
        is_box = np.stack([new.counts[at], old.counts[at]], axis=1)
        codes = np.stack([new.codes[at], old.codes[at]], axis=1)[is_box]
        lo, hi = self._boxes(number, codes)
        tags = np.broadcast_to(np.array([PLACED, GONE], np.uint8), is_box.shape)[is_box]
        starts = np.concatenate([[0], np.cumsum(is_box.sum(axis=1))])
        # Who only drops a row needs no more than its key.
        side = self.space.sides[number]
        after, before = (rows.select(side.payload) for rows in (changes.after, changes.before))
        rows = concat_batches([after, keys_of(side, before)])
        rows = rows.take(pa.array(np.where(new.counts[at], at, at + len(changes))))
        payload = carried(self.space, number, rows)
        return [MessageBatch(self.space.key, changes.seq[at], (), Regions(lo, hi, tags, starts), payload)]

    def _boxes(self, number: int, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
        """All points whose predicates on a side hold the row with these codes."""
        lo = np.full((len(codes), self.space.dims), CODE_MIN)
        hi = np.full((len(codes), self.space.dims), CODE_MAX)
        first = self.space.sides[number].first
        for i in range(codes.shape[1]):
            hi[:, first + 2 * i] = codes[:, i]
            lo[:, first + 2 * i + 1] = codes[:, i]
        return lo, hi

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        self._listeners.add(points)
        return Created(points, list(self._snapshots(points, tables)) if wants_snapshots else [])

    def _snapshots(self, points: PointBatch, tables: dict[str, Rows]) -> Iterator[SnapshotBatch]:
        for number, side in enumerate(self.space.sides):
            rows = tables[side.table.name].rows()
            known = codes_in(self.space, number, rows, np.ones(rows.num_rows, np.bool_))
            found = [np.flatnonzero(known.counts & fits(side, known.codes, coords)) for coords in points.coords]
            owner = np.repeat(np.arange(len(points)), [len(at) for at in found])
            if len(owner):
                payload = carried(self.space, number, rows.take(pa.array(np.concatenate(found))))
                yield SnapshotBatch(self.space.key, points.after[owner], points.id.take(pa.array(owner)), payload)

    def drop(self, points: PointBatch) -> None:
        self._listeners.add(points, -1)

    def dump(self) -> Any:
        return self._listeners.dump(())

    def load(self, state: Any) -> None:
        self._listeners.load(state)
