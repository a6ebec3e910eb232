"""Python values as records: the lines of JSON that engines in this process and services take."""

from __future__ import annotations

import datetime as dt
import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from tidings.model.errors import RecordError

_encode = msgspec.json.Encoder().encode


def plain(value: object, name: object = "value") -> Any:
    """A value as JSON has it. Dates become text, decimals numbers, bytes base64. RecordError if it cannot be written."""
    if hasattr(value, "item") and hasattr(value, "dtype"):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise RecordError(f"{name}: {value} is not a value; use None where there is none")
        return float(value)
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)).isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): plain(each, key) for key, each in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(each, name) for each in value]
    raise RecordError(f"{name}: a {type(value).__name__} cannot be a value")


def line_of(record: Mapping[str, object] | str | bytes) -> bytes:
    """A record as one line, without its end."""
    if isinstance(record, Mapping):
        return _encoded(record)
    if not isinstance(record, str | bytes):
        raise RecordError(f"a record is a dict or a line of JSON, not {type(record).__name__}")
    text = record.encode() if isinstance(record, str) else record
    # Within JSON a line end is only ever white space between its parts.
    return text.strip(b"\r\n").replace(b"\r", b" ").replace(b"\n", b" ")


def row_record(table: str, op: str, row: Mapping[str, object] | str) -> bytes:
    """A change of one row. row: a dict of its columns, or JSON text."""
    if not isinstance(row, Mapping | str):
        raise RecordError(f"a row is a dict of its columns, or JSON text, not {type(row).__name__}")
    return b'{"table": %b, "op": %b, "row": %b}' % (_encode(table), _encode(op), line_of(row))


def _encoded(value: Mapping[str, object]) -> bytes:
    known = plain(value)
    try:
        return _encode(known)
    except UnicodeEncodeError:
        # Half a surrogate pair: whoever reads the line refuses it, and says why.
        return json.dumps(known).encode()
