"""Rows as JSON text, a column at a time: the form in which subscribers and `out.jsonl` see them."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any

import pyarrow as pa

_EPOCH = dt.datetime(1970, 1, 1)


def render_rows(names: Sequence[str], columns: Sequence[pa.Array], length: int) -> list[str]:
    """One JSON object per row, columns in the order given."""
    if not columns:
        return ["{}"] * length
    cells = [_cells(name, column) for name, column in zip(names, columns, strict=True)]
    return ["{" + ", ".join(row) + "}" for row in zip(*cells, strict=True)]


def _cells(name: str, column: pa.Array) -> list[str]:
    head = encode_basestring(name) + ": "
    render = _renderer(column.type)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [head + ("null" if value is None else render(value)) for value in column.to_pylist()]


def _renderer(type: pa.DataType) -> Callable[[Any], str]:
    if pa.types.is_string(type):
        return encode_basestring
    if pa.types.is_boolean(type):
        return lambda value: "true" if value else "false"
    if pa.types.is_timestamp(type):
        return lambda micros: f'"{(_EPOCH + dt.timedelta(microseconds=micros)).isoformat()}"'
    if pa.types.is_date(type):
        return lambda day: f'"{day.isoformat()}"'
    if pa.types.is_binary(type):
        return lambda data: f'"{base64.b64encode(data).decode()}"'
    return repr
