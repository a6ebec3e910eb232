"""The obvious ways to match constraints: the relational architecture in PostgreSQL, and a scan of numpy columns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from research.bench.offers.cases import OffersData
from research.bench.offers.compared import ordered
from research.bench.offers.index import Found
from research.workloads.offers.paper import TABLE
from tidings.bench import Say
from tidings.bench.postgres import dsn, find_server, running
from tidings.kernels.arrays import I64
from tidings.sql import parse_catalog

if TYPE_CHECKING:
    from research.bench.offers.relational_postgres import RelationalPostgres

BUDGET_S = 6.0
"""Seconds of matching, for each peer and size."""
_PUBLICATIONS = 50
_BATCHES = 5
"""Batches that are matched, if they have more than one publication."""


def find_postgres(stack: ExitStack, say: Say) -> Postgres | None:
    """A server of our own, which `stack` stops; None if there is none to start, or no driver."""
    programs = find_server()
    if programs is None or find_spec("psycopg") is None:
        return None
    say("starting PostgreSQL")
    return Postgres(stack.enter_context(running(programs)))


class Postgres:
    """A server. Each measurement has a database of its own there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._databases = 0

    def database(self, data: OffersData) -> AbstractContextManager[RelationalPostgres]:
        """A new database for the constraints of a workload, still empty; dropped afterwards."""
        return self.empty(data.paper.catalog_sql)

    @contextmanager
    def empty(self, catalog_sql: str) -> Iterator[RelationalPostgres]:
        """The same for the table of a catalog."""
        import psycopg

        from research.bench.offers.relational_postgres import RelationalPostgres

        self._databases += 1
        name = f"offers_{self._databases}"
        with psycopg.connect(dsn(self._folder), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}")
            with psycopg.connect(dsn(self._folder), dbname=name, autocommit=True) as connection:
                yield RelationalPostgres(connection, parse_catalog(catalog_sql).table(TABLE))
            admin.execute(f"DROP DATABASE {name}")

    @contextmanager
    def loaded(self, data: OffersData, say: Say) -> Iterator[RelationalPostgres]:
        """The same with all subscriptions, ready to be matched."""
        with self.database(data) as database:
            say("PostgreSQL: loading")
            database.subscribe((str(number), boxes) for number, boxes in enumerate(data.subscriptions.boxes()))
            database.index()
            say("PostgreSQL: matching")
            yield database

    def figures(self, data: OffersData, say: Say) -> Found:
        """As many publications at a time as they are drawn for: the time of the match alone, as the literature has it."""
        started = time.perf_counter()
        with self.loaded(data, say) as database:
            load_s = time.perf_counter() - started
            found = time_matches(database, data)
        found.load_s = load_s
        return found


def time_matches(database: RelationalPostgres, data: OffersData, budget_s: float | None = None) -> Found:
    """Median time of a match of `per_match` publications, until the budget is spent, and what it finds."""
    budget_s = budget_s or BUDGET_S
    size = data.per_match
    batches = _PUBLICATIONS if size == 1 else _BATCHES
    given = data.publications(batches * size).boxes()
    seconds: list[float] = []
    pairs: list[tuple[int, int]] = []
    for start in range(0, batches * size, size):
        database.publish([(str(start + i), boxes) for i, boxes in enumerate(islice(given, size))])
        taken, found = timed_match(database)
        if not start and taken < budget_s / _BATCHES:
            # Plans are cached from the second time on.
            taken, found = timed_match(database)
        seconds.append(taken)
        pairs += [(int(p), int(s)) for p, s in found]
        if sum(seconds) + taken > budget_s:
            break
    return Found(1e3 * median(seconds), (len(seconds) * size, _array(pairs)))


def timed_match(database: RelationalPostgres) -> tuple[float, list[tuple[str, str]]]:
    """(seconds, pairs of ids)."""
    started = time.perf_counter()
    found = database.match()
    return time.perf_counter() - started, found


def scan_figures(data: OffersData) -> Found:
    """All subscriptions compared with a publication, a column at a time, until none is left."""
    subscriptions, publications = data.subscriptions, data.publications(_PUBLICATIONS)
    lo, hi = (np.asfortranarray(side) for side in (subscriptions.lo, subscriptions.hi))
    seconds: list[float] = []
    parts: list[I64] = []
    count = 0
    for number in range(_PUBLICATIONS):
        started = time.perf_counter()
        met = np.ones(data.size, np.bool_)
        for axis in subscriptions.axes:
            met &= (lo[:, axis] <= publications.hi[number, axis]) & (hi[:, axis] >= publications.lo[number, axis])
        owners = np.flatnonzero(met)
        seconds.append(time.perf_counter() - started)
        parts.append(ordered(np.full(len(owners), number), owners))
        count = number + 1
        if sum(seconds) > BUDGET_S / 3:
            break
    return Found(1e3 * median(seconds), (count, np.concatenate(parts)))


def _array(pairs: list[tuple[int, int]]) -> I64:
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return ordered(found[:, 0], found[:, 1])
