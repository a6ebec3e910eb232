"""Changes of the live workload as records of a message queue, and the tables that such records leave."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tidings.bench.live.workload import CATALOG, COLUMNS, WRITERS, Change, Row, Writer

Send = Callable[[list[dict[str, Any]]], object]


def inserts(tables: dict[str, list[Row]]) -> list[dict[str, Any]]:
    return [{"table": name, "op": "insert", "row": row} for name, rows in tables.items() for row in rows]


def records(change: Change) -> list[dict[str, Any]]:
    """A change as records; one that gives a row another key is a delete and an insert."""
    if change.row is None:
        return [{"table": change.table, "op": "delete", "row": {"id": change.key}}]
    if change.key is None:
        return [{"table": change.table, "op": "insert", "row": change.row}]
    if change.key == change.row["id"]:
        return [{"table": change.table, "op": "update", "row": change.row}]
    gone = {"table": change.table, "op": "delete", "row": {"id": change.key}}
    return [gone, {"table": change.table, "op": "insert", "row": change.row}]


def write(seed: int, rate: float, statements: int, is_over: threading.Event, send: Send) -> int:
    """Sends the transactions of all writers in turn, at a steady rate, until it is over. Gives the number of changes.

    A queue has no rollback: transactions that would be rolled back are left out.
    """
    turns = zip(*(Writer(number, seed, statements).transactions() for number in range(WRITERS)), strict=True)
    started, count = time.monotonic(), 0
    for transactions in turns:
        if is_over.wait(max(0.0, count / rate - (time.monotonic() - started))):
            break
        changes = [change for each in transactions if not each.is_rolled_back for change in each.changes]
        send([record for change in changes for record in records(change)])
        count += len(changes)
    return count


def answers(lines: Iterable[bytes], queries: Iterable[str]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of queries, by DuckDB, over the tables that records leave."""
    import duckdb
    import pyarrow as pa

    tables: dict[str, dict[int, Row]] = {name: {} for name in COLUMNS}
    for line in lines:
        record = json.loads(line)
        rows, row = tables[record["table"]], record["row"]
        if record["op"] == "delete":
            del rows[row["id"]]
        else:
            rows[row["id"]] = row
    with duckdb.connect() as session:
        session.execute(CATALOG.replace("TEXT", "VARCHAR"))
        for name, found in tables.items():
            values = pa.Table.from_pylist(list(found.values()))
            session.register("found", values)
            session.execute(f"INSERT INTO {name} SELECT {', '.join(COLUMNS[name])} FROM found")
        for query in queries:
            yield session.execute(query).fetchall()
