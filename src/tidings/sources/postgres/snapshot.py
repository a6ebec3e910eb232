"""The first rows of a stream: all rows of the tables as of one moment, spooled to files before the stream begins.

Files make the snapshot repeatable: a micro-batch that is run again after a crash gets the same rows. The slot is there before
the snapshot is taken. A transaction that the snapshot has seen may therefore come from the slot as well: its id tells, and it
is passed over.

    slot created ---- A commits ---- snapshot ---- B commits ---->
                      in the snapshot,             from the slot
                      passed over in the slot
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from tidings.files import write_bytes, write_text
from tidings.model.errors import UsageError
from tidings.sources.postgres.publication import selection
from tidings.sources.postgres.records import Followed, RowWriter
from tidings.sources.postgres.server import Connection
from tidings.sources.postgres.settings import lsn_of, lsn_text
from tidings.terminal import say

_CHUNK_ROWS, _CHUNK_BYTES = 5_000, 4 * 2**20
_XIDS = 1 << 32
_PROGRESS_SECONDS = 3.0
_IS_FIRST = ', "snapshot": "true"'
END = '{"op": "r", "snapshot": "last"}'
"""Behind the last row. A record of its own: should the last row be refused, the end would be lost with it."""
_MOMENT = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text, now()"


@dataclass(frozen=True)
class Snapshot:
    """A complete snapshot. chunks: rows and bytes of each of its files.

    horizon: every transaction that the snapshot has seen ends at this position of the log or before.
    xmin, xmax, running: transactions below xmin are seen, those from xmax on and the running ones are not.
    """

    id: str
    folder: Path
    horizon: int
    xmin: int
    xmax: int
    running: frozenset[int]
    time: dt.datetime
    chunks: tuple[tuple[int, int], ...]

    def has_seen(self, xid: int, end_lsn: int) -> bool:
        """Whether the snapshot has the changes of a transaction. xid: the lower 32 bits of its id."""
        if end_lsn > self.horizon:
            return False
        # The id is within 2^31 of the snapshot's, which tells its upper bits.
        ahead = (xid - self.xmax) % _XIDS
        full = self.xmax + (ahead if ahead < _XIDS // 2 else ahead - _XIDS)
        return full < self.xmin or (full < self.xmax and full not in self.running)

    def first_row(self, chunk: int) -> int:
        """How many rows are before a chunk."""
        return sum(rows for rows, _ in self.chunks[:chunk])

    def records(self, chunk: int) -> list[str]:
        path = self.folder / _chunk_name(self.id, chunk)
        try:
            return path.read_text(encoding="utf-8").split("\n")[:-1]
        except OSError as error:
            raise UsageError(_gone(path, error)) from None

    @staticmethod
    def load(folder: Path, id: str) -> Snapshot:
        path = folder / _manifest_name(id)
        try:
            known: dict[str, Any] = json.loads(path.read_text())
        except OSError as error:
            raise UsageError(_gone(path, error)) from None
        return Snapshot(
            id,
            folder,
            lsn_of(known["horizon"]),
            known["xmin"],
            known["xmax"],
            frozenset(known["running"]),
            dt.datetime.fromisoformat(known["time"]),
            tuple((rows, size) for rows, size in known["chunks"]),
        )


def take_snapshot(connection: Connection, tables: Sequence[Followed], folder: Path) -> Snapshot:
    """Takes a snapshot of the tables and writes it. The manifest, written last, makes it count."""
    id = uuid.uuid4().hex[:12]
    folder.mkdir(parents=True, exist_ok=True)
    discard_snapshots(folder)
    chunks: list[tuple[int, int]] = []
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        seen, horizon, time = connection.execute(_MOMENT).fetchone()
        for lines in _chunked(_records(connection, tables)):
            text = "".join(f"{line}\n" for line in lines).encode()
            write_bytes(folder / _chunk_name(id, len(chunks)), [text])
            chunks.append((len(lines), len(text)))
    xmin, xmax, running = seen.split(":")
    known = {
        "horizon": lsn_text(lsn_of(horizon)),
        "xmin": int(xmin),
        "xmax": int(xmax),
        "running": [int(xid) for xid in running.split(",") if xid],
        "time": time.isoformat(),
        "chunks": chunks,
    }
    write_text(folder / _manifest_name(id), json.dumps(known))
    return Snapshot.load(folder, id)


def discard_snapshots(folder: Path) -> None:
    """Removes the files of all snapshots, complete or not, when the stream is past them or begins anew."""
    for path in folder.glob("snapshot-*"):
        with suppress(FileNotFoundError):
            path.unlink()


def _records(connection: Connection, tables: Sequence[Followed]) -> Iterator[str]:
    """Records of all rows, and of their end, unless there is no row. From time to time stderr is told how far it is."""
    has_rows = False
    shown = monotonic()
    for table in tables:
        for number, record in enumerate(_table_records(connection, table), 1):
            yield record
            has_rows = True
            if number % 1000 == 0 and monotonic() > shown + _PROGRESS_SECONDS:
                say(f"loading: {number:,} rows of {table.name}")
                shown = monotonic()
    if has_rows:
        yield END


def _table_records(connection: Connection, table: Followed) -> Iterator[str]:
    from psycopg import sql

    with connection.cursor() as cursor:
        described = cursor.execute(selection(table, "LIMIT 0")).description
        writer = RowWriter(table, [(column.name, column.type_code) for column in described])
        with cursor.copy(sql.SQL("COPY ({}) TO STDOUT").format(selection(table))) as copy:
            for row in copy.rows():
                yield writer.record("r", row, _IS_FIRST)


def _chunked(records: Iterator[str]) -> Iterator[list[str]]:
    held: list[str] = []
    size = 0
    for record in records:
        held.append(record)
        size += len(record)
        if len(held) >= _CHUNK_ROWS or size >= _CHUNK_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _chunk_name(id: str, chunk: int) -> str:
    return f"snapshot-{id}-{chunk:06d}.jsonl"


def _manifest_name(id: str) -> str:
    return f"snapshot-{id}.json"


def _gone(path: Path, error: OSError) -> str:
    return (
        f"cannot read {path}, a part of the snapshot that the stream began with: {error.strerror}. The folder of the option"
        " spool belongs to the checkpoint; without it, drop the slot, remove the checkpoint and begin anew"
    )
