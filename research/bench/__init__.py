"""Measurements of single families and of relay, with their peers on the same data in the same run.

A bench is one module with a function `run(options, say) -> Report`, and an entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidings.bench import Entry, Options
from tidings.model.errors import UsageError


@dataclass(frozen=True)
class FamilyOptions(Options):
    """With two more, for the bench `offers`."""

    peer_sizes: tuple[int, ...] = ()
    """Numbers of subscriptions at which PostgreSQL is measured; empty: where that takes less than a minute."""
    is_agreement: bool = False
    """Whether all ways of matching are compared on mixed constraints, instead of measuring."""


@dataclass(frozen=True)
class FamilyBench(Entry):
    agreement_sizes: tuple[int, ...] = ()
    """Numbers of subscriptions if `is_agreement`; empty: the two options are not for it."""


BENCHES: Mapping[str, FamilyBench] = {
    "select": FamilyBench("equality and two ranges, against scans, DuckDB and Spark SQL", "research.bench.select"),
    "drift": FamilyBench(
        "who is told when a value moves, against scans, unicast, numpy and PostgreSQL", "research.bench.drift"
    ),
    "topk": FamilyBench(
        "the best rows in a range, against unicast, relaxed ranges, numpy, DuckDB and Spark SQL", "research.bench.topk"
    ),
    "join": FamilyBench(
        "rows of two tables that belong together, against strawmen, numpy, DuckDB and Spark SQL", "research.bench.join"
    ),
    "offers": FamilyBench(
        "constraints matched with constraints, alone and on the whole path, against PostgreSQL and numpy",
        "research.bench.offers",
        has_cases=True,
        agreement_sizes=(10_000,),
    ),
    "mix": FamilyBench(
        "lines in, notification lines out: two workloads of offers, against numpy, DuckDB and Spark SQL",
        "research.bench.mix",
        sizes=(1_000, 10_000, 100_000),
        has_cases=True,
    ),
    "relay": FamilyBench(
        "views that feed views: planning stage by stage, and documents through a plan, against a publisher that does it all",
        "research.bench.relay",
        sizes=(10_000, 100_000),
    ),
}


def find(name: str) -> FamilyBench:
    if name not in BENCHES:
        raise UsageError(
            f"unknown bench {name!r}; there are: {', '.join(BENCHES)}; the whole path is measured by `tidings bench`"
        )
    return BENCHES[name]
