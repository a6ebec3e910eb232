"""A join relaxed to one selection per table: a row goes to everyone whose predicates on its table hold it, partner or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.join.boxes import Boxes
from tidings.families.join.circle import circle_form
from tidings.families.join.rows import GONE, PLACED, carried, codes_in, fits, told_rows
from tidings.families.join.subscription import Space, space_of
from tidings.families.optional import FamilyServer, Remembering
from tidings.families.protocols import Created, Memory, Rows
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions


class RelaxedServer(FamilyServer, Remembering):
    """One message per change, to all whose predicates on the table hold the old or the new row."""

    memory = Memory.NOTHING

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._listeners: Counter[str] = Counter()
        """Subscriptions of each form."""

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for circle, to in self._circles(changes.table).items():
            yield from self._messages(circle, to, changes)

    def _circles(self, table: str) -> dict[Space, list[str]]:
        """Circles without filters, and the forms that are in each."""
        found: dict[Space, list[str]] = {}
        for form in self._listeners:
            space = space_of(Form.from_key(form), self._catalog)
            if table in (side.table.name for side in space.sides):
                circle = space_of(circle_form(space, space.side_of(table), ()), self._catalog)
                found.setdefault(circle, []).append(form)
        return found

    def _messages(self, circle: Space, to: list[str], changes: TableChanges) -> Iterator[MessageBatch]:
        side = circle.sides[0]
        old = codes_in(side, changes.before, changes.had)
        new = codes_in(side, changes.after, changes.has)
        at = np.flatnonzero(old.counts | new.counts)
        if len(at) == 0:
            return
        # The new row's box first, then the old one's, where there are any.
        is_box = np.stack([new.counts[at], old.counts[at]], axis=1)
        codes = np.stack([new.codes[at], old.codes[at]], axis=1)[is_box]
        boxes = Boxes.all(circle, len(codes)).hold(0, codes)
        tags = np.broadcast_to(np.array([PLACED, GONE], np.uint8), is_box.shape)[is_box]
        starts = np.concatenate([[0], np.cumsum(is_box.sum(axis=1))])
        rows = told_rows(side, changes, at, new.counts)
        regions = Regions(boxes.lo, boxes.hi, tags, starts)
        yield MessageBatch(circle.key, changes.seq[at], (), regions, rows, None, tuple(to), circle.axes)

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        self._listeners[points.form] += len(points)
        return Created(points, list(self._snapshots(points, tables)) if wants_snapshots else [])

    def _snapshots(self, points: PointBatch, tables: dict[str, Rows]) -> Iterator[SnapshotBatch]:
        space = space_of(Form.from_key(points.form), self._catalog)
        for number, side in enumerate(space.sides):
            rows = tables[side.table.name].rows()
            known = codes_in(side, rows, np.ones(rows.num_rows, np.bool_))
            found = [np.flatnonzero(known.counts & fits(side, known.codes, coords)) for coords in points.coords]
            owner = np.repeat(np.arange(len(points)), [len(at) for at in found])
            if len(owner):
                payload = carried(space, number, rows.take(pa.array(np.concatenate(found))))
                yield SnapshotBatch(points.form, points.after[owner], points.id.take(pa.array(owner)), payload)

    def drop(self, points: PointBatch) -> None:
        self._listeners[points.form] -= len(points)
        self._listeners = +self._listeners

    def dump(self) -> Any:
        return dict(self._listeners)

    def load(self, state: Any) -> None:
        self._listeners = Counter(state)
