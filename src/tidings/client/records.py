"""Lines of records in requests of bounded size that split no transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

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
