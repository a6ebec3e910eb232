"""A relation: the rows of one table that subscriptions can select. Each version of a row has a number, its entry."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np
import pyarrow as pa

from research.servers.changes import known_rows
from research.servers.row_log import RowLog
from research.strategies.join.payload import codes_in
from research.strategies.join.space import Side
from tidings.kernels.arrays import covering
from tidings.kernels.rows import NONE
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey, channel_column, channel_keys
from tidings.model.codes import BoolArray, Int64Array

_SWEEP_DEAD_MIN = 65_536


@dataclass(frozen=True)
class Moves:
    """Changes as entries: change i removes entry old[i] and adds entry new[i] (NONE: none)."""

    old: Int64Array
    new: Int64Array
    old_codes: Int64Array
    new_codes: Int64Array


class Relation:
    """Rows of one side. A row with null in a column with a predicate is never selected: it has no entry."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._table = side.table
        self.log = RowLog(pa.schema([side.table.schema.field(name) for name in side.payload]))
        self._entries: dict[ChannelKey, int] = {}
        self._free: list[int] = []
        self._leaving: list[int] = []
        self._row = np.empty(0, np.int64)
        self.codes = np.empty((0, len(side.columns)), np.int64)
        """[entries, columns with a predicate]"""
        self.arrived = np.empty(0, np.int64)
        """[entries]: clock of the store when the entry was added."""

    def __len__(self) -> int:
        return len(self._entries)

    def change(self, changes: TableChanges, clock: int) -> Moves:
        """Applies changes. Removed entries keep their codes and rows until the next call."""
        self._free.extend(self._leaving)
        self._leaving.clear()
        self._sweep()
        before = codes_in(self.side, changes.before, changes.had)
        after = codes_in(self.side, changes.after, changes.has)
        old, new = self._moved(self._keys(changes), before.counts, after.counts)
        at = np.flatnonzero(new != NONE)
        first = len(self.log)
        self.log.append(changes.after.select(self.log.names).take(pa.array(at)))
        self._row, self.arrived = covering(self._row, new), covering(self.arrived, new)
        self.codes = covering(self.codes, new)
        self._row[new[at]] = first + np.arange(len(at))
        self.codes[new[at]] = after.codes[at]
        self.arrived[new[at]] = clock
        return Moves(old, new, before.codes, after.codes)

    def _moved(self, keys: list[ChannelKey], was: BoolArray, has: BoolArray) -> tuple[Int64Array, Int64Array]:
        """(removed entry, added entry), both [changes], NONE for none. was, has: whether the old and new row count."""
        old, new = np.full(len(keys), NONE, np.int64), np.full(len(keys), NONE, np.int64)
        if len(set(keys)) < len(keys):
            for i, (key, is_old, is_new) in enumerate(zip(keys, was.tolist(), has.tolist(), strict=True)):
                if is_old:
                    old[i] = self._entries.pop(key)
                    self._leaving.append(int(old[i]))
                if is_new:
                    (new[i],) = self._take(1)
                    self._entries[key] = int(new[i])
        else:
            # No row has two changes: handling all together is faster.
            old[was] = list(map(self._entries.pop, compress(keys, was.tolist())))
            self._leaving.extend(old[was].tolist())
            entries = self._take(int(has.sum()))
            new[has] = entries
            self._entries.update(zip(compress(keys, has.tolist()), entries, strict=True))
        return old, new

    def rows(self, entries: Int64Array) -> pa.RecordBatch:
        """Rows by entry, with the columns of the payload."""
        return self.log.take(self._row[entries])

    def current(self) -> Int64Array:
        """Entries of all rows."""
        return np.fromiter(self._entries.values(), np.int64, len(self._entries))

    def _keys(self, changes: TableChanges) -> list[ChannelKey]:
        names = self._table.key
        rows = known_rows(changes, names)
        return channel_keys(
            [channel_column(self._table.column(n).type, rows.column(n))[0] for n in names], len(changes)
        )

    def _take(self, count: int) -> list[int]:
        """Returns entries that are not in use."""
        first = len(self._entries) + len(self._free) + len(self._leaving)
        kept = max(0, len(self._free) - count)
        reused = self._free[kept:]
        del self._free[kept:]
        return [*reused, *range(first, first + count - len(reused))]

    def _sweep(self) -> None:
        """Copies the current rows into a new log once most of the log is old versions."""
        if len(self.log) - len(self._entries) > max(_SWEEP_DEAD_MIN, len(self._entries)):
            entries = self.current()
            rows = self.rows(entries)
            self.log.clear()
            self.log.append(rows)
            self._row[entries] = np.arange(len(entries))
