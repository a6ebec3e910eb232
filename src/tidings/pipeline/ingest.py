"""Ingest: raw JSON lines -> typed, validated, columnar changes. What cannot be used is quarantined with a reason.

Records are decoded straight into structs made from the catalog, so that checking types costs no Python code per value.
"""

from __future__ import annotations

import datetime as dt
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from tidings.families.registry import row_compiler
from tidings.model.catalog import Catalog, Table
from tidings.model.change import OP_NAMES, SEQ_MAX, SEQ_NEXT, ChangeBatch, Op
from tidings.model.errors import RecordError, SqlError
from tidings.model.quarantine import Quarantined, raw_text
from tidings.model.row_decoder import RowDecoder, in_utc, reason_of

RECORD_BYTES_MAX = 16 * 2**20


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    """A change in our own format (most records are)."""

    table: str
    op: str
    seq: int | None = None
    row: msgspec.Raw = msgspec.Raw(b"")
    id: str | None = None
    where: str | None = None
    expires: int | dt.datetime | None = None
    time: dt.datetime | None = None


class _Source(msgspec.Struct):
    table: str


class _Envelope(msgspec.Struct):
    """A Debezium change event."""

    op: str
    source: _Source
    before: msgspec.Raw = msgspec.Raw(b"null")
    after: msgspec.Raw = msgspec.Raw(b"null")
    seq: int | None = None


class _Wrapped(msgspec.Struct):
    payload: _Envelope


class _Seq(msgspec.Struct):
    seq: int | None = None


_DEBEZIUM_OPS = {"c": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE, "r": Op.UPSERT}
_record_decoder = msgspec.json.Decoder(_Record)
_envelope_decoder = msgspec.json.Decoder(_Envelope)
_wrapped_decoder = msgspec.json.Decoder(_Wrapped)
_seq_decoder = msgspec.json.Decoder(_Seq)


@dataclass
class Parsed:
    """Result of `Ingest.parse`: one batch of changes per table, in order of arrival, and the refused lines."""

    changes: list[ChangeBatch] = field(default_factory=list)
    refused: list[Quarantined] = field(default_factory=list)


@dataclass
class _Columns:
    """Accepted records of one table, field by field, from which `_RowDecoder.batch` makes a batch."""

    position: list[int] = field(default_factory=list)
    seq: list[int] = field(default_factory=list)
    op: list[int] = field(default_factory=list)
    row: list[Any] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)


class _RowDecoder(RowDecoder):
    """Reads the rows of one table, and makes batches of them."""

    def batch(self, columns: _Columns) -> ChangeBatch:
        arrays = []
        for name, column in zip(self.fields, self.table.columns, strict=True):
            values = [getattr(row, name) for row in columns.row]
            arrays.append(pa.array(values, column.type.arrow))
        return ChangeBatch(
            self.table.name,
            np.array(columns.position, np.int64),
            np.array(columns.seq, np.int64),
            np.array(columns.op, np.int8),
            pa.RecordBatch.from_arrays(arrays, schema=self.table.schema),
            pa.array(columns.raw, pa.binary()),
        )


class _Constraint(msgspec.Struct, gc=False):
    """A row of a table of constraints, with a field for each of `CONSTRAINT_COLUMNS`."""

    c0: str
    c1: str | None = None
    c2: bytes | None = None
    c3: int | None = None
    c4: dt.datetime | None = None
    c5: dt.datetime | None = None


class _ConstraintDecoder(_RowDecoder):
    """Reads the constraints of one table: `id` and `where` instead of a row."""

    def __init__(self, table: Table, catalog: Catalog) -> None:
        super().__init__(table)
        self._compile = row_compiler(table, catalog)

    def constraint(self, op: Op, record: _Record) -> _Constraint:
        """The row of a record. RecordError or SqlError if it makes no sense."""
        if record.row:
            raise RecordError(f"table {self.table.name!r} holds constraints: give 'id' and 'where' instead of 'row'")
        if not record.id:
            raise RecordError("a constraint needs an 'id' that is not empty")
        time = None if record.time is None else _naive(record.time)
        if op is Op.DELETE:
            return _Constraint(record.id, c5=time)
        if record.where is None:
            raise RecordError("a constraint needs 'where', a condition")
        expires = record.expires
        if isinstance(expires, dt.datetime):
            return _Constraint(record.id, record.where, self._compile(record.where), None, _naive(expires), time)
        if expires is not None and not 0 < expires <= SEQ_MAX:
            raise RecordError(f"'expires' must be a time, or a seq from 1 to {SEQ_MAX}, not {expires}")
        return _Constraint(record.id, record.where, self._compile(record.where), expires, None, time)


