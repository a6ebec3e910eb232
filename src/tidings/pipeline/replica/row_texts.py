"""Rows as texts: values on their way into a row store, and all rows of one as records again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tidings.model.catalog import Catalog, Table
from tidings.model.codes import code_of
from tidings.model.render import kept_text


class RowTexts(Protocol):
    """Rows of all tables as texts."""

    catalog: Catalog

    def texts(self, table: str) -> Iterator[list[bytes]]: ...


def cells_of(table: Table, values: Sequence[Any]) -> tuple[list[bytes | None], list[int]]:
    """(texts, codes) of a row's values, as `RowStore.put` takes them."""
    texts: list[bytes | None] = []
    codes = []
    for column, value in zip(table.columns, values, strict=True):
        if value is None:
            texts.append(None)
            codes.append(0)
        else:
            texts.append(kept_text(column, value))
            codes.append(code_of(column.type, value) if column.type.is_comparable else 0)
    return texts, codes


def key_cells(table: Table, id: str) -> tuple[list[bytes | None], list[int]]:
    """As `cells_of`, of a row of constraints of which only the id is known."""
    return cells_of(table, (id, *([None] * (len(table.columns) - 1))))


def insert_lines(store: RowTexts) -> list[bytes]:
    """All current rows as insert records with seqs from 1 on."""
    lines: list[bytes] = []
    for table in store.catalog.tables:
        for texts in store.texts(table.name):
            lines.append(b'{"seq": %d, ' % (len(lines) + 1) + _insert(table, texts) + b"}")
    return lines


def _insert(table: Table, texts: Sequence[bytes]) -> bytes:
    """The fields of a record that inserts a row."""
    head = f'"table": {encode_basestring(table.name)}, "op": "insert", '.encode()
    if table.has_constraints:
        id, where, _, expires, until, _ = texts
        return head + b'"id": %b, "where": %b, "expires": %b' % (id, where, until if expires == b"null" else expires)
    names = (encode_basestring(name).encode() for name in table.column_names)
    return head + b'"row": {' + b", ".join(b"%b: %b" % cell for cell in zip(names, texts, strict=True)) + b"}"


def bytes_of(data: bytes | bytearray) -> npt.NDArray[np.uint8]:
    """The bytes as an array for kernels, which want it writable and not empty."""
    writable = data if isinstance(data, bytearray) else bytearray(data)
    return np.frombuffer(writable or bytearray(1), np.uint8)
