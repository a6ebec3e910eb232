"""The paper's architecture in a main-memory database (section 6): SQLite with all data in memory, beside PostgreSQL.

The paper had FirstSQL, a database in Java, which is no longer to be had. Matching is the same query over the same tables.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from contextlib import ExitStack, closing
from statistics import median
from typing import Any

from research.bench.offers.cases import CASES, OffersData
from research.bench.offers.peers import find_postgres, time_matches
from research.experiments.paper import Config, Rows, Say
from research.strategies.offers.relational import (
    KINDS,
    PUBLICATIONS,
    SQLITE,
    SUBSCRIPTIONS,
    Pair,
    Side,
    match_query,
    reify,
)
from research.workloads.offers.paper import TABLE
from tidings.families.offers.constraint import Box
from tidings.sql import parse_catalog

SUPPORTED = ("fixed", "proportional", "conjunctions")
"""Workloads without boxes, which this database has not."""
_KIND = KINDS["integer"]
_EQUAL = match_query([Pair("integer", "=", "=")], SQLITE)
_MATCHES = 50


def run(config: Config, seed: int, say: Say) -> Rows:
    rows = []
    with ExitStack() as stack:
        postgres = find_postgres(stack, say)
        for size in config["sizes"]:
            row: dict[str, Any] = {"subscriptions": size}
            for key in SUPPORTED:
                data = OffersData(CASES[key], size, 1, seed)
                say(f"{key}, {size:,}")
                with closing(_loaded(data)) as database:
                    row[f"{key}_memory_ms"], found = _match(database, data, config["budget_s"])
                if postgres is not None:
                    with postgres.loaded(data, lambda _: None) as peer:
                        theirs = time_matches(peer, data, config["budget_s"])
                    row[f"{key}_postgres_ms"] = theirs.ms_one
                    first = {(p, s) for p, s in theirs.pairs[1].tolist() if p < len(found)}
                    assert first <= {(p, s) for p, met in enumerate(found) for s in met}, f"{key}: pairs differ"
            rows.append(row)
        data = OffersData(CASES["fixed"], config["held"], 1, seed)
        row = {"subscriptions": data.size}
        with closing(_loaded(data)) as database:
            row["held_bytes"] = _pragma(database, "page_count") * _pragma(database, "page_size")
        if postgres is not None:
            with postgres.loaded(data, lambda _: None) as peer:
                peer.publish([("0", next(data.publications(1).boxes()))])
                row["touched_bytes"] = peer.touched_bytes()
        rows.append(row)
    return rows


def _loaded(data: OffersData) -> sqlite3.Connection:
    """A database in memory with the subscriptions, indexed."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    for side in (PUBLICATIONS, SUBSCRIPTIONS):
        values = ", ".join(f"{column} {type}" for column, type in SQLITE.columns(_KIND))
        key = f"{side.id} INTEGER, {side.disjunct} INTEGER"
        database.execute(f"CREATE TABLE {side.master} ({key}, count INTEGER)")
        database.execute(f"CREATE TABLE {side.predicates('integer')} ({key}, field INTEGER, op TEXT, {values})")
    database.execute("BEGIN")
    _add(database, data, SUBSCRIPTIONS, data.subscriptions.boxes())
    database.execute("COMMIT")
    s = SUBSCRIPTIONS
    database.execute(f"CREATE INDEX by_key ON {s.master} ({s.id}, {s.disjunct}, count)")
    database.execute(f"CREATE INDEX by_value ON integer_subs (op, field, val, upper, {s.id}, {s.disjunct})")
    database.execute("ANALYZE")
    return database


def _add(database: sqlite3.Connection, data: OffersData, side: Side, boxes: Iterable[tuple[Box]]) -> None:
    rows = reify(enumerate(boxes), parse_catalog(data.paper.catalog_sql).table(TABLE))
    database.executemany(f"INSERT INTO {side.master} VALUES (?, ?, ?)", rows.masters)
    places = ", ".join("?" * (4 + len(_KIND.columns)))
    database.executemany(f"INSERT INTO {side.predicates('integer')} VALUES ({places})", rows.predicates["integer"])


def _match(database: sqlite3.Connection, data: OffersData, budget_s: float) -> tuple[float, list[set[int]]]:
    """(median milliseconds of the match of a publication, the subscriptions that each meets)."""
    seconds: list[float] = []
    found: list[set[int]] = []
    for boxes in data.publications(_MATCHES).boxes():
        for side in (PUBLICATIONS.master, PUBLICATIONS.predicates("integer")):
            database.execute(f"DELETE FROM {side}")
        _add(database, data, PUBLICATIONS, [boxes])
        # The best plan depends on how many there are.
        database.execute("ANALYZE integer_pubs")
        started = time.perf_counter()
        pairs = database.execute(_EQUAL).fetchall()
        seconds.append(time.perf_counter() - started)
        found.append({s for _, s in pairs})
        if sum(seconds) > budget_s:
            break
    return 1e3 * median(seconds), found


def _pragma(database: sqlite3.Connection, name: str) -> int:
    (value,) = database.execute(f"PRAGMA {name}").fetchone()
    return int(value)
