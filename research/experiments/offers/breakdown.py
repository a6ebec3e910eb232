"""From nothing to the match of one publication, step by step, in PostgreSQL and in Tidings (figure 4)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Any

from research.bench.offers import index, inline
from research.bench.offers.cases import BLOCK, CASES, OffersData
from research.bench.offers.compared import Compared
from research.bench.offers.peers import Postgres, find_postgres, time_matches
from research.experiments.paper import Config, Rows, Say
from research.workloads.offers.paper import TABLE
from tidings.bench.report import Heading, short
from tidings.bench.timing import timed
from tidings.families.offers.constraint import Box, boxes_of
from tidings.sql import parse_catalog
from tidings.sql.conditions import ConditionCompiler
from tidings.workloads.subscribers import steady


def run(config: Config, seed: int, say: Say) -> Rows:
    rows = []
    with ExitStack() as stack:
        postgres = find_postgres(stack, say)
        for size in config["sizes"]:
            data = OffersData(CASES["fixed"], size, 1, seed)
            row: dict[str, Any] = {"subscriptions": size}
            compared = Compared(short(size))
            say(f"Tidings, {size:,}")
            row |= _tidings(data, compared)
            if postgres is not None:
                say(f"PostgreSQL, {size:,}")
                row |= _postgres(postgres, data, compared)
            say(compared.note())
            rows.append(row)
    return rows


def _tidings(data: OffersData, compared: Compared) -> dict[str, float]:
    taken, lines = timed(lambda: list(steady(data.queries(), data.size)))
    del lines
    alone = index.measure(data, (1,), Heading("", ""), lambda _: None)
    whole = inline.measure(data, (1,), Heading("", ""), lambda _: None)
    figures = {figure.key: figure.value for figure in whole.figures}
    compared.add("index", alone.pairs)
    compared.add("whole path", whole.pairs)
    return {
        "tidings_generation_s": taken.wall,
        "tidings_copy_s": figures[".door_s"],
        "tidings_subscription_s": taken.wall + figures[".door_s"],
        "tidings_index_s": whole.load_s - figures[".door_s"],
        "tidings_preprocessing_s": taken.wall + whole.load_s,
        "tidings_match_s": whole.ms_one / 1e3,
        "index_load_s": alone.load_s,
        "index_match_s": alone.ms_one / 1e3,
    }


def _postgres(postgres: Postgres, data: OffersData, compared: Compared) -> dict[str, float]:
    generation_s = copy_s = 0.0
    with postgres.database(data) as database:
        compiled = _compiled(data)
        while True:
            made, part = timed(lambda: list(islice(compiled, BLOCK)))
            generation_s += made.wall
            if not part:
                break
            copy_s += timed(database.subscribe, part)[0].wall
        index_s = timed(database.index)[0].wall
        started = time.perf_counter()
        database.publish([("0", next(data.publications(1).boxes()))])
        publication_s = time.perf_counter() - started
        found = time_matches(database, data)
    compared.add("PostgreSQL", found.pairs)
    return {
        "postgres_generation_s": generation_s,
        "postgres_copy_s": copy_s,
        "postgres_subscription_s": generation_s + copy_s,
        "postgres_publication_s": publication_s,
        "postgres_index_s": index_s,
        "postgres_preprocessing_s": generation_s + copy_s + publication_s + index_s,
        "postgres_match_s": found.ms_one / 1e3,
    }


def _compiled(data: OffersData) -> Iterator[tuple[str, tuple[Box, ...]]]:
    """Subscriptions as boxes: their SQL is made, read and compiled."""
    catalog = parse_catalog(data.paper.catalog_sql)
    table = catalog.table(TABLE)
    compiler = ConditionCompiler(catalog, table)
    for number, sql in enumerate(data.queries()):
        statement = compiler.compile(sql.split(" WHERE ", 1)[1])
        yield str(number), boxes_of(statement.shape, statement.constants, table)
