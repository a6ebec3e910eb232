"""Region server `entering`: a long column goes to those subscriptions alone to which its value is new.

A selection is treated as a join of two tables with one key: the columns that are compared or short, and the long ones. The
message of a change leaves the long columns out, and receivers hold them. They come in a second message if a subscription that
selects the new row cannot hold its value: to all of these if the value has changed, else to those that did not select the row
before. With one range, and a value that has risen from `old` to `new`, these are the points of one box:

        hi |       +--------
       new |       |::::::::       lo in (old, new], hi >= new
           |       |
           +------old----new-- lo

With several ranges it is what the box of the new row has beyond the box of the old one: disjoint boxes, one for each column
that has changed. Of these the server sends those in which there are points. A point is not always the whole of a condition
(IN, texts, null): when such a column changes, some receive again what they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.servers.protocols import ColumnarRows, Created
from research.servers.space import ServedSpace
from research.strategies.select.reformulate import boxes_of, codes_of_rows, reformulate, same_rows, same_values
from research.strategies.select.region_server import RegionServer
from research.strategies.select.table_form import Predicates, TableSpace, table_space
from tidings.families.spec import Form
from tidings.model.catalog import Catalog, Table
from tidings.model.change import TableChanges
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.points import PointBatch
from tidings.model.region import Regions
from tidings.model.types import ColumnType

HELD = 4
"""Tag of the boxes of messages with the key of a row and its long columns, which receivers are to hold."""
LONG = "long."
"""Prefix of the names of long columns in payloads. Those that somebody compares are there too, and always null."""
HOLDS = "holds"
"""A column that payloads of snapshots have beside those of the rows: receivers are to hold the long ones."""


def long_columns(table: Table) -> list[str]:
    """Names of the columns that may be long by their types."""
    types = (ColumnType.TEXT, ColumnType.BINARY)
    return [column.name for column in table.columns if column.type in types and column.name not in table.key]


class EnteringServer(RegionServer):
    """Up to two messages a change: short columns to all who select the old or new row, long ones to those who lack them."""

    def __init__(self, space: TableSpace) -> None:
        super().__init__(space)
        self._points = _Points(ServedSpace(space.axes(space.comparable)))
        self._listed = np.zeros(len(space.columns), np.int64)
        """[columns]: number of subscriptions with an equality on the column that their points do not say."""

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        self._points.add(points.id.to_pylist(), points.coords)
        created = super().create(points, tables, wants_snapshots=wants_snapshots)
        marked = [
            replace(rows, payload=rows.payload.append_column(HOLDS, pa.nulls(len(rows), pa.int8())))
            for rows in created.snapshots
        ]
        return created._replace(snapshots=marked)

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        self._points.remove(points.id.to_pylist())

    def dump(self) -> Any:
        return {**super().dump(), "listed": self._listed, "points": self._points.dump()}

    def load(self, state: Any) -> None:
        super().load(state)
        self._listed = state["listed"].copy()
        self._points.add(*state["points"])

    def _count(self, predicates: Predicates, sign: int) -> None:
        super()._count(predicates, sign)
        counts = np.bincount(predicates.number, minlength=len(predicates.distinct))
        for each, count in zip(predicates.distinct, counts.tolist(), strict=True):
            if each.channels is not None:
                self._listed[list(each.equalities)] += sign * count

    def _messages(self, changes: TableChanges, constrained: list[int], shown: list[int]) -> MessageBatch | None:
        names = self.space.table.column_names
        long = [name for name in long_columns(self.space.table) if names.index(name) in {*shown, *constrained}]
        apart = [name for name in long if names.index(name) not in constrained]
        short = reformulate(self.space, changes, constrained, shown, apart if long else None)
        if short is None or not long:
            return short
        at, regions = self._lacking(changes, constrained, apart)
        rows = changes.after.take(pa.array(at))
        columns = list[pa.Array]()
        for name, column in zip(short.payload.schema.names, short.payload.columns, strict=True):
            side, _, of = name.partition(".")
            is_key = side == "new" and of in self.space.table.key
            columns.append(pa.concat_arrays([column, rows.column(of) if is_key else pa.nulls(len(at), column.type)]))
        for name in long:
            values = rows.column(name)
            sent = values if name in apart else pa.nulls(len(at), values.type)
            columns.append(pa.concat_arrays([pa.nulls(len(short), values.type), sent]))
        both = replace(
            short,
            seq=np.concatenate([short.seq, changes.seq[at]]),
            regions=Regions.concat([short.regions, regions]),
            payload=pa.RecordBatch.from_arrays(columns, [*short.payload.schema.names, *(LONG + name for name in long)]),
        )
        return both.take(np.argsort(both.seq, kind="stable").astype(np.int64))

    def _lacking(
        self, changes: TableChanges, constrained: list[int], apart: Sequence[str]
    ) -> tuple[Int64Array, Regions]:
        """(changes whose long columns are to be sent, who selects the new row and cannot hold them)."""
        lack = changes.has & bool(apart)
        stays = lack & changes.had & same_rows(changes, apart) & self._is_said_by_points(changes, constrained)
        new, old = codes_of_rows(self.space, changes, constrained)
        to_all, to_some = np.flatnonzero(lack & ~stays), np.flatnonzero(stays)
        parts = [
            (to_all, *boxes_of(new, to_all)),
            *_beyond(to_some, boxes_of(new, to_some), boxes_of(old, to_some)),
        ]
        owner, lo, hi = (np.concatenate([part[i] for part in parts]) for i in range(3))
        is_met = self._points.meet(lo, hi, self.space.axes(constrained))
        order = np.flatnonzero(is_met)[np.argsort(owner[is_met], kind="stable")]
        return Regions.grouped(owner[order], lo[order], hi[order], np.full(len(order), HELD, np.uint8))

    def _is_said_by_points(self, changes: TableChanges, constrained: list[int]) -> BoolArray:
        """Whether points alone say who selects the new row and has not selected the old one, [changes]."""
        said = np.ones(len(changes), np.bool_)
        for number in constrained:
            column = self.space.columns[number]
            before, after = (rows.column(column.name) for rows in (changes.before, changes.after))
            doubtful: BoolArray = np.asarray(before.is_null()) | np.asarray(after.is_null())
            doubtful = doubtful | column.type.is_lossy | bool(self._listed[number])
            said &= ~doubtful | same_values(before, after)
        return said


class _Points:
    """The points of all subscriptions, to know which boxes are empty.

    An id may come again before its drop is carried out; its lives end in the order in which they began.
    """

    def __init__(self, space: ServedSpace) -> None:
        # Imported here because compiled kernels take a second to import.
        from tidings.kernels.point_index import PointIndex

        self._space = space
        self._index = PointIndex(space.dims)
        self._slots: dict[str, list[int]] = {}
        self._free: list[int] = []
        self._top = 0

    def add(self, ids: Sequence[str], coords: Int64Array) -> None:
        fresh = max(0, len(ids) - len(self._free))
        slots = [*range(self._top, self._top + fresh), *(self._free.pop() for _ in range(len(ids) - fresh))]
        self._top += fresh
        for id, slot in zip(ids, slots, strict=True):
            self._slots.setdefault(id, []).append(slot)
        self._index.add_many(np.zeros(len(ids), np.int64), slots, coords)

    def remove(self, ids: Sequence[str]) -> None:
        gone = [self._slots[id].pop(0) for id in ids]
        for id in ids:
            if not self._slots.get(id, True):
                del self._slots[id]
        self._index.remove_many(gone)
        self._free += gone

    def meet(self, lo: Int64Array, hi: Int64Array, axes: tuple[str, ...]) -> BoolArray:
        """Whether there is a point in each box along some axes, [boxes]."""
        each = np.arange(len(lo) + 1)
        boxes = self._space.read(Regions(lo, hi, np.zeros(len(lo), np.uint8), each), axes)
        return self._index.any(np.zeros(len(lo), np.int64), boxes.lo, boxes.hi)

    def dump(self) -> tuple[list[str], Int64Array]:
        _, held, coords = self._index.points()
        by_slot = dict(zip(held.tolist(), coords, strict=True))
        names = [(id, slot) for id, slots in self._slots.items() for slot in slots]
        found = [by_slot[slot] for _, slot in names]
        return [id for id, _ in names], np.array(found, np.int64).reshape(len(names), self._space.dims)


_Ends = tuple[Int64Array, Int64Array]
"""Lower and upper ends of boxes, both [boxes, dims]."""


def _beyond(owner: Int64Array, new: _Ends, old: _Ends) -> list[tuple[Int64Array, Int64Array, Int64Array]]:
    """What each new box has beyond the old one, as disjoint boxes: (owner, lower ends, upper ends).

    Of the two dimensions of a column, boxes are closed above in the first and below in the second (`boxes_of`).
    """
    (old_lo, old_hi), lo, hi = old, *(ends.copy() for ends in new)
    parts = []
    for dim in range(lo.shape[1]):
        first = dim % 2 == 0
        at = np.flatnonzero(hi[:, dim] > old_hi[:, dim] if first else lo[:, dim] < old_lo[:, dim])
        piece = lo[at], hi[at]
        piece[0 if first else 1][:, dim] = old_hi[at, dim] + 1 if first else old_lo[at, dim] - 1
        parts.append((owner[at], *piece))
        lo[:, dim], hi[:, dim] = np.maximum(lo[:, dim], old_lo[:, dim]), np.minimum(hi[:, dim], old_hi[:, dim])
    return parts


def entering(form: Form, catalog: Catalog) -> EnteringServer:
    return EnteringServer(table_space(catalog.table(form.shape.tables[0])))
