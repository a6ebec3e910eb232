"""Ingest: raw JSON lines -> typed, validated, columnar changes. What cannot be used is quarantined with a reason.

Records are decoded straight into structs made from the catalog, so that checking types costs no Python code per value.
"""

from __future__ import annotations

import datetime as dt
from codecs import BOM_UTF8
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from tidings.families.registry import row_compiler
from tidings.model.catalog import Catalog, Table
from tidings.model.change import OP_NAMES, SEQ_MAX, SEQ_NEXT, Op
from tidings.model.errors import RecordError, SqlError
from tidings.model.quarantine import Quarantined, raw_text, withdrawn
from tidings.model.row_decoder import RowDecoder, in_utc, reason_of

RECORD_BYTES_MAX = 16 * 2**20
TX_CHARACTERS_MAX = 1_000
TOLD, LOADED, LOADING, LOAD_END = range(4)
"""What a record is to a first load: a change; a row of the load; such a row with more to follow; the mark of its end."""
_MORE = ("true", "first", "first_in_data_collection", "last_in_data_collection")
"""`snapshot` of rows that others of the same load follow, as Debezium has it."""


class Record(NamedTuple):
    """A usable record. seq: SEQ_NEXT if it has none. values: a tuple, in the order of columns. load: TOLD, LOADED, ..."""

    table: str
    seq: int
    op: int
    values: Any
    tx: str | None = None
    load: int = TOLD


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
    tx: str | int | None = None
    snapshot: str | None = None


class _Source(msgspec.Struct):
    table: str
    txId: Any = None
    snapshot: Any = None


class _Transaction(msgspec.Struct):
    id: Any = None


class _Envelope(msgspec.Struct):
    """A Debezium change event."""

    op: str
    source: _Source
    transaction: _Transaction | None = None
    before: msgspec.Raw = msgspec.Raw(b"null")
    after: msgspec.Raw = msgspec.Raw(b"null")
    seq: int | None = None


class _Wrapped(msgspec.Struct):
    payload: _Envelope


class _Seq(msgspec.Struct):
    seq: int | None = None


class _TxSource(msgspec.Struct):
    txId: Any = None


class _TxEnvelope(msgspec.Struct):
    """What says to which transaction a line belongs, whatever else is in it. op: whether it is a record at all."""

    tx: Any = None
    source: _TxSource | None = None
    transaction: _Transaction | None = None
    payload: _TxEnvelope | None = None


_DEBEZIUM_OPS = {"c": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE, "r": Op.UPSERT}
_LIVE_OPS = {"c": Op.UPSERT, "u": Op.UPSERT, "d": Op.DELETE}
"""Of streams: what a database has done to a row, which may be unknown here if an earlier record was refused."""
_record_decoder = msgspec.json.Decoder(_Record)
_envelope_decoder = msgspec.json.Decoder(_Envelope)
_wrapped_decoder = msgspec.json.Decoder(_Wrapped)
_seq_decoder = msgspec.json.Decoder(_Seq)
_tx_decoder = msgspec.json.Decoder(_TxEnvelope)


class _Constraint(msgspec.Struct, gc=False):
    """A row of a table of constraints, with a field for each of `CONSTRAINT_COLUMNS`."""

    c0: str
    c1: str | None = None
    c2: bytes | None = None
    c3: int | None = None
    c4: dt.datetime | None = None
    c5: dt.datetime | None = None