def _naive(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo is None else in_utc(value)


class Ingest:
    """Parses lines of `changes.jsonl`, plain records and Debezium envelopes alike.

    needs_seq: whether records must have a seq. Those of a stream need none, nor do Debezium events.
    """

    def __init__(self, catalog: Catalog, *, needs_seq: bool = True) -> None:
        self._needs_seq = needs_seq
        self._decoders = {
            table.name: _ConstraintDecoder(table, catalog) if table.has_constraints else _RowDecoder(table)
            for table in catalog.tables
        }

    def parse(self, lines: Iterable[bytes], first_position: int = 0) -> Parsed:
        """Parses lines at consecutive positions of the source, from `first_position` on. Blank lines are skipped."""
        gathered: dict[str, _Columns] = defaultdict(_Columns)
        parsed = Parsed()
        for position, line in enumerate(lines, first_position):
            record = self._read(line, position, parsed.refused)
            if record is None:
                continue
            table, seq, op, row = record
            columns = gathered[table]
            columns.position.append(position)
            columns.seq.append(seq)
            columns.op.append(op)
            columns.row.append(row)
            columns.raw.append(line)
        parsed.changes = [self._decoders[table].batch(columns) for table, columns in gathered.items()]
        return parsed

    def read(
        self, line: bytes, position: int, refused: list[Quarantined], partition: str | None = None
    ) -> tuple[str, int, int, tuple[Any, ...]] | None:
        """(table, seq or SEQ_NEXT, op, values) of one line; None if it is blank or refused, and then added to `refused`.

        position, partition: as in `Quarantined`.
        """
        record = self._read(line, position, refused, partition)
        return None if record is None else (*record[:3], astuple(record[3]))

    def decode(self, line: bytes) -> tuple[str, int, int, tuple[Any, ...]]:
        """(table, seq or SEQ_NEXT, op, values) of one line; RecordError if the line is unusable."""
        table, seq, op, row = self._decode(line)
        return table, seq, op, astuple(row)

    def _read(
        self, line: bytes, position: int, refused: list[Quarantined], partition: str | None = None
    ) -> tuple[str, int, int, Any] | None:
        if position == 0:
            line = line.removeprefix(BOM_UTF8)
        if not line or line.isspace():
            return None
        try:
            return self._decode(line)
        except RecordError as error:
            entry = Quarantined("changes", position, _read_seq(line), str(error), raw_text(line), partition)
            refused.append(entry)
            return None

    def _decode(self, line: bytes) -> tuple[str, int, int, Any]:
        if len(line) > RECORD_BYTES_MAX:
            raise RecordError(f"record of {len(line):,} bytes is over the limit of {RECORD_BYTES_MAX:,}")
        try:
            record = _record_decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return self._decode_envelope(line, error)
        op = OP_NAMES.get(record.op)
        if op is None:
            raise RecordError(f"unknown op {record.op!r}; ops are {', '.join(OP_NAMES)}")
        if record.seq is None and self._needs_seq:
            raise RecordError("lacks `seq`")
        seq = SEQ_NEXT if record.seq is None else record.seq
        if record.seq is not None and not 0 < seq <= SEQ_MAX:
            raise RecordError(f"seq must be from 1 to {SEQ_MAX}, not {seq}")
        decoder = self._decoders.get(record.table)
        if isinstance(decoder, _ConstraintDecoder):
            try:
                return record.table, seq, op, decoder.constraint(op, record)
            except SqlError as error:
                raise RecordError(f"constraint of table {record.table!r}: {error}") from None
        for name in ("id", "where", "expires", "time"):
            if getattr(record, name) is not None:
                raise RecordError(f"unknown column or field `{name}`")
        if not record.row:
            raise RecordError("the record has no 'row'")
        return record.table, seq, op, self._row(record.table, op, record.row)

    def _decode_envelope(self, line: bytes, error: Exception) -> tuple[str, int, int, Any]:
        """Decodes a record as a Debezium event. error: why it is not in our own format, raised again if it is neither."""
        try:
            head = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as broken:
            raise RecordError(f"not JSON: {broken}") from None
        if not isinstance(head, dict):
            raise RecordError("not a JSON object") from None
        is_wrapped = isinstance(head.get("payload"), dict)
        body = head["payload"] if is_wrapped else head
        if "source" not in body and "after" not in body:
            raise RecordError(reason_of(error)) from None
        try:
            event = _wrapped_decoder.decode(line).payload if is_wrapped else _envelope_decoder.decode(line)
        except msgspec.MsgspecError as broken:
            raise RecordError(f"not a usable Debezium event: {reason_of(broken)}") from None
        op = _DEBEZIUM_OPS.get(event.op)
        if op is None:
            raise RecordError(f"Debezium op {event.op!r} is not supported; ops are {', '.join(_DEBEZIUM_OPS)}")
        table = event.source.table
        # Positions in a database's log (lsn and the like) are shared by many events: only `seq` counts as a number.
        seq = SEQ_NEXT if event.seq is None else event.seq
        if event.seq is not None and not 0 < seq <= SEQ_MAX:
            raise RecordError(f"seq must be from 1 to {SEQ_MAX}, not {seq}")
        image = event.before if op is Op.DELETE else event.after
        row = self._row(table, op, image)
        if op is Op.UPDATE and bytes(event.before) != b"null":
            before = self._row(table, Op.DELETE, event.before)
            decoder = self._decoders[table]
            for name, column in zip(decoder.fields, decoder.table.columns, strict=True):
                if column.name in decoder.table.key and getattr(before, name) != getattr(row, name):
                    raise RecordError("the update changes the primary key; send a delete and an insert instead")
        return table, seq, op, row

    def _row(self, table: str, op: Op, raw: msgspec.Raw) -> Any:
        decoder = self._decoders.get(table)
        if isinstance(decoder, _ConstraintDecoder):
            raise RecordError(f"table {table!r} holds constraints, which come as records with 'id' and 'where'")
        if decoder is None:
            raise RecordError(f"unknown table {table!r}; the catalog has {', '.join(self._decoders) or 'none'}")
        try:
            return decoder.decode(op, raw)
        except msgspec.ValidationError as error:
            raise RecordError(f"row of table {table!r}: {reason_of(error)}") from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RecordError(f"not JSON: {error}") from None


def _read_seq(line: bytes) -> int | None:
    """The seq of an unusable record, for the quarantine; None if it cannot be read."""
    try:
        return _seq_decoder.decode(line).seq
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
