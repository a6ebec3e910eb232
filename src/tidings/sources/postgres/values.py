"""Values as PostgreSQL prints them -> JSON as records have it, by the type of the column.

What a type of the catalog cannot hold (NaN, infinity, years beyond 9999) becomes a JSON text, which the pipeline refuses and
quarantines: nothing is changed silently. The session must print as `server.SESSION` says.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from json.encoder import encode_basestring
from math import isfinite

from tidings.model.types import ColumnType

BOOL, BYTEA, INT8, INT2, INT4, FLOAT4, FLOAT8, DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC = (
    16, 17, 20, 21, 23, 700, 701, 1082, 1114, 1184, 1700,
)  # fmt: skip
"""Oids of types, the same on every server."""

SOURCE_TYPES: dict[ColumnType, frozenset[int]] = {
    ColumnType.BIGINT: frozenset({INT2, INT4, INT8}),
    ColumnType.INT: frozenset({INT2, INT4}),
    ColumnType.DOUBLE: frozenset({INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC}),
    ColumnType.BOOLEAN: frozenset({BOOL}),
    ColumnType.DATE: frozenset({DATE}),
    ColumnType.TIMESTAMP: frozenset({TIMESTAMP, TIMESTAMPTZ}),
    ColumnType.BINARY: frozenset({BYTEA}),
}
"""Which types of PostgreSQL a column of the catalog may have. TEXT takes every type that is not here."""
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:\+00)?")

Render = Callable[[str], str]
text_json: Render = encode_basestring


def render_of(type: int) -> Render:
    """The function that turns a value of this type into JSON."""
    return _RENDERS.get(type, text_json)


def fits(column: ColumnType, type: int) -> bool:
    """Whether a column of the catalog can hold values of a type of PostgreSQL."""
    if column is ColumnType.TEXT:
        return type not in _RENDERS
    return type in SOURCE_TYPES.get(column, frozenset())


def kept_as(type: int) -> ColumnType:
    """The type of the catalog for values of a type of PostgreSQL: the narrowest one."""
    narrow = {INT2: ColumnType.INT, INT4: ColumnType.INT, INT8: ColumnType.BIGINT}
    others = (column for column, types in SOURCE_TYPES.items() if type in types)
    return narrow.get(type) or next(others, ColumnType.TEXT)


def _number(text: str) -> str:
    value = float(text)
    return repr(value) if isfinite(value) else text_json(text)


def _moment(text: str) -> str:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return text_json(text)
    date, time, fraction = found.groups()
    return f'"{date}T{time}.{fraction.ljust(6, "0")}"' if fraction else f'"{date}T{time}"'


def _bool(text: str) -> str:
    return "true" if text == "t" else "false"


def _bytes(text: str) -> str:
    return f'"{b64encode(bytes.fromhex(text[2:])).decode()}"'


_RENDERS: dict[int, Render] = {
    **dict.fromkeys((INT2, INT4, INT8), str),
    **dict.fromkeys((FLOAT4, FLOAT8, NUMERIC), _number),
    BOOL: _bool,
    BYTEA: _bytes,
    DATE: text_json,
    **dict.fromkeys((TIMESTAMP, TIMESTAMPTZ), _moment),
}
