"""Records of a stream that stand for several others, or for a part of a row: what they mean depends on the rows at that moment.

`{"table": "t", "op": "truncate"}` deletes every row of the table, in the order of keys.
`{"table": "t", "op": "update", "row": {..}, "keep": ["report"]}` leaves columns as they are: the row lacks them. With
`"old": {..}`, the key before, the row has got another key: a delete and an insert.

Such a record is replaced by plain ones when all lines before it that matter have been applied. A micro-batch without any,
which is nearly every one, is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from tidings.model.errors import RecordError
from tidings.model.quarantine import Quarantined, raw_text, repeated
from tidings.pipeline.replica.batch import Piece, Places
from tidings.pipeline.replica.row_store import RowStore

_MARKS = (b'"truncate"', b'"keep"')


class _Special(msgspec.Struct, forbid_unknown_fields=True):
    """A record with what only special ones have. keep: None where the record has no such field."""

    table: str
    op: str
    seq: int | None = None
    tx: str | int | None = None
    row: dict[str, msgspec.Raw] = {}
    keep: list[str] | None = None
    old: dict[str, msgspec.Raw] | None = None


_decoder = msgspec.json.Decoder(_Special)
_encode = msgspec.json.encode


def may_be_special(lines: Sequence[bytes]) -> bool:
    """Whether a special record may be among the lines: for nearly every micro-batch it is not."""
    text = b"\n".join(lines)
    return any(mark in text for mark in _MARKS)


def expanded(lines: Sequence[bytes], origin: Places, store: RowStore) -> Iterator[Piece]:
    """The lines in pieces without special records. Each piece must be applied before the next one is asked for."""
    gathered = _Gathered(origin, store)
    for at, line in enumerate(lines):
        record = _special(line)
        if record is None:
            gathered.add(at, [line])
            continue
        if record.seq is not None and (record.op == "truncate" or record.old is not None):
            # Its seq counts once for all records that it stands for, and after those of all lines before it.
            if gathered.lines:
                yield gathered.cut()
            if not store.take_seq(origin.names[origin.partition[at]], record.seq):
                gathered.refuse(at, record.seq, line)
                continue
        if record.op == "truncate":
            if gathered.lines:
                yield gathered.cut()
            gathered.add(at, _deletes(record, store), cleared=record.table)
        else:
            if gathered.has_changed(record):
                yield gathered.cut()
            gathered.add(at, _filled(record, store) or [line])
    # Also without a line: subscription events of the batch happen with its last piece at the latest.
    yield gathered.cut()


def _special(line: bytes) -> _Special | None:
    """The record, if it is a special one."""
    if not any(mark in line for mark in _MARKS):
        return None
    try:
        record = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    is_truncate = record.op == "truncate" and not record.row and record.keep is None and record.old is None
    is_kept = record.op in ("update", "upsert", "u") and record.keep is not None
    return record if is_truncate or is_kept else None


class _Gathered:
    """Lines for the next piece, where each comes from, and which rows they change."""

    def __init__(self, places: Places, store: RowStore) -> None:
        self.lines: list[bytes] = []
        self._places = places
        self._store = store
        self._at: list[int] = []
        self._keys: set[tuple[str, Hashable]] = set()
        self._cleared: set[str] = set()
        self._refused: list[Quarantined] = []

    def refuse(self, at: int, seq: int, line: bytes) -> None:
        """Notes that line `at` is a record whose seq is not above those before it in its partition."""
        label, offset = self._places.labels[self._places.block[at]], int(self._places.offset[at])
        self._refused.append(Quarantined("changes", offset, seq, repeated(seq), raw_text(line), label))

    def add(self, at: int, lines: list[bytes], cleared: str = "") -> None:
        """Adds lines that stand for line `at` of the batch. cleared: the table whose rows they all delete."""
        self.lines += lines
        self._at += [at] * len(lines)
        if cleared:
            self._cleared.add(cleared)
            return
        for line in lines:
            # What has no key that can be read is refused later, and changes nothing.
            with suppress(RecordError):
                self._keys.add(self._store.key_of(line))

    def has_changed(self, record: _Special) -> bool:
        """Whether lines gathered so far may change the row that the record takes values from."""
        before = record.row if record.old is None else record.old
        table = record.table
        if table in self._cleared:
            return True
        with suppress(RecordError):
            return self._store.key_of(_key_line(record, before, self._store)) in self._keys
        return False

    def cut(self) -> Piece:
        at = np.array(self._at, np.int64)
        piece = Piece(self.lines, self._places.take(at), at, self._refused)
        self.lines, self._at, self._refused = [], [], []
        self._keys, self._cleared = set(), set()
        return piece


def _deletes(record: _Special, store: RowStore) -> list[bytes]:
    """Deletes of all rows of the record's table; the record itself, to be refused, if there is no such table."""
    if not store.catalog.has_table(record.table):
        return [_encode({"table": record.table, "op": record.op})]
    table = store.catalog.table(record.table)
    places = [table.column_names.index(name) for name in table.key]
    keys = [[texts[at] for at in places] for texts in store.texts(record.table)]
    keys.sort(key=lambda texts: [msgspec.json.decode(text) for text in texts])
    names = [_encode(name) for name in table.key]
    tx = b"" if record.tx is None else b'"tx": ' + _encode(record.tx) + b", "
    head = b"{" + tx + b'"table": ' + _encode(record.table) + b', "op": "delete", "row": {'
    return [
        head + b", ".join(name + b": " + text for name, text in zip(names, texts, strict=True)) + b"}}"
        for texts in keys
    ]


def _filled(record: _Special, store: RowStore) -> list[bytes] | None:
    """Plain records with the kept columns as they are in the store; None if the record makes no sense, and is refused as it is.

    Where there is no such row, an update becomes one of the key before, with nulls, and is then refused for that; an upsert,
    or an update of a database (`u`), lacks the columns.
    """
    if not store.catalog.has_table(record.table) or record.keep is None:
        return None
    table = store.catalog.table(record.table)
    before = record.row if record.old is None else record.old
    if not set(record.keep) <= set(table.column_names) - set(table.key) or not set(table.key) <= set(before):
        return None
    gone = _key_line(record, before, store)
    try:
        known = store.find(gone)
    except RecordError:
        return None
    row: dict[str, Any] = dict(record.row)
    if known is not None:
        texts = dict(zip(table.column_names, known, strict=True))
        row |= {name: msgspec.Raw(texts[name]) for name in record.keep}
    # A record whose row has got another key had its seq taken before.
    seq: dict[str, Any] = {} if record.seq is None or record.old is not None else {"seq": record.seq}
    seq |= _tx(record)
    is_live = record.op == "u"
    if known is None and not is_live and (record.op == "update" or record.old is not None):
        nothing = {**dict.fromkeys(table.column_names), **{name: before[name] for name in table.key}}
        return [_encode({**seq, "table": record.table, "op": "update", "row": nothing})]
    if record.old is None or known is None:
        return [_encode({**seq, "table": record.table, "op": record.op, "row": row})]
    return [gone, _encode({**_tx(record), "table": record.table, "op": "u" if is_live else "insert", "row": row})]


def _tx(record: _Special) -> dict[str, Any]:
    return {} if record.tx is None else {"tx": record.tx}


def _key_line(record: _Special, row: dict[str, msgspec.Raw], store: RowStore) -> bytes:
    """A delete of the row with the key that is in `row`."""
    key = store.catalog.table(record.table).key if store.catalog.has_table(record.table) else ()
    own = {name: row[name] for name in key if name in row}
    return _encode({**_tx(record), "table": record.table, "op": "delete", "row": own})
