"""Match cost by subscriptions, and cost and throughput by publications at a time (figures 5 to 7)."""

from __future__ import annotations

from contextlib import ExitStack
from statistics import median
from typing import Any

import numpy as np

from research.bench.offers.cases import CASES, OffersData
from research.bench.offers.compared import Compared, ordered
from research.bench.offers.index import Loaded, Searched, time_batches
from research.bench.offers.peers import Postgres, find_postgres
from research.experiments.paper import Config, Rows, Say
from tidings.kernels.arrays import I64

_ONE_BY_ONE, _BATCHES = 1_000, 20
"""Searches that are timed, with one publication and with several."""


def by_subscriptions(config: Config, seed: int, say: Say) -> Rows:
    with ExitStack() as stack:
        postgres = find_postgres(stack, say)
        rows = []
        for size in config["sizes"]:
            row: dict[str, Any] = {"subscriptions": size}
            for key, case in CASES.items():
                row |= _measure(OffersData(case, size, 1, seed), postgres, config["met_max"], f"{key}_", say)
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
                row |= _measure(data, postgres, config["met_max"], f"{key}_", say)
            for name in [name for name in row if name.endswith("_ms")]:
                row[name.removesuffix("ms") + "rate"] = 1e3 * count / row[name]
            rows.append(row)
        return rows


def _measure(data: OffersData, postgres: Postgres | None, met_max: float, prefix: str, say: Say) -> dict[str, float]:
    """Milliseconds of a match of as many publications as the data are drawn for, and how many pairs it finds."""
    place = f"{data.case.label}, {data.size:,} subscriptions, {data.per_match:,} at a time"
    say(place)
    loaded = Loaded.of(data)
    searched = Searched(data, _ONE_BY_ONE if data.per_match == 1 else _BATCHES * data.per_match)
    seconds, matches = time_batches(loaded, searched, data.per_match)
    row = {f"{prefix}index_ms": 1e3 * median(seconds), f"{prefix}matches": matches / len(seconds)}
    if postgres is not None and met_expected(data) <= met_max:
        found = postgres.figures(data, lambda text: say(f"{place}: {text}"))
        compared = Compared(place)
        compared.add("PostgreSQL", found.pairs)
        compared.add("index", (found.pairs[0], _pairs(loaded, searched, found.pairs[0])))
        row[f"{prefix}postgres_ms"] = found.ms_one
    return row


def met_expected(data: OffersData) -> float:
    """Expected number of pairs of predicates that meet, which the query counts: every second one in conjunctions."""
    if data.case.key == "conjunctions":
        return data.size * data.per_match * len(data.subscriptions.axes) / 2
    return data.paper.expected_matches


def _pairs(loaded: Loaded, searched: Searched, count: int) -> I64:
    """Of the first publications."""
    hits = np.concatenate([searched.search(loaded.index, queries) for queries in searched.batches(count)[:1]])
    return ordered(hits[:, 0].copy(), hits[:, 1].copy())


def warm_up() -> None:
    """Compiles kernels."""
    for case in CASES.values():
        data = OffersData(case, 1_000, 1, 0)
        searched = Searched(data, 100)
        time_batches(Loaded.of(data), searched, 1)
