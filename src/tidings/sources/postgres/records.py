"""Changes of PostgreSQL -> records of the pipeline (`docs/streaming.md`), transaction by transaction. No I/O."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tidings.sources.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Relation,
    Truncate,
    Tuple,
    Update,
    decode,
)
from tidings.sources.postgres.values import Render, render_of, text_json


class Followed(NamedTuple):
    """A table that is followed. columns, key: as in the catalog, where its name is `name`."""

    schema: str
    table: str
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


class Transaction(NamedTuple):
    """A committed transaction. records: each with the transaction's id (`"tx"`)."""

    end_lsn: int
    xid: int
    time: dt.datetime
    records: list[str]


class _Cell(NamedTuple):
    """A column of records. at: its place in the relation's rows."""

    name: str
    at: int
    head: str
    render: Render


class RowWriter:
    """Writes rows of one table as JSON. Columns that the table does not have are left out: the pipeline then refuses the
    record, and says what it lacks.
    """

    def __init__(self, table: Followed, columns: Sequence[tuple[str, int]]) -> None:
        """columns: name and type of the values of rows, in order."""
        places = {name: (at, type) for at, (name, type) in enumerate(columns)}
        self.name = text_json(table.name)
        self.cells = [
            _Cell(name, at, f"{text_json(name)}: ", render_of(type))
            for name in table.columns
            if (found := places.get(name)) is not None
            for at, type in [found]
        ]
        self.key = [cell for cell in self.cells if cell.name in table.key]

    def record(self, op: str, row: Tuple, more: str = "") -> str:
        """A record. Of an unchanged value it says so (`keep`), unless it is a delete, which has the key alone.

        more: further fields, each with a comma before it.
        """
        cells = self.key if op == "d" else self.cells
        kept = ", ".join(text_json(cell.name) for cell in cells if row[cell.at] is UNCHANGED)
        keep = f', "keep": [{kept}]' if kept else ""
        return f'{{"table": {self.name}, "op": "{op}", "row": {_row(cells, row)}{keep}{more}}}'

    def update(self, old: Tuple | None, new: Tuple) -> list[str]:
        """Records of an update; one that changes the key is a delete and an insert."""
        if old is None:
            return [self.record("u", new)]
        # The whole old row is there if it must be (REPLICA IDENTITY FULL): then nothing has to be kept. A value that is
        # large but not null in a key alone cannot be told from a null: such columns stay unchanged.
        filled = tuple(
            before if value is UNCHANGED and before is not None else value
            for value, before in zip(new, old, strict=True)
        )
        if all(old[cell.at] == filled[cell.at] for cell in self.key):
            return [self.record("u", filled)]
        if any(filled[cell.at] is UNCHANGED for cell in self.cells):
            return [self.record("u", filled, f', "old": {_row(self.key, old)}')]
        return [self.record("d", old), self.record("c", filled)]


def _row(cells: Sequence[_Cell], row: Tuple) -> str:
    parts = []
    for cell in cells:
        value = row[cell.at]
        if value is None:
            parts.append(f"{cell.head}null")
        elif value is not UNCHANGED:
            parts.append(cell.head + cell.render(value))
    return f"{{{', '.join(parts)}}}"


class Recorder:
    """Turns messages into transactions with the records of the tables that are followed.

    Records have Debezium's ops (c, u, d): rows may have been there before the first change, unknown to the pipeline, or be
    such as it cannot keep.
    """

    def __init__(self, tables: Iterable[Followed]) -> None:
        self._tables = {(table.schema, table.table): table for table in tables}
        self._writers: dict[int, RowWriter | None] = {}

    def transactions(self, messages: Iterable[bytes]) -> Iterator[Transaction]:
        xid, records = 0, list[str]()
        for data in messages:
            message = decode(data)
            if isinstance(message, Begin):
                xid, records = message.xid, []
            elif isinstance(message, Commit):
                head = f'{{"tx": "{xid}", '
                yield Transaction(message.end_lsn, xid, message.time, [head + record[1:] for record in records])
            elif isinstance(message, Relation):
                table = self._tables.get((message.schema, message.name))
                self._writers[message.oid] = None if table is None else RowWriter(table, message.columns)
            elif isinstance(message, Truncate):
                records += [
                    f'{{"table": {writer.name}, "op": "truncate"}}'
                    for writer in map(self._writer, message.oids)
                    if writer
                ]
            elif message is not None and (writer := self._writer(message.oid)) is not None:
                records += self._records(writer, message)

    def _writer(self, oid: int) -> RowWriter | None:
        return self._writers.get(oid)

    def _records(self, writer: RowWriter, message: Insert | Update | Delete) -> list[str]:
        if isinstance(message, Insert):
            return [writer.record("c", message.new)]
        if isinstance(message, Delete):
            return [writer.record("d", message.old)]
        return writer.update(message.old, message.new)
