"""Shared rows as region servers read them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tidings.kernels.rows import CODES, I64, NONE
from tidings.kernels.rows.read import RECORD_VALID
from tidings.model.catalog import Table
from tidings.model.channel import ChannelKey, channel_column, channel_keys
from tidings.model.codes import BoolArray
from tidings.pipeline.replica.row_versions import RowVersions
from tidings.pipeline.table_changes import rows_of, versions_at


class TableRows:
    """Some versions of the rows of a table: `research.servers.protocols.ColumnarRows`. Row i is versions[i]."""

    def __init__(self, store: RowVersions, table: Table, versions: I64) -> None:
        self._store, self._table, self.versions = store, table, versions
        self._codes: dict[str, tuple[I64, BoolArray]] = {}
        self._by_key: dict[ChannelKey, int] | None = None

    @property
    def alive(self) -> BoolArray:
        return np.ones(len(self.versions), np.bool_)

    def __len__(self) -> int:
        return len(self.versions)

    def codes(self, column: str) -> tuple[I64, BoolArray]:
        found = self._codes.get(column)
        if found is None:
            records, layout = self._store.records(self._table.name, self.versions)
            at = self._table.column_names.index(column)
            valid = (records[:, RECORD_VALID + (at >> 6)] >> (at & 63)) & 1 != 0
            found = self._codes[column] = records[:, int(layout[CODES]) + at], valid
        return found

    def take(self, positions: I64) -> pa.RecordBatch:
        return rows_of(self._store, self._table, np.append(self.versions, NONE)[positions])

    def rows(self) -> pa.RecordBatch:
        return rows_of(self._store, self._table, self.versions)

    def find(self, keys: Iterable[ChannelKey]) -> I64:
        if self._by_key is None:
            rows = self.rows()
            columns = [channel_column(self._table.column(name).type, rows.column(name))[0] for name in self._table.key]
            self._by_key = {key: at for at, key in enumerate(channel_keys(columns, rows.num_rows))}
        return np.array([self._by_key.get(key, -1) for key in keys], np.int64)


def rows_at(store: RowVersions, table: Table, event: int) -> TableRows:
    """The rows of a table just after an event of the micro-batch (NONE: before the first)."""
    return TableRows(store, table, versions_at(store, table, event))
