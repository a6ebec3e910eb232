"""The replication slot: a place in the server's log from which changes are read. The server keeps what is behind it.

Reading does not move the slot (`peek`): what was read can be read again until the slot is advanced.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from tidings.model.errors import UsageError
from tidings.sources.postgres.server import Connection, driver
from tidings.sources.postgres.settings import lsn_of, lsn_text

_CREATE_SECONDS = 60
_FIND = """
SELECT plugin, slot_type, database = current_database(), wal_status, confirmed_flush_lsn::text, active
FROM pg_replication_slots WHERE slot_name = %s
"""
_PEEK = "pg_logical_slot_peek_binary_changes(%s, %s, %s, 'proto_version', '1', 'publication_names', %s)"
_FETCH = 5_000


class Slot(NamedTuple):
    """confirmed: up to here changes are done with, and can no longer be read."""

    name: str
    confirmed: int


class Sizes(NamedTuple):
    """A transaction, as far as it counts for the size of a micro-batch."""

    end_lsn: int
    rows: int
    bytes: int
    messages: int


def find(connection: Connection, name: str) -> Slot | None:
    """The slot; None if there is none. UsageError if it is of another kind, or the server has removed its log."""
    found = connection.execute(_FIND, (name,)).fetchone()
    if found is None:
        return None
    plugin, kind, is_here, status, confirmed, _ = found
    if kind != "logical" or plugin != "pgoutput" or not is_here:
        raise UsageError(
            f"the slot {name!r} is {kind}{f', of {plugin}' if plugin else ''}{'' if is_here else ', of another database'}:"
            " name another one (option slot)"
        )
    if status == "lost":
        raise UsageError(
            f"the server has removed the log that the slot {name!r} needs (max_slot_wal_keep_size): changes are lost. Drop the"
            f" slot (SELECT pg_drop_replication_slot('{name}')), remove checkpoint and spool, and begin anew"
        )
    return Slot(name, lsn_of(confirmed))


def create(connection: Connection, name: str) -> Slot:
    """A new slot, which begins now. Waits for transactions that write at this moment."""
    psycopg = driver()
    connection.execute(f"SET statement_timeout = '{_CREATE_SECONDS}s'")
    try:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
    except psycopg.errors.QueryCanceled:
        raise UsageError(
            f"the slot {name!r} could not be created within {_CREATE_SECONDS} s: it waits for open transactions to end."
            " Look for them: SELECT pid, xact_start, query FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
        ) from None
    finally:
        connection.execute("SET statement_timeout = 0")
    found = find(connection, name)
    assert found is not None
    return found


def drop(connection: Connection, name: str) -> None:
    if find(connection, name) is not None:
        connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))


def messages(connection: Connection, slot: str, publication: str, up_to: int) -> Generator[bytes, None, None]:
    """All messages from the slot's place up to a position of the log."""
    with connection.transaction(), connection.cursor("tidings_changes", binary=True) as cursor:
        cursor.itersize = _FETCH
        cursor.execute(f"SELECT data FROM {_PEEK}", (slot, lsn_text(up_to), None, _quoted(publication)))
        for (data,) in cursor:
            yield data


def sizes(
    connection: Connection, slot: str, publication: str, up_to: int, messages_max: int
) -> Generator[Sizes, None, None]:
    """Sizes of the transactions from the slot's place on. Stops behind messages_max, with the transaction they end in."""
    query = f"SELECT lsn - '0/0'::pg_lsn, get_byte(data, 0), octet_length(data) FROM {_PEEK}"
    rows = size = count = 0
    with connection.transaction(), connection.cursor("tidings_sizes") as cursor:
        cursor.itersize = _FETCH
        cursor.execute(query, (slot, lsn_text(up_to), messages_max, _quoted(publication)))
        for lsn, kind, length in cursor:
            count += 1
            size += length
            rows += kind in b"IUDT"
            if kind == 0x43:  # C: commit
                yield Sizes(int(lsn), rows, size, count)
                rows = size = count = 0


def advance(connection: Connection, slot: Slot, to: int) -> None:
    """Gives up what is before a position of the log."""
    if to > slot.confirmed:
        connection.execute("SELECT pg_replication_slot_advance(%s, %s)", (slot.name, lsn_text(to)))


def log_end(connection: Connection) -> int:
    """Up to here the log is safely written, and can be read."""
    return lsn_of(connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()[0])


def _quoted(publication: str) -> str:
    """A name as the plugin's list of publications takes it."""
    doubled = publication.replace('"', '""')
    return f'"{doubled}"'
