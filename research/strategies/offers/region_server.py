"""The message strategy of offers: `region`. A publication becomes a message to the region of all points that it may meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from research.servers.message import MessageBatch, SnapshotBatch
from research.servers.protocols import ColumnarRows, Created, FamilyServer, Memory, Remembering
from research.strategies.offers.axes_form import Space, space_of
from research.strategies.offers.reformulate import PAYLOAD, Target, regions_of, target_of
from tidings.families.offers.constraint import Box, unpack
from tidings.families.offers.kernels.box_index import BoxIndex
from tidings.families.offers.kernels.packed import read_batch
from tidings.families.offers.subscription import packed_column, packed_points
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.points import PointBatch


class RegionServer(FamilyServer, Remembering):
    """One message per publication to each set of forms that see it alike: mostly all that have its attributes."""

    memory = Memory.NOTHING

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._points: Counter[str] = Counter()
        """Form -> number of its points."""

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        forms = [self._space(key) for key in sorted(self._points)]
        forms = [space for space in forms if space.table.name == changes.table]
        if not forms:
            return []
        sent: dict[Target, list[tuple[int, list[Box], list[Box]]]] = {}
        old, new = (rows.column("constraint").to_pylist() for rows in (changes.before, changes.after))
        was, now = (rows.column("where").to_pylist() for rows in (changes.before, changes.after))
        for at in range(len(changes)):
            if was[at] == now[at]:
                continue
            before, after = (() if data is None else unpack(data) for data in (old[at], new[at]))
            for target, own in target_of(forms, before, after).items():
                sent.setdefault(target, []).append((at, *own))
        return [self._messages(changes, target, entries) for target, entries in sent.items()]

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        self._points[points.form] += len(points)
        space = self._space(points.form)
        rows = tables[space.table.name].rows() if wants_snapshots else None
        if rows is None or not rows.num_rows:
            return Created(points)
        pairs = self._pairs(points, space, rows)
        if not len(pairs):
            return Created(points)
        payload = rows.select(["id", "where"]).take(pa.array(pairs[:, 1]))
        owner = pairs[:, 0]
        snapshots = SnapshotBatch(points.form, points.after[owner], points.id.take(pa.array(owner)), payload)
        return Created(points, [snapshots])

    def drop(self, points: PointBatch) -> None:
        self._points[points.form] -= len(points)
        if not self._points[points.form]:
            del self._points[points.form]

    def dump(self) -> Any:
        return dict(self._points)

    def load(self, state: Any) -> None:
        self._points = Counter(state)

    def _space(self, form_key: str) -> Space:
        return space_of(Form.from_key(form_key), self._catalog)

    def _messages(
        self, changes: TableChanges, target: Target, entries: list[tuple[int, list[Box], list[Box]]]
    ) -> MessageBatch:
        at = np.array([entry[0] for entry in entries], np.int64)
        before, after = (rows.take(pa.array(at)) for rows in (changes.before, changes.after))
        id = pc.coalesce(after.column("id"), before.column("id"))
        columns = [id, *(rows.column(name) for rows in (before, after) for name in ("where", "constraint"))]
        payload = pa.RecordBatch.from_arrays(columns, schema=PAYLOAD)
        regions = regions_of(target, [(old, new) for _, old, new in entries])
        return MessageBatch(target.forms[0], changes.seq[at], (), regions, payload, to=target.forms, axes=target.names)

    def _pairs(self, points: PointBatch, space: Space, rows: pa.RecordBatch) -> Any:
        """(point, row) of every row that a point matches, [pairs, 2], each once."""
        index = BoxIndex(
            [axis.type.is_lossy for axis in space.table.axes], is_classic=space.table.constraints.is_classic
        )
        index.add(np.arange(len(points)), read_batch(*packed_points(points)))
        found = index.match(read_batch(*packed_column(rows.column("constraint"))))
        return np.unique(found[:, [1, 0]], axis=0)


def region(form: Form, catalog: Catalog) -> RegionServer:
    return RegionServer(catalog)
