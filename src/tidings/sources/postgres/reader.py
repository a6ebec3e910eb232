"""The stream without Spark: where it begins, how far a micro-batch goes, its rows, and what is done with.

`ChangeStream` holds nothing that is not in the server, the spool folder or the positions that it is given: what it gives for
two positions is the same at every call, in any process.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from tidings.files import write_text
from tidings.model.errors import UsageError
from tidings.sources.postgres import slot as slots
from tidings.sources.postgres.position import Position
from tidings.sources.postgres.publication import (
    check_publication,
    check_server,
    check_tables,
    create_publication,
    drop_publication,
)
from tidings.sources.postgres.records import Recorder
from tidings.sources.postgres.server import Connection, Server, session
from tidings.sources.postgres.settings import Settings, lsn_of, lsn_text
from tidings.sources.postgres.slot import Slot
from tidings.sources.postgres.snapshot import Snapshot, discard_snapshots, take_snapshot
from tidings.sql import parse_catalog

_START, _SLOT = "start.json", "slot"
_IDLE_BYTES = 16 * 2**20
"""After so much log without a change of our tables the stream moves on, so that the server may remove it."""
_WINDOW_BYTES = 64 * 2**20
"""So much log is looked through at once."""
_FAR_BYTES = 2**20
_REST = 5
"""After a look through more foreign log than that which found nothing, so many times its seconds pass until the next one."""
_MESSAGES_PER_ROW = 3
"""A transaction of one row: begin, the row, commit."""


class Row(NamedTuple):
    lsn: int
    """End of the transaction in the log."""
    number: int
    """Of the row within it."""
    value: str
    time: dt.datetime


@dataclass(frozen=True)
class Part:
    """What one task reads: a chunk of the snapshot, or the changes between two positions."""

    start: Position
    end: Position
    chunk: int | None = None


class _Found(NamedTuple):
    """What the server has of what the stream needs."""

    slot: Slot | None
    has_publication: bool


def check(settings: Settings) -> None:
    """UsageError if the stream cannot begin, or go on. Changes nothing."""
    with session(settings.dsn) as connection:
        _check(connection, settings)


def _check(connection: Connection, settings: Settings) -> _Found:
    slot = slots.find(connection, settings.slot)
    tables = settings.followed()
    if not (settings.spool / _START).exists():
        check_server(connection)
        check_tables(connection, tables, parse_catalog(settings.catalog))
        _check_slot(settings, slot)
    elif slot is None:
        raise UsageError(_lost(settings.slot))
    # When a run goes on, its catalog may have got more tables. Columns are not checked again: records that no longer fit are
    # refused.
    has_publication = check_publication(connection, settings.publication, tables)
    if slot is not None and not has_publication:
        raise UsageError(
            f"there is no publication {settings.publication!r}, but the slot is there: changes before the publication cannot be"
            f" read. Name the right one (option publication), or drop the slot: SELECT pg_drop_replication_slot('{slot.name}')"
        )
    return _Found(slot, has_publication)


def _check_slot(settings: Settings, slot: Slot | None) -> None:
    """UsageError if a new run cannot use the slot."""
    if not settings.has_own_slot:
        if slot is None or lsn_of(settings.start) < slot.confirmed:
            there = "does not exist" if slot is None else f"begins at {lsn_text(slot.confirmed)}"
            raise UsageError(f"changes from {settings.start} on cannot be read: the slot {settings.slot!r} {there}")
    elif slot is not None and not (settings.spool / _SLOT).exists():
        raise UsageError(
            f"the slot {settings.slot!r} is there already, maybe of another run, which would lose changes: name another one "
            f"(option slot), begin at a position of it (--from), or drop it: SELECT pg_drop_replication_slot('{settings.slot}')"
        )


def begin(settings: Settings) -> Position:
    """Where the stream begins. At the first call everything that it needs is made; later ones find it."""
    with begun(settings) as position:
        return position


@contextmanager
def begun(settings: Settings) -> Iterator[Position]:
    """Where the stream begins, as from `begin`. What was made for it is removed again if the context ends with an error."""
    path = settings.spool / _START
    with session(settings.dsn) as connection:
        found = _check(connection, settings)
        if path.exists():
            yield Position.of(json.loads(path.read_text()))
            return
        try:
            settings.spool.mkdir(parents=True, exist_ok=True)
            if settings.has_own_slot:
                # Should the run be killed before it has begun, the next one finds that the slot is its own.
                write_text(settings.spool / _SLOT, settings.slot)
            # The publication must be there when the slot begins, or the first changes could not be read.
            if not found.has_publication:
                create_publication(connection, settings.publication, settings.followed())
            position = _first(connection, settings, found.slot)
            write_text(path, json.dumps(position.as_json()))
            yield position
        except BaseException:
            _undo(settings, found)
            raise


def _undo(settings: Settings, found: _Found) -> None:
    """Removes what a beginning has made, with its folder."""
    discard_snapshots(settings.spool)
    for name in (_START, _SLOT):
        (settings.spool / name).unlink(missing_ok=True)
    # The error that is being raised matters more than what is left behind if the server is away.
    with suppress(UsageError), session(settings.dsn) as connection:
        if settings.has_own_slot:
            slots.drop(connection, settings.slot)
        if not found.has_publication:
            drop_publication(connection, settings.publication)


def _first(connection: Connection, settings: Settings, slot: Slot | None) -> Position:
    if not settings.has_own_slot:
        return Position(lsn_of(settings.start))
    if slot is None:
        slot = slots.create(connection, settings.slot)
    if settings.start == "latest":
        return Position(max(slot.confirmed, slots.log_end(connection)))
    snapshot = take_snapshot(connection, settings.followed(), settings.spool)
    return Position(slot.confirmed, snapshot.id)


class _Vain(NamedTuple):
    """The last look that found nothing: Spark asks a hundred times a second, and each look costs the server."""

    start: int = -1
    end: int = -1
    until: float = 0.0

    def is_enough(self, start: int, end: int, *, is_last: bool) -> bool:
        """Whether another look is not worth it yet. is_last: the stream ends at `end`, and is read up to there."""
        return start == self.start and (end == self.end or (time.monotonic() < self.until and not is_last))


class ChangeStream:
    """The stream of one slot: a snapshot, if it begins with one, then changes, in whole transactions."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._server = Server(settings.dsn)
        self._target: int | None = None
        self._messages = 0
        """Messages of the last micro-batch, which the slot gives again until they are committed."""
        self._vain = _Vain()
        self._snapshots: dict[str, Snapshot] = {}
        self._has_snapshot = True
        """Whether the spool folder may have files of a snapshot."""

    def first(self) -> Position:
        """Where the stream begins. UsageError if it has gone on since, and its checkpoint is missing."""
        position = begin(self._settings)
        slot = self._server.run(lambda connection: slots.find(connection, self._settings.slot))
        if slot is not None and slot.confirmed > position.lsn:
            raise UsageError(
                f"{self._settings.spool} is of a run that has gone on, but its checkpoint is not there. To begin anew, remove"
                f" this folder and drop the slot: SELECT pg_drop_replication_slot('{slot.name}')"
            )
        return position

    def stop_at_present(self) -> None:
        """Lets the stream end where the log ends now."""
        self._target = self._server.run(slots.log_end)

    def end(self) -> Position:
        """The end of the log."""
        return Position(self._server.run(slots.log_end))

    def latest(self, start: Position, max_rows: int) -> Position:
        """How far a micro-batch from `start` on goes: at least one transaction, if there is one; `start` if there is none."""
        if start.snapshot:
            chunks = self._snapshot(start.snapshot).chunks
            if start.chunks < len(chunks):
                return replace(start, chunks=_fill(chunks, start.chunks, max_rows, self._settings.max_bytes))
        found = self._server.run(lambda connection: self._latest_change(connection, start, max_rows))
        if start.snapshot and found >= self._snapshot(start.snapshot).horizon:
            return Position(found)
        return start if found == start.lsn else replace(start, lsn=found)

    def _latest_change(self, connection: Connection, start: Position, max_rows: int) -> int:
        end = slots.log_end(connection) if self._target is None else self._target
        if end <= start.lsn or self._vain.is_enough(start.lsn, end, is_last=self._target is not None):
            return start.lsn
        began, settings = time.monotonic(), self._settings
        self._slot(connection, start)
        up_to = min(end, start.lsn + max(_WINDOW_BYTES, 2 * settings.max_bytes))
        limit = _MESSAGES_PER_ROW * max_rows + self._messages
        while True:
            found, seen, rows, size, messages = start.lsn, 0, 0, 0, 0
            with closing(slots.sizes(connection, settings.slot, settings.publication, up_to, limit)) as transactions:
                for each in transactions:
                    seen += each.messages
                    if each.end_lsn <= start.lsn:
                        continue
                    if messages and (rows + each.rows > max_rows or size + each.bytes > settings.max_bytes):
                        break
                    found, messages = each.end_lsn, messages + each.messages
                    rows, size = rows + each.rows, size + each.bytes
            if messages:
                self._messages = messages
                return found
            if seen < limit and up_to - start.lsn >= _IDLE_BYTES:
                return up_to
            if seen < limit:
                rest = _REST * (time.monotonic() - began) if up_to - start.lsn > _FAR_BYTES else 0.0
                self._vain = _Vain(start.lsn, up_to, time.monotonic() + rest)
                return start.lsn
            # Only what has been read before: look farther.
            limit *= 2

    def parts(self, start: Position, end: Position) -> list[Part]:
        if end.snapshot and end.chunks > start.chunks:
            return [Part(start, end, chunk) for chunk in range(start.chunks, end.chunks)]
        return [Part(start, end)]

    def rows(self, part: Part) -> Iterator[Row]:
        """The rows of a part, in order."""
        return self._changes(part.start, part.end) if part.chunk is None else self._first_rows(part.start, part.chunk)

    def commit(self, end: Position) -> None:
        """Gives up what is before `end`: it will not be asked for again."""
        self._server.run(lambda connection: slots.advance(connection, self._slot(connection, None), end.lsn))
        if not end.snapshot and self._has_snapshot:
            discard_snapshots(self._settings.spool)
            self._has_snapshot = False

    def close(self) -> None:
        self._server.close()

    def _first_rows(self, start: Position, chunk: int) -> Iterator[Row]:
        snapshot = self._snapshot(start.snapshot)
        first = snapshot.first_row(chunk)
        for number, record in enumerate(snapshot.records(chunk), first):
            yield Row(start.lsn, number, record, snapshot.time)

    def _changes(self, start: Position, end: Position) -> Iterator[Row]:
        # Fetched whole before any row is given away: a session that breaks meanwhile may then be opened again.
        yield from self._server.run(lambda connection: self._fetch(connection, start, end))

    def _fetch(self, connection: Connection, start: Position, end: Position) -> list[Row]:
        settings, rows = self._settings, list[Row]()
        self._slot(connection, start)
        snapshot = self._snapshot(start.snapshot) if start.snapshot else None
        recorder = Recorder(settings.followed())
        # Messages before `start` are decoded too: they describe the tables for those behind.
        with closing(slots.messages(connection, settings.slot, settings.publication, end.lsn)) as messages:
            for transaction in recorder.transactions(messages):
                lsn = transaction.end_lsn
                if lsn <= start.lsn or (snapshot is not None and snapshot.has_seen(transaction.xid, lsn)):
                    continue
                if lsn > end.lsn:
                    break
                rows += [
                    Row(lsn, number, record, transaction.time) for number, record in enumerate(transaction.records)
                ]
        return rows

    def _snapshot(self, id: str) -> Snapshot:
        if id not in self._snapshots:
            self._snapshots[id] = Snapshot.load(self._settings.spool, id)
        return self._snapshots[id]

    def _slot(self, connection: Connection, start: Position | None) -> Slot:
        """The slot. UsageError if it is not there, or no longer has what comes after `start`."""
        slot = slots.find(connection, self._settings.slot)
        if slot is None:
            raise UsageError(_lost(self._settings.slot))
        if start is not None and slot.confirmed > start.lsn:
            raise UsageError(
                f"the slot {slot.name!r} stands at {lsn_text(slot.confirmed)}, behind the checkpoint's position"
                f" {lsn_text(start.lsn)}: somebody else has read from it, and changes are lost to this run. Give each run a"
                " slot of its own; to begin anew, drop the slot and remove checkpoint and spool"
            )
        return slot


def _fill(chunks: tuple[tuple[int, int], ...], start: int, max_rows: int, max_bytes: int) -> int:
    """Up to which chunk a micro-batch goes that begins with chunk `start`."""
    rows, size = chunks[start]
    stop = start + 1
    while stop < len(chunks) and rows + chunks[stop][0] <= max_rows and size + chunks[stop][1] <= max_bytes:
        rows, size = rows + chunks[stop][0], size + chunks[stop][1]
        stop += 1
    return stop


def _lost(slot: str) -> str:
    return (
        f"the slot {slot!r} is gone from the server, and with it the changes since the checkpoint. To begin anew, remove"
        " checkpoint and spool"
    )
