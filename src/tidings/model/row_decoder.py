"""Rows of one table from JSON, checked against the catalog.

Rows are decoded straight into structs made from the catalog, so that checking types costs no Python code per value.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
from msgspec.structs import asdict

from tidings.model.catalog import Table
from tidings.model.change import Op
from tidings.model.errors import RecordError
from tidings.model.types import ColumnType


class RowDecoder:
    """Decodes one table's rows strictly: every column present (null allowed outside the key), nothing else.

    Only columns that were added later may be left out. Zero has no sign from here on: -0.0 equals 0.0, and what is equal must
    have the same text, since readers may match rows by their text.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.fields = [f"c{i}" for i in range(len(table.columns))]
        rename = dict(zip(self.fields, table.column_names, strict=True))
        full: list[Any] = []
        partial: list[Any] = []
        for name, column in zip(self.fields, table.columns, strict=True):
            if column.name in table.key:
                full.append((name, column.type.json))
                partial.append((name, column.type.json))
            else:
                full.append((name, column.type.json | None, *((None,) if column.is_added else ())))
                partial.append((name, column.type.json | None, None))
        options: dict[str, Any] = {"rename": rename, "forbid_unknown_fields": True, "kw_only": True, "gc": False}
        self.full = msgspec.json.Decoder(msgspec.defstruct("Row", full, **options))
        self._partial = msgspec.defstruct("Key", partial, **options)
        self.key_only = msgspec.json.Decoder(self._partial)
        key = [field for field, name in zip(partial, table.column_names, strict=True) if name in table.key]
        self._key = msgspec.json.Decoder(msgspec.defstruct("KeyAlone", key, rename=rename, kw_only=True))
        types = [(name, column.type) for name, column in zip(self.fields, table.columns, strict=True)]
        self._moments = [name for name, type in types if type is ColumnType.TIMESTAMP]
        self._doubles = [name for name, type in types if type is ColumnType.DOUBLE]

    def decode(self, op: Op, raw: msgspec.Raw) -> Any:
        return self._plain((self.key_only if op is Op.DELETE else self.full).decode(raw))

    def decode_key(self, raw: msgspec.Raw) -> Any:
        """A row with its key alone, whatever the other columns have."""
        return self._plain(self._partial(**asdict(self._key.decode(raw))))

    def _plain(self, row: Any) -> Any:
        """The row with its times in UTC, and with zeros that have no sign."""
        for name in self._moments:
            value = getattr(row, name)
            if value is not None and value.tzinfo is not None:
                setattr(row, name, in_utc(value))
        for name in self._doubles:
            if getattr(row, name) == 0:
                setattr(row, name, 0.0)
        return row


def in_utc(value: dt.datetime) -> dt.datetime:
    """The time in UTC, without tzinfo. RecordError if it is outside of the years 1 to 9999 there."""
    try:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:
        raise RecordError(f"the time {value.isoformat()} is outside of the years 1 to 9999 in UTC") from None


def reason_of(error: Exception) -> str:
    """The decoder's message without its internal notation."""
    text = str(error)
    text = text.replace("Object contains unknown field", "unknown column or field").replace(" - at `$`", "")
    return text.replace("Object missing required field", "lacks").replace("`$.", "`")
