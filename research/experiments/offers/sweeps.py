"""Match cost by subscriptions, and cost and throughput by publications at a time (figures 5 to 7)."""

from __future__ import annotations

from contextlib import ExitStack
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from research.bench.offers.cases import CASES, OffersData
from research.bench.offers.compared import Compared, ordered
from research.bench.offers.index import Loaded, Searched, time_batches
from research.bench.offers.peers import Postgres, find_postgres, time_matches, timed_match
from research.experiments.paper import Config, Rows, Say
from research.strategies.offers.relational import KINDS, POSTGRES, Pair, either_query, pair_queries
from tidings.kernels.arrays import I64

if TYPE_CHECKING:
    from research.bench.offers.relational_postgres import RelationalPostgres

_ONE_BY_ONE, _BATCHES = 1_000, 20
"""Searches that are timed, with one publication and with several."""
_REPEATED = 9
"""Matches that are timed in other ways than as a rule."""
EVERY_PAIR = [
    Pair(kind.name, ours, theirs) for kind in KINDS.values() for ours in kind.operators for theirs in kind.operators
]
"""All combinations of operators that there are queries for."""


def by_subscriptions(config: Config, seed: int, say: Say) -> Rows:
    """Each workload has sizes of its own, in as many steps."""
    with ExitStack() as stack:
        postgres = find_postgres(stack, say)
        rows = []
        for step in range(len(config["sizes"]["fixed"])):
            row: dict[str, Any] = {}
            for key, case in CASES.items():
                data = OffersData(case, config["sizes"][key][step], 1, seed)
                loaded, searched = Loaded.of(data), Searched(data, _ONE_BY_ONE)
                row |= {f"{key}_subscriptions": data.size, **search_figures(loaded, searched, data, f"{key}_")}
                if postgres is not None:
                    say(_place(data))
                    with postgres.loaded(data, _ignore) as database:
                        row |= match_figures(database, loaded, searched, data, config["budget_s"], f"{key}_")
                        row |= {f"{key}_{name}": value for name, value in _other_ways(database, data).items()}
            rows.append(row)
        return rows


def by_batch(config: Config, seed: int, say: Say) -> Rows:
    with ExitStack() as stack:
        postgres = find_postgres(stack, say)
        rows = []
        for count in config["batches"]:
            row: dict[str, Any] = {"batch": count}
            for key, case in CASES.items():
                data = OffersData(case, config["subscriptions"], count, seed)
                row |= _measure(data, postgres, config, f"{key}_", say)
            for name in [name for name in row if name.endswith(("index_ms", "postgres_ms"))]:
                row[name.removesuffix("ms") + "rate"] = 1e3 * count / row[name]
            rows.append(row)
        return rows


def _measure(data: OffersData, postgres: Postgres | None, config: Config, prefix: str, say: Say) -> dict[str, float]:
    """Milliseconds of a match of as many publications as the data are drawn for, and how many pairs it finds."""
    say(_place(data))
    loaded = Loaded.of(data)
    searched = Searched(data, _ONE_BY_ONE if data.per_match == 1 else _BATCHES * data.per_match)
    row = search_figures(loaded, searched, data, prefix)
    if postgres is not None and met_expected(data) <= config["met_max"]:
        with postgres.loaded(data, _ignore) as database:
            row |= match_figures(database, loaded, searched, data, config["budget_s"], prefix)
    return row


def search_figures(loaded: Loaded, searched: Searched, data: OffersData, prefix: str) -> dict[str, float]:
    """What the index takes, and how many pairs it finds at a time."""
    seconds, matches = time_batches(loaded, searched, data.per_match)
    return {f"{prefix}index_ms": 1e3 * median(seconds), f"{prefix}matches": matches / len(seconds)}


def match_figures(
    database: RelationalPostgres, loaded: Loaded, searched: Searched, data: OffersData, budget_s: float, prefix: str
) -> dict[str, float]:
    """What PostgreSQL takes. AssertionError if it does not find the pairs of the index."""
    found = time_matches(database, data, budget_s)
    compared = Compared(_place(data))
    compared.add("PostgreSQL", found.pairs)
    compared.add("index", (found.pairs[0], _pairs(loaded, searched, found.pairs[0])))
    return {f"{prefix}postgres_ms": found.ms_one}


def _other_ways(database: RelationalPostgres, data: OffersData) -> dict[str, float]:
    """Milliseconds of the match of one publication in other circumstances, which the text of the paper tells of."""
    database.publish([("0", next(data.publications(1).boxes()))])
    found, used = {}, database.pairs_in_use()
    for name, pairs in (("used", used), ("every", EVERY_PAIR)):
        found[f"{name}_ms"] = _staged_ms(database, pair_queries(pairs, POSTGRES))
    found["unused_share"] = 1 - len(used) / len(EVERY_PAIR)
    if data.case.key == "fixed":
        found["or_ms"] = _staged_ms(database, [either_query("integer", _of_kind("integer"), POSTGRES)])
    if data.case.key == "conjunctions":
        for name, memory in (("tight", "1MB"), ("roomy", "256MB")):
            database.set_memory(memory)
            found[f"{name}_ms"] = 1e3 * min(timed_match(database)[0] for _ in range(3))
    else:
        found["met_ms"] = _ms(database)
        database.publish([("0", next(data.stranger().boxes()))])
        found["stranger_ms"] = _ms(database)
    return found


def _of_kind(name: str) -> list[Pair]:
    return [pair for pair in EVERY_PAIR if pair.kind == name]


def _staged_ms(database: RelationalPostgres, queries: list[str]) -> float:
    """Median of several matches in two stages. The first ones make the statements ready, and are not counted."""
    seconds = [sum(database.match_in_stages(queries)[:2]) for _ in range(2 + _REPEATED if len(queries) > 1 else 5)]
    return 1e3 * median(seconds[2:])


def _ms(database: RelationalPostgres) -> float:
    return 1e3 * median([timed_match(database)[0] for _ in range(2 + _REPEATED)][2:])


def met_expected(data: OffersData) -> float:
    """Expected number of pairs of predicates that meet, which the query counts: every second one in conjunctions."""
    if data.case.key == "conjunctions":
        return data.size * data.per_match * len(data.subscriptions.axes) / 2
    return data.paper.expected_matches


def _pairs(loaded: Loaded, searched: Searched, count: int) -> I64:
    """Of the first publications."""
    hits = np.concatenate([searched.search(loaded.index, queries) for queries in searched.batches(count)[:1]])
    return ordered(hits[:, 0].copy(), hits[:, 1].copy())


def _place(data: OffersData) -> str:
    return f"{data.case.label}, {data.size:,} subscriptions, {data.per_match:,} at a time"


def _ignore(_: str) -> None:
    pass


def warm_up() -> None:
    """Compiles kernels."""
    for case in CASES.values():
        data = OffersData(case, 1_000, 1, 0)
        searched = Searched(data, 100)
        time_batches(Loaded.of(data), searched, 1)
