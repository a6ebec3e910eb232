"""Batches of rows: what views over rows are about, as XML and JSON documents are what tree patterns are about.

A batch is a file of lines in the format of changes: `{"table": "stocks", "row": {"id": 1, "price": 2.5}}`. It says nothing of
rows that are not in it.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import astuple

from tidings.model.catalog import Catalog, Table
from tidings.model.change import OP_NAMES, Op
from tidings.model.codes import code_of
from tidings.model.errors import RecordError
from tidings.model.render import value_text
from tidings.model.row_decoder import RowDecoder, reason_of
from tidings.model.types import ColumnType
from tidings.relay.document import check_size
from tidings.relay.errors import DocumentError

OrderKey = int | str
"""What values of a column are compared by: texts themselves, for other types their codes."""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    table: str
    row: msgspec.Raw
    op: str = "insert"
    seq: int | None = None


_line_decoder = msgspec.json.Decoder(_Line)


def order_key(type: ColumnType, value: Any) -> OrderKey:
    """Of a value that is not null."""
    return str(value) if type is ColumnType.TEXT else code_of(type, value)


def row_id(key_texts: Sequence[str]) -> str:
    """The id of a row from the JSON texts of its key: that of the only column, or of a list of all."""
    return key_texts[0] if len(key_texts) == 1 else f"[{', '.join(key_texts)}]"


@dataclass(eq=False)
class TableRows:
    """The rows of one table, by code points of their ids.

    ids: JSON texts of keys (`row_id`). values: per row, a value for each column of the table.
    """

    table: Table
    ids: list[str]
    values: list[tuple[Any, ...]] = field(repr=False)
    _texts: dict[str, list[str]] = field(default_factory=dict, repr=False)
    _order_keys: dict[str, list[OrderKey | None]] = field(default_factory=dict, repr=False)

    def texts(self, column: str) -> list[str]:
        """A column as JSON texts."""
        found = self._texts.get(column)
        if found is None:
            type = self.table.column(column).type
            found = self._texts[column] = [value_text(type, value) for value in self._column(column)]
        return found

    def order_keys(self, column: str) -> list[OrderKey | None]:
        """What a column is compared by; None where it is null."""
        found = self._order_keys.get(column)
        if found is None:
            type = self.table.column(column).type
            found = [None if value is None else order_key(type, value) for value in self._column(column)]
            self._order_keys[column] = found
        return found

    def _column(self, column: str) -> list[Any]:
        place = self.table.column_names.index(column)
        return [row[place] for row in self.values]


@dataclass(frozen=True, eq=False)
class RowDocument:
    """A batch of rows. tables: those that have any. size: bytes of the text it was read from."""

    tables: dict[str, TableRows]
    size: int


def parse_rows(data: bytes, catalog: Catalog) -> RowDocument:
    """DocumentError, with the line, if any of the lines cannot be used; blank ones are passed over."""
    check_size(data)
    rows: dict[str, dict[str, tuple[Any, ...]]] = {}
    lines: dict[tuple[str, str], int] = {}
    for number, line in enumerate(data.removeprefix(BOM_UTF8).split(b"\n"), 1):
        if not line or line.isspace():
            continue
        try:
            table, id, values = _row(line, catalog)
            first = lines.setdefault((table, id), number)
            if first != number:
                raise RecordError(f"table {table!r} has a row with the key {id} on line {first} already")
        except RecordError as error:
            raise DocumentError(f"line {number}: {error}") from None
        rows.setdefault(table, {})[id] = values
    return RowDocument({name: table_rows(catalog.table(name), found) for name, found in rows.items()}, len(data))


def table_rows(table: Table, rows: dict[str, tuple[Any, ...]]) -> TableRows:
    """Rows by their ids."""
    ids = sorted(rows)
    return TableRows(table, ids, [rows[id] for id in ids])


def _row(line: bytes, catalog: Catalog) -> tuple[str, str, tuple[Any, ...]]:
    """Table, id and values of one line. RecordError if it is unusable."""
    try:
        record = _line_decoder.decode(line)
    except msgspec.ValidationError as error:
        raise RecordError(reason_of(error)) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}") from None
    if OP_NAMES.get(record.op) not in (Op.INSERT, Op.UPSERT):
        raise RecordError(f"the op {record.op!r}: a batch has rows, each with the op insert or upsert, or without one")
    decoder = _decoders(catalog).get(record.table)
    if decoder is None:
        known = ", ".join(table.name for table in catalog.tables) or "none"
        raise RecordError(f"unknown table {record.table!r}; the catalog has {known}")
    table = decoder.table
    if table.has_constraints:
        raise RecordError(f"table {table.name!r} holds constraints, which have no views over rows")
    try:
        values = astuple(decoder.decode(Op.INSERT, record.row))
    except msgspec.ValidationError as error:
        raise RecordError(f"row of table {table.name!r}: {reason_of(error)}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}") from None
    return table.name, row_id([_text(table, values, name) for name in table.key]), values


def _text(table: Table, values: Sequence[Any], column: str) -> str:
    return value_text(table.column(column).type, values[table.column_names.index(column)])


@lru_cache(maxsize=8)
def _decoders(catalog: Catalog) -> dict[str, RowDecoder]:
    return {table.name: RowDecoder(table) for table in catalog.tables}
