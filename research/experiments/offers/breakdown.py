"""From nothing to the match of one publication, step by step, in PostgreSQL and in Tidings (figure 4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any

from research.bench.offers import index
from research.bench.offers.cases import BLOCK, CASES, OffersData
from research.bench.offers.compared import Compared
from research.bench.offers.peers import Postgres, find_postgres, time_matches
from research.experiments.paper import Config, Rows, Say
from research.strategies.offers.relational import POSTGRES, pair_queries
from research.workloads.offers.paper import TABLE
from tidings.bench.report import Heading, short
from tidings.bench.timing import timed
from tidings.families.offers.constraint import Box, boxes_of
from tidings.sql import parse_catalog
from tidings.sql.conditions import ConditionCompiler

if TYPE_CHECKING:
    from research.bench.offers.relational_postgres import RelationalPostgres

_STORED, _STAGED = 20, 20
"""Publications that are stored one by one, and matches in two stages."""


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
    alone = index.measure(data, (1,), Heading("", ""), lambda _: None)
    compared.add("index", alone.pairs)
    return {"index_load_s": alone.load_s, "index_match_s": alone.ms_one / 1e3}


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
        index_s = timed(database.make_indexes)[0].wall
        histogram_s = timed(database.collect_statistics)[0].wall
        some = [(str(number), boxes) for number, boxes in enumerate(data.publications(_STORED).boxes())]
        publication_s = median(timed(database.publish, [each])[0].wall for each in some)
        found = time_matches(database, data)
        # The first time statements are made ready.
        stages = [database.match_in_stages(_queries(database)) for _ in range(1 + _STAGED)][1:]
    compared.add("PostgreSQL", found.pairs)
    return {
        "postgres_generation_s": generation_s,
        "postgres_copy_s": copy_s,
        "postgres_subscription_s": generation_s + copy_s,
        "postgres_publication_s": publication_s,
        "postgres_index_s": index_s,
        "postgres_histogram_s": histogram_s,
        "postgres_preprocessing_s": generation_s + copy_s + publication_s + index_s + histogram_s,
        "postgres_intermediate_s": median(first for first, _, _ in stages),
        "postgres_aggregation_s": median(second for _, second, _ in stages),
        "postgres_match_s": found.ms_one / 1e3,
    }


def _queries(database: RelationalPostgres) -> list[str]:
    return pair_queries(database.pairs_in_use(), POSTGRES)


def _compiled(data: OffersData) -> Iterator[tuple[str, tuple[Box, ...]]]:
    """Subscriptions as boxes: their SQL is made, read and compiled."""
    catalog = parse_catalog(data.paper.catalog_sql)
    table = catalog.table(TABLE)
    compiler = ConditionCompiler(catalog, table)
    for number, sql in enumerate(data.queries()):
        statement = compiler.compile(sql.split(" WHERE ", 1)[1])
        yield str(number), boxes_of(statement.shape, statement.constants, table)
