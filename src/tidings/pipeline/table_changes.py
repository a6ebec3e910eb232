"""Rows of a table within a micro-batch, and its changes, with their values as columns."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.kernels.events import CHANGE, Events
from tidings.kernels.rows import CODES, ENDS, I64, NONE
from tidings.kernels.rows.read import PAGE_BITS, RECORD_TEXT, RECORD_VALID
from tidings.model.catalog import Column, Table
from tidings.model.change import TableChanges
from tidings.model.codes import DAY_US, BoolArray, doubles_of_codes
from tidings.model.types import ColumnType
from tidings.pipeline.replica.row_versions import RowVersions


def versions_at(store: RowVersions, table: Table, event: int) -> I64:
    """The rows of a table just after an event of the micro-batch (NONE: before the first)."""
    rows = store.rows
    is_there = (rows.alive != 0) & (rows.since <= event) & (event < rows.until)
    versions = np.flatnonzero(is_there).astype(np.int64)
    own: I64 = versions[rows.page_table[versions >> PAGE_BITS] == store.number(table.name)]
    return own


def changes_at(store: RowVersions, table: Table, events: Events) -> I64:
    """Numbers of the events that are changes of a table."""
    return np.flatnonzero((events.kind == CHANGE) & (events.table == store.number(table.name))).astype(np.int64)


def changes_of(store: RowVersions, table: Table, events: Events) -> TableChanges:
    """All changes of a table."""
    at = changes_at(store, table, events)
    old, new = events.old[at], events.new[at]
    before, after = rows_of(store, table, old), rows_of(store, table, new)
    return TableChanges(table.name, events.seq[at], old != NONE, before, new != NONE, after)


def rows_of(store: RowVersions, table: Table, versions: I64) -> pa.RecordBatch:
    """The values of versions of a table; a row of nulls for NONE."""
    is_row = versions != NONE
    records, layout = store.records(table.name, versions[is_row])
    columns = []
    for at, column in enumerate(table.columns):
        valid = np.zeros(len(versions), np.bool_)
        valid[is_row] = _valid(records, at)
        codes = np.zeros(len(versions), np.int64)
        codes[is_row] = records[:, int(layout[CODES]) + at]
        coded = _coded(column.type, codes)
        if coded is None:
            stops = records[:, RECORD_TEXT] + records[:, int(layout[ENDS]) + at]
            starts = records[:, RECORD_TEXT] + (records[:, int(layout[ENDS]) + at - 1] if at else 0)
            spans = np.full((len(versions), 2), 0, np.int64)
            spans[is_row, 0], spans[is_row, 1] = starts, stops
            columns.append(pa.array(_texts(column, store.rows.text, spans, valid), column.type.arrow))
        else:
            columns.append(pa.array(coded, column.type.arrow, mask=~valid))
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _valid(records: I64, column: int) -> BoolArray:
    found: BoolArray = (records[:, RECORD_VALID + (column >> 6)] >> (column & 63)) & 1 != 0
    return found


def _coded(type: ColumnType, codes: I64) -> npt.NDArray[Any] | None:
    """Values that their codes say; None if codes do not."""
    match type:
        case ColumnType.BIGINT | ColumnType.TIMESTAMP:
            return codes
        case ColumnType.INT:
            return codes.astype(np.int32)
        case ColumnType.DOUBLE:
            return doubles_of_codes(codes)
        case ColumnType.BOOLEAN:
            return codes.astype(np.bool_)
        case ColumnType.DATE:
            return (codes // DAY_US).astype(np.int32)
        case _:
            return None


def _texts(column: Column, text: npt.NDArray[np.uint8], spans: I64, valid: BoolArray) -> list[Any]:
    """Values that are kept as texts, [rows]; None for null."""
    data = text.data
    if column.is_internal:
        return [bytes(data[a:b]) if ok else None for (a, b), ok in zip(spans.tolist(), valid.tolist(), strict=True)]
    decode = msgspec.json.Decoder(column.type.json).decode
    return [decode(data[a:b]) if ok else None for (a, b), ok in zip(spans.tolist(), valid.tolist(), strict=True)]
