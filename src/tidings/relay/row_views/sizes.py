"""How large row views are: what their messages have on average, measured on sample documents. See `sizes.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tidings.kernels.arrays import F64
from tidings.relay.document import Document
from tidings.relay.matching.kernels.row_sizes import add_sizes
from tidings.relay.rewriting.row_table import RowTable
from tidings.relay.row_views.document import RowDocument, TableRows
from tidings.relay.row_views.query import RowQuery
from tidings.relay.sizes import MESSAGE_BYTES, TEXT_BYTES, ViewSizes, document_size

_GUESSED_ROWS = 10.0
"""Of a message, where there is no document to count them in."""
_GUESSED_ID_BYTES, _GUESSED_VALUE_BYTES, _GUESSED_DOCUMENT_BYTES = 8.0, 8.0, 20_000.0


def measure_rows(queries: Sequence[RowQuery], documents: Iterable[Document | RowDocument]) -> ViewSizes:
    """Sizes by the documents, trees too, of which row views say that they have nothing; of `guess_rows` if there are none."""
    table = RowTable(queries)
    ids, bytes = np.zeros(len(queries)), np.zeros(len(queries))
    total = document_bytes = 0
    for document in documents:
        total += 1
        document_bytes += document_size(document)
        if isinstance(document, RowDocument):
            for rows in document.tables.values():
                _add(table, rows, ids, bytes)
    if total == 0:
        return guess_rows(queries)
    return ViewSizes(ids[table.place] / total, MESSAGE_BYTES + bytes[table.place] / total, document_bytes / total)


def guess_rows(queries: Sequence[RowQuery]) -> ViewSizes:
    """Sizes by the number of columns that messages carry."""
    columns = np.array([len(query.carried) for query in queries], np.float64)
    of_row = TEXT_BYTES + _GUESSED_ID_BYTES + columns * (TEXT_BYTES + _GUESSED_VALUE_BYTES)
    ids = np.array([0.0 if query.is_empty else _GUESSED_ROWS for query in queries])
    return ViewSizes(ids, MESSAGE_BYTES + ids * of_row, _GUESSED_DOCUMENT_BYTES)


def _add(table: RowTable, rows: TableRows, ids: F64, bytes: F64) -> None:
    number = table.number_of(rows.table.name)
    if number is None:
        return
    id_bytes = np.array([TEXT_BYTES + len(id.encode()) for id in rows.ids], np.int64)
    add_sizes(
        table.starts, table.stops, table.carries, table.groups, number, table.ranks(rows), id_bytes,
        TEXT_BYTES + table.text_bytes(rows), ids, bytes,
    )  # fmt: skip
