"""Rows as plain Python values, and as comparable text. Independent of the code under test."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tidings.model.catalog import Table
from tidings.model.types import ColumnType

Answer = Counter[str]
"""A multiset of rows, each as canonical text."""


def read_row(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """A record's row with typed values; columns left out (as a delete may) are None."""
    return {column.name: _read(column.type, row.get(column.name)) for column in table.columns}


def read_record(table: Table, record: dict[str, Any]) -> dict[str, Any]:
    """The row of a change, as it is kept."""
    if not table.has_constraints:
        return read_row(table, record["row"])
    expires, time = record.get("expires"), record.get("time")
    is_time = isinstance(expires, str)
    return {
        "id": record["id"],
        "where": record.get("where"),
        "constraint": None,
        "expires": None if is_time else expires,
        "until": _read(ColumnType.TIMESTAMP, expires) if is_time else None,
        "time": _read(ColumnType.TIMESTAMP, time),
    }


def _read(type: ColumnType, value: Any) -> Any:
    if value is None:
        return None
    if type is ColumnType.DOUBLE:
        return float(value) + 0.0  # zero has no sign
    if type is ColumnType.DATE:
        return dt.date.fromisoformat(value)
    if type is ColumnType.TIMESTAMP:
        moment = dt.datetime.fromisoformat(value)
        return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)
    return base64.b64decode(value) if type is ColumnType.BINARY else value


def to_json(value: Any) -> Any:
    """A typed value as it stands in `out.jsonl`."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, dt.date) else value


def canonical(row: dict[str, Any]) -> str:
    """Equal rows (same columns in the same order, equal values) have equal texts."""
    return json.dumps({name: to_json(value) for name, value in row.items()}, ensure_ascii=False)


def answer_of(rows: Iterable[dict[str, Any]]) -> Answer:
    return Counter(canonical(row) for row in rows)
