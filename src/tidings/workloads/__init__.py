"""Seeded workloads in the file contract: realistic data for demos, tests and experiments.

A workload is one module with a function `(seed, rows, subscriptions, changes) -> WorkloadLines`, and an entry here. One of
other files has a function `(seed, **options) -> tuple[Output, ...]`, and its entry names the options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tidings.model.errors import UsageError
from tidings.workloads.workload import Generator, Output, WorkloadLines

__all__ = ["DEFAULTS", "WORKLOADS", "Entry", "Output", "WorkloadLines", "find"]

DEFAULTS: Mapping[str, int | str | None] = {
    "subscriptions": 100_000,
    "changes": 100_000,
    "rows": 0,
    "views": 100_000,
    "distinct": None,
    "values": 50,
    "sites": None,
    "capacity": None,
    "documents": 200,
    "format": "xml",
}
"""What options of workloads are unless they are given."""


@dataclass(frozen=True)
class Entry:
    """A workload in the registry; its module is imported only when it is used."""

    description: str
    function: str
    """`module:function`, the module relative to this package."""
    options: tuple[str, ...] = ("subscriptions", "changes", "rows")
    """Of DEFAULTS, which the function takes beside the seed."""

    def load(self) -> Generator:
        generator: Generator = self._load()
        return generator

    def outputs(self, seed: int, given: Mapping[str, int | str]) -> tuple[Output, ...]:
        """The files of the workload. given: among the options above."""
        values = {option: given.get(option, DEFAULTS[option]) for option in self.options}
        made: WorkloadLines | tuple[Output, ...] = self._load()(seed=seed, **values)
        return made if isinstance(made, tuple) else _outputs(made, values)

    def _load(self) -> Any:
        module, _, name = self.function.partition(":")
        return getattr(import_module(f"{__name__}.{module}"), name)


def _outputs(made: WorkloadLines, values: Mapping[str, Any]) -> tuple[Output, ...]:
    return (
        Output(None, 0, {"catalog.sql": iter(made.catalog_sql.encode().splitlines())}),
        Output("lines of subscriptions", values["subscriptions"], {"subscriptions.jsonl": made.subscriptions}),
        Output("lines of changes", values["changes"], {"changes.jsonl": made.changes}),
    )


WORKLOADS: Mapping[str, Entry] = {
    "market": Entry(
        "stocks, reviews, analysts and offers with skewed popularity; screens, alerts and watchlists as subscriptions",
        "market:market",
    ),
    "auctions": Entry(
        "people, auctions and bids that all change; searches, IN lists, joins of two and three tables and leaderboards",
        "auctions:auctions",
    ),
    "shapes": Entry(
        "homes on one table, and saved searches of a thousand different shapes",
        "shapes:shapes",
    ),
    "drift-radii": Entry(
        "a value that walks, and subscriptions that all have different radii",
        "drift.radii:drift_radii",
    ),
    "drift-same": Entry(
        "a value that walks, and subscriptions of one radius that come at different values",
        "drift.same:drift_same",
    ),
    "drift-all": Entry(
        "a price that walks, and subscriptions of any radius, mostly whole dollars, that come at any moment",
        "drift.all:drift_all",
    ),
    "drift-stocks": Entry(
        "daily prices of five real stocks, replayed, with subscriptions as in drift-all; needs the extra workloads",
        "drift.stocks:drift_stocks",
    ),
    "drift-mix": Entry(
        "many items that come and go, and watchers who do too, with every kind of movement",
        "drift.mix:drift_mix",
    ),
    "topk-uniform": Entry(
        "the ten best rows in a range: rows and ranges anywhere, scores that jump",
        "topk.cases:topk_uniform",
    ),
    "topk-clustered": Entry(
        "the same with rows in ten clusters and ranges in ten others",
        "topk.cases:topk_clustered",
    ),
    "topk-correlated": Entry(
        "the same with rows in ten clusters and short ranges around them",
        "topk.cases:topk_correlated",
    ),
    "topk-anticorrelated": Entry(
        "the same with rows in ten clusters and short ranges between them",
        "topk.cases:topk_anticorrelated",
    ),
    "topk-steps": Entry(
        "the ten best rows in a range, with scores that move a little at a time",
        "topk.cases:topk_steps",
    ),
    "topk-stocks": Entry(
        "the ten cheapest of 2,031 made-up companies, whose prices move as five real stocks did; needs the extra workloads",
        "topk.stocks:topk_stocks",
    ),
    "join-binary": Entry(
        "pairs of rows of two tables with a range on each: rows come and go in one, ranges are around hot spots",
        "join.workloads:join_binary",
    ),
    "join-payload": Entry(
        "the same with few rows in the table that changes, and a kilobyte of text in every row",
        "join.workloads:join_payload",
    ),
    "join-multi": Entry(
        "joins of two, three and four tables, all of which change",
        "join.workloads:join_multi",
    ),
    "join-star": Entry(
        "sales joined with customers, products and stores: facts come and go, dimensions change now and then",
        "join.workloads:join_star",
    ),
    "join-stocks": Entry(
        "stocks and their reviews, price-earnings ratios that move as five real stocks did; needs the extra workloads",
        "join.stocks:join_stocks",
    ),
    "offers-fixed": Entry(
        "offers and subscriptions of one equality each, drawn such that an offer matches five subscriptions",
        "offers.paper:offers_fixed",
    ),
    "offers-proportional": Entry(
        "the same, but an offer matches one in a hundred subscriptions",
        "offers.paper:offers_proportional",
    ),
    "offers-conjunctions": Entry(
        "offers and subscriptions of many equalities, each met by every second subscription and all of them by about five",
        "offers.paper:offers_conjunctions",
    ),
    "offers-geometric": Entry(
        "offers that are boxes in the unit square and subscriptions that are points of it; a box has five of them",
        "offers.paper:offers_geometric",
    ),
    "offers-marketplace": Entry(
        "offers and wishes on one to three of fifty attributes, with all kinds of predicates; both come and go, offers expire",
        "offers.marketplace:offers_marketplace",
    ),
    "offers-places": Entry(
        "couriers, shops and depots that deliver somewhere, and people who look for what reaches them, at what price",
        "offers.places:offers_places",
    ),
    "views": Entry(
        "tree patterns over documents of an auction site, distinct or with duplicates, and the sites that hold them",
        "relay.outputs:views",
        ("views", "distinct", "values", "format", "sites", "capacity"),
    ),
    "documents": Entry(
        "documents of an auction site, of 10 to 40 kB, in which most of these views find something; XML or JSON",
        "relay.outputs:documents",
        ("documents", "values", "format"),
    ),
}


def find(name: str) -> Entry:
    if name not in WORKLOADS:
        raise UsageError(f"unknown workload {name!r}; there are: {', '.join(WORKLOADS)}")
    return WORKLOADS[name]
