"""A table's current rows, columnar: gives every change its before image and refuses what contradicts the rows.

Rows are appended and never overwritten: position -> row, key -> position. A before image is a gather of positions, so a
whole batch of changes, also several to one key, is handled without a Python object per value. Dead rows are swept out
when they outnumber the living.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from research.servers.changes import ChangeBatch
from research.servers.row_log import RowLog
from tidings.model.catalog import Table
from tidings.model.change import Op, TableChanges
from tidings.model.channel import ChannelKey
from tidings.model.codes import DAY_US, BoolArray, Int64Array, codes_of
from tidings.model.quarantine import contradiction
from tidings.model.types import ColumnType

_SWEEP_DEAD_MIN = 65_536


class TableStore:
    """Current rows of one table (or of one shard of it)."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._log = RowLog(table.schema)
        self._alive = np.zeros(1024, np.bool_)
        self._index: dict[Hashable, int] = {}
        self._codes: dict[str, tuple[Int64Array, BoolArray]] = {}

    def __len__(self) -> int:
        return len(self._index)

    @property
    def alive(self) -> BoolArray:
        """Whether each position holds a current row, [positions]."""
        return self._alive[: len(self._log)]

    def apply(self, changes: ChangeBatch) -> tuple[TableChanges, list[tuple[int, str]]]:
        """Applies changes in order. Returns the accepted ones with images, and (place in the batch, reason) of the refused."""
        before, refused = self._enter(changes)
        images = self._images(changes, before, {i for i, _ in refused})
        self._sweep()
        return images, refused

    def replay(self, changes: ChangeBatch) -> None:
        """Applies changes without making images."""
        self._enter(changes)
        self._sweep()

    def _enter(self, changes: ChangeBatch) -> tuple[Int64Array, list[tuple[int, str]]]:
        """Enters changes. Returns positions of their old rows, [changes] (-1: none), and (place, reason) of the refused."""
        keys = self._keys(changes.rows)
        base = len(self._log)
        refused: list[tuple[int, str]] = []
        index = self._index
        insert, delete = int(Op.INSERT), int(Op.DELETE)
        not_there = (int(Op.UPDATE), delete)
        found: list[int] = []
        for position, (op, key) in enumerate(zip(changes.op.tolist(), keys, strict=True), base):
            at = index.get(key, -1)
            found.append(at)
            if op == insert if at >= 0 else op in not_there:
                refused.append((position - base, contradiction(op, self.table.name, key)))
            elif op == delete:
                del index[key]
            else:
                index[key] = position
        before = np.array(found, np.int64)
        kept = changes.op != delete
        if refused:
            places = [place for place, _ in refused]
            before[places], kept[places] = -1, False
        self._reserve(base + len(changes))
        self._log.append(changes.rows)
        self._alive[base : base + len(changes)] = kept
        self._alive[before[before >= 0]] = False
        return before, refused

    def take(self, positions: Int64Array) -> pa.RecordBatch:
        """Rows at the positions; a negative position gives a row of nulls."""
        return self._log.take(positions)

    def codes(self, column: str) -> tuple[Int64Array, BoolArray]:
        """(codes, validity) of a column, both [positions]. Kept, and extended as rows are added."""
        known, valid = self._codes.get(column, (np.empty(0, np.int64), np.empty(0, np.bool_)))
        if len(known) < len(self._log):
            fresh = self.take(np.arange(len(known), len(self._log))).column(column)
            more, more_valid = codes_of(self.table.column(column).type, fresh)
            known, valid = np.concatenate([known, more]), np.concatenate([valid, more_valid])
            self._codes[column] = (known, valid)
        return known, valid

    def rows(self) -> pa.RecordBatch:
        """All current rows."""
        return self.take(np.flatnonzero(self.alive))

    def load(self, rows: pa.RecordBatch) -> None:
        """Replaces the contents by these rows."""
        self._log = RowLog(self.table.schema)
        self._codes.clear()
        self._reserve(rows.num_rows)
        self._alive[: rows.num_rows] = True
        self._index = {key: i for i, key in enumerate(self._keys(rows))}
        self._log.append(rows)

    def find(self, keys: Iterable[ChannelKey]) -> Int64Array:
        """Positions of the rows with these primary keys, [keys]; -1 if there is no such row. Keys are encoded as channels."""
        types = [self.table.column(name).type for name in self.table.key]
        plain = ([_decoded(type, part) for type, part in zip(types, key, strict=True)] for key in keys)
        found = (self._index.get(parts[0] if len(parts) == 1 else tuple(parts), -1) for parts in plain)
        return np.fromiter(found, np.int64)

    def _keys(self, rows: pa.RecordBatch) -> Sequence[Hashable]:
        columns = [_plain(rows.column(name)) for name in self.table.key]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def _images(self, changes: ChangeBatch, before: Int64Array, refused: set[int]) -> TableChanges:
        after, seq, has = changes.rows, changes.seq, changes.op != Op.DELETE
        if refused or not has.all():
            kept = np.array([i for i in range(len(changes)) if i not in refused], np.int64)
            before, has, seq = before[kept], has[kept], seq[kept]
            after = after.take(pa.array(kept, mask=~has))
        return TableChanges(self.table.name, seq, before >= 0, self.take(before), has, after)

    def _reserve(self, total: int) -> None:
        if total > len(self._alive):
            grown = np.zeros(max(total, 2 * len(self._alive)), np.bool_)
            grown[: len(self._log)] = self._alive[: len(self._log)]
            self._alive = grown

    def _sweep(self) -> None:
        dead = len(self._log) - len(self._index)
        if dead > max(_SWEEP_DEAD_MIN, len(self._index)):
            self.load(self.rows())


def _plain(column: pa.Array) -> list[Hashable]:
    """Values of a key column as hashable objects: numbers and texts; dates and timestamps as their integers."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    values: list[Hashable] = column.to_pylist()
    return values


def _decoded(type: ColumnType, component: str | int) -> Hashable:
    """A component of a channel, as `_plain` gives the same value."""
    return int(component) // DAY_US if type is ColumnType.DATE and component is not None else component