class _ConstraintDecoder(RowDecoder):
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
        if expires is not None and not self.table.constraints.is_kept:
            raise RecordError(f"publications of table {self.table.name!r} are not kept: leave out 'expires'")
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
    is_live: whether they are of a stream. Plain records may then have Debezium's ops; and those with such ops, plain or not,
    withdraw a row that they change to one that cannot be kept.
    """

    def __init__(self, catalog: Catalog, *, needs_seq: bool = True, is_live: bool = False) -> None:
        self._needs_seq = needs_seq
        self._is_live = is_live
        self._decoders = {
            table.name: _ConstraintDecoder(table, catalog) if table.has_constraints else RowDecoder(table)
            for table in catalog.tables
        }

    def read(
        self, line: bytes, position: int, refused: list[Quarantined], partition: str | None = None
    ) -> Record | None:
        """The record of one line; None if it is blank or refused, and then added to `refused`.

        position, partition: as in `Quarantined`.
        """
        record = self._read(line, position, refused, partition)
        if record is None or record.load == LOAD_END:
            return record
        return record._replace(values=astuple(record.values))

    def is_live(self, line: bytes) -> bool:
        """Whether a line of a stream says what a database has done: it cannot contradict the rows, which may lack some."""
        try:
            return self._is_live and _database_record(line)[0] in _LIVE_OPS
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False

    def decode_key(self, line: bytes) -> Record:
        """As `decode`; of a record that withdraws its row, the delete."""
        try:
            return self.decode(line)
        except RecordError:
            record = self._withdrawal(line)
            if record is None:
                raise
            return record._replace(values=astuple(record.values))

    def decode(self, line: bytes) -> Record:
        """The record of one line; RecordError if the line is unusable, or no change of a row."""
        record = self._decode(line)
        if record.load == LOAD_END:
            raise RecordError("the mark of the end of a load changes no row")
        return record._replace(values=astuple(record.values))

    def _read(
        self, line: bytes, position: int, refused: list[Quarantined], partition: str | None = None
    ) -> Record | None:
        if position == 0:
            line = line.removeprefix(BOM_UTF8)
        if not line or line.isspace():
            return None
        try:
            return self._decode(line)
        except RecordError as error:
            record = self._withdrawal(line)
            reason = str(error) if record is None else withdrawn(str(error))
            refused.append(Quarantined("changes", position, _read_seq(line), reason, raw_text(line), partition))
            return record

    def _withdrawal(self, line: bytes) -> Record | None:
        """The delete of the row that an unusable record of a database is about; None if it is of somebody else, or has no key
        that can be read.
        """
        if not self._is_live:
            return None
        try:
            op, table, seq, raw = _database_record(line)
            decoder = self._decoders.get(table)
            if op not in _LIVE_OPS or decoder is None:
                return None
            tx = tx_of(line)
            values = decoder.decode_key(raw)
            return Record(table, _checked_seq(seq), Op.DELETE, values, None if tx is UNREADABLE else tx)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, RecordError):
            return None

    def _decode(self, line: bytes) -> Record:
        if len(line) > RECORD_BYTES_MAX:
            raise RecordError(f"record of {len(line):,} bytes is over the limit of {RECORD_BYTES_MAX:,}")
        try:
            record = _record_decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return self._decode_envelope(line, error)
        live = _LIVE_OPS.get(record.op) if self._is_live else None
        op = Op.UPSERT if record.op == "r" else OP_NAMES.get(record.op, live)
        if op is None:
            raise RecordError(f"unknown op {record.op!r}; ops are {', '.join(OP_NAMES)}")
        load = TOLD if record.op != "r" else LOADING if record.snapshot in _MORE else LOADED
        if record.snapshot is not None and load == TOLD:
            raise RecordError("'snapshot' is for rows of a first load, with op 'r'")
        if record.seq is None and self._needs_seq:
            raise RecordError("lacks `seq`")
        seq = _checked_seq(record.seq)
        tx = _tx_text(record.tx)
        decoder = self._decoders.get(record.table)
        if isinstance(decoder, _ConstraintDecoder):
            try:
                return Record(record.table, seq, op, decoder.constraint(op, record), tx, load)
            except SqlError as error:
                raise RecordError(f"constraint of table {record.table!r}: {error}") from None
        for name in ("id", "where", "expires", "time"):
            if getattr(record, name) is not None:
                raise RecordError(f"unknown column or field `{name}`")
        if not record.row:
            raise RecordError("the record has no 'row'")
        return Record(record.table, seq, op, self._row(record.table, op, record.row), tx, load)

    def _decode_envelope(self, line: bytes, error: Exception) -> Record:
        """Decodes a record as a Debezium event. error: why it is not in our own format, raised again if it is neither."""
        try:
            head = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as broken:
            raise RecordError(f"not JSON: {broken}") from None
        if not isinstance(head, dict):
            raise RecordError("not a JSON object") from None
        if head == {"op": "r", "snapshot": "last"}:
            return Record("", SEQ_NEXT, Op.UPSERT, None, load=LOAD_END)
        is_wrapped = isinstance(head.get("payload"), dict)
        body = head["payload"] if is_wrapped else head
        if "source" not in body and "after" not in body:
            raise RecordError(reason_of(error)) from None
        try:
            event = _wrapped_decoder.decode(line).payload if is_wrapped else _envelope_decoder.decode(line)
        except msgspec.MsgspecError as broken:
            raise RecordError(f"not a usable Debezium event: {reason_of(broken)}") from None
        op = (_DEBEZIUM_OPS | _LIVE_OPS if self._is_live else _DEBEZIUM_OPS).get(event.op)
        if op is None:
            raise RecordError(f"Debezium op {event.op!r} is not supported; ops are {', '.join(_DEBEZIUM_OPS)}")
        table = event.source.table
        # Positions in a database's log (lsn and the like) are shared by many events: only `seq` counts as a number.
        seq = _checked_seq(event.seq)
        image = event.before if op is Op.DELETE else event.after
        row = self._row(table, op, image)
        if event.op == "u" and bytes(event.before) != b"null":
            before = self._row(table, Op.DELETE, event.before)
            decoder = self._decoders[table]
            for name, column in zip(decoder.fields, decoder.table.columns, strict=True):
                if column.name in decoder.table.key and getattr(before, name) != getattr(row, name):
                    raise RecordError("the update changes the primary key; send a delete and an insert instead")
        load = TOLD if event.op != "r" else LOADING if str(event.source.snapshot).lower() in _MORE else LOADED
        return Record(table, seq, op, row, _tx_text(_debezium_tx(event)), load)

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


def _database_record(line: bytes) -> tuple[str, str, int | None, msgspec.Raw]:
    """(op, table, seq, row) of a plain record or a Debezium event; of an event that has it, the row before."""
    try:
        record = _record_decoder.decode(line)
        return record.op, record.table, record.seq, record.row
    except msgspec.ValidationError:
        pass
    try:
        event = _envelope_decoder.decode(line)
    except msgspec.ValidationError:
        event = _wrapped_decoder.decode(line).payload
    row = event.after if bytes(event.before) == b"null" else event.before
    return event.op, event.source.table, event.seq, row


def _checked_seq(seq: int | None) -> int:
    if seq is not None and not 0 < seq <= SEQ_MAX:
        raise RecordError(f"seq must be from 1 to {SEQ_MAX}, not {seq}")
    return SEQ_NEXT if seq is None else seq


def _debezium_tx(event: _Envelope | _TxEnvelope) -> Any:
    """The id of the event's transaction: that of the connector, which names one across tables, before the database's."""
    if event.transaction is not None and event.transaction.id is not None:
        return event.transaction.id
    return None if event.source is None else event.source.txId


def _tx_text(tx: Any) -> str | None:
    """The id of a transaction as text; None if there is none."""
    if tx is None or isinstance(tx, bool) or not isinstance(tx, str | int):
        return None
    if isinstance(tx, int) and abs(tx) >= 2**64:
        raise RecordError("'tx' is a number of more than 64 bits: write it as text")
    text = str(tx)
    if len(text) > TX_CHARACTERS_MAX:
        raise RecordError(f"'tx' of {len(text):,} characters is over the limit of {TX_CHARACTERS_MAX:,}")
    return text


UNREADABLE = object()
"""Instead of a transaction, of a line that is blank, or whose transaction cannot be read: it neither begins nor ends one."""


def tx_of(line: bytes) -> Any:
    """The transaction of a line, usable or not: text, None, or UNREADABLE. Lines of one transaction follow each other."""
    try:
        found = _tx_decoder.decode(line.removeprefix(BOM_UTF8))
        own = found.tx if found.tx is not None else _debezium_tx(found.payload or found)
        return _tx_text(own)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, RecordError):
        return UNREADABLE


def _read_seq(line: bytes) -> int | None:
    """The seq of an unusable record, for the quarantine; None if it cannot be read."""
    try:
        return _seq_decoder.decode(line).seq
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
