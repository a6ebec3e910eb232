"""Records and lines as requests carry them: JSON texts, in requests of bounded size that split no transaction."""

from __future__ import annotations

import datetime as dt
import math
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from tidings.model.errors import RecordError

REQUEST_BYTES_MAX = 4 << 20
REQUEST_LINES_MAX = 10_000


class _Transaction(msgspec.Struct):
    id: Any = None


class _Source(msgspec.Struct):
    txId: Any = None


class _Marks(msgspec.Struct):
    """What says to which transaction a record belongs: ours, or one of Debezium, bare or inside `payload`."""

    tx: Any = None
    transaction: _Transaction | None = None
    source: _Source | None = None
    payload: _Marks | None = None


_marks = msgspec.json.Decoder(_Marks).decode
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
        return _encode(plain(record))
    text = record.encode() if isinstance(record, str) else bytes(record)
    text = text.strip(b"\r\n")
    if b"\n" in text or b"\r" in text:
        # Within JSON a line end is only ever white space between its parts.
        text = text.replace(b"\r", b" ").replace(b"\n", b" ")
    return text


def row_record(table: str, op: str, row: Mapping[str, object] | str) -> bytes:
    """A change of one row. row: a dict of its columns, or JSON text."""
    if isinstance(row, str):
        text = line_of(row)
    elif isinstance(row, Mapping):
        text = _encode(plain(row))
    else:
        raise RecordError(f"a row is a dict of its columns, or JSON text, not {type(row).__name__}")
    return b'{"table": %b, "op": %b, "row": %b}' % (_encode(table), _encode(op), text)


def requests_of(
    lines: Iterable[bytes], bytes_max: int = REQUEST_BYTES_MAX, lines_max: int = REQUEST_LINES_MAX
) -> Iterator[list[bytes]]:
    """Lines in groups, one for each request. Consecutive lines of one transaction stay together: a group grows instead."""
    group: list[bytes] = []
    size = 0
    tx: object = None
    for line in lines:
        belongs_to = _tx_of(line, tx)
        is_full = size + len(line) > bytes_max or len(group) >= lines_max
        if group and is_full and (belongs_to is None or belongs_to != tx):
            yield group
            group, size = [], 0
        group.append(line)
        size += len(line) + 1
        tx = belongs_to
    if group:
        yield group


def _tx_of(line: bytes, tx: object) -> object:
    """The transaction of a line. One that cannot be read neither begins nor ends any: it gets that of the line before."""
    try:
        marks = _marks(line)
    except msgspec.DecodeError:
        return tx
    if marks.payload is not None:
        marks = marks.payload
    if marks.tx is None and marks.transaction is not None and marks.transaction.id is not None:
        return _text(marks.transaction.id)
    if marks.tx is None and marks.source is not None:
        return _text(marks.source.txId)
    return _text(marks.tx)


def _text(tx: Any) -> str | None:
    """Transactions are compared as text: 7 and "7" are the same."""
    return str(tx) if isinstance(tx, str | int) and not isinstance(tx, bool) else None
