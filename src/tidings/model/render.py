"""Rows as JSON text, a column at a time: the form in which subscribers and `out.jsonl` see them."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.model.catalog import Column
from tidings.model.types import ColumnType

_EPOCH = dt.datetime(1970, 1, 1)


def value_text(type: ColumnType, value: Any) -> str:
    """JSON text of one value, given as ingest reads it."""
    if value is None:
        return "null"
    if type is ColumnType.TEXT:
        return encode_basestring(value)
    if type is ColumnType.BOOLEAN:
        return "true" if value else "false"
    if type in (ColumnType.DATE, ColumnType.TIMESTAMP):
        return f'"{value.isoformat()}"'
    if type is ColumnType.BINARY:
        return f'"{base64.b64encode(value).decode()}"'
    return repr(value)


def kept_text(column: Column, value: Any) -> bytes:
    """A value as rows keep it: as JSON text, but for what is never shown."""
    if column.is_internal and column.type is ColumnType.BINARY and value is not None:
        return bytes(value)
    return value_text(column.type, value).encode()


def render_rows(names: Sequence[str], columns: Sequence[pa.Array], length: int) -> list[str]:
    """One JSON object per row, columns in the order given."""
    if not columns:
        return ["{}"] * length
    cells = [_cells(name, column) for name, column in zip(names, columns, strict=True)]
    return ["{" + ", ".join(row) + "}" for row in zip(*cells, strict=True)]


def _cells(name: str, column: pa.Array) -> list[str]:
    head = encode_basestring(name) + ": "
    return [head + text for text in value_texts(column)]


def value_texts(column: pa.Array) -> list[str]:
    """JSON texts of values."""
    if pa.types.is_float64(column.type) and _are_ordinary(column):
        # The encoder writes such numbers as Python does, in a third of the time.
        return msgspec.json.encode(column.to_pylist())[1:-1].decode().split(",")
    render = _renderer(column.type)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return ["null" if value is None else render(value) for value in column.to_pylist()]


def _are_ordinary(doubles: pa.Array) -> bool:
    """Whether there are numbers, and all of a size that is written without an exponent; null is no number."""
    sizes = np.abs(doubles.to_numpy(zero_copy_only=False))
    return len(sizes) > 0 and bool(((sizes == 0) | (sizes >= 1e-3) & (sizes < 1e15)).all())


def json_texts(texts: pa.Array) -> pa.Array:
    """Texts, none of them null, as JSON strings, quotes included."""
    _, _, data = texts.buffers()
    characters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    if ((characters < 0x20) | (characters == ord('"')) | (characters == ord("\\"))).any():
        return pa.array([encode_basestring(text) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', texts, '"', "")


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
