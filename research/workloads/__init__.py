"""The workloads of published work, and others made to measure or to test single families, in the file contract.

A workload is one module with a function `(seed, rows, subscriptions, changes) -> WorkloadLines`, and an entry here.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidings.model.errors import UsageError
from tidings.workloads import Entry

WORKLOADS: Mapping[str, Entry] = {
    "drift-radii": Entry(
        "a value that walks, and subscriptions that all have different radii",
        "research.workloads.drift.radii:drift_radii",
    ),
    "drift-same": Entry(
        "a value that walks, and subscriptions of one radius that come at different values",
        "research.workloads.drift.same:drift_same",
    ),
    "drift-all": Entry(
        "a price that walks, and subscriptions of any radius, mostly whole dollars, that come at any moment",
        "research.workloads.drift.all:drift_all",
    ),
    "drift-stocks": Entry(
        "daily prices of five real stocks, replayed, with subscriptions as in drift-all; needs the extra research",
        "research.workloads.drift.stocks:drift_stocks",
    ),
    "drift-mix": Entry(
        "many items that come and go, and watchers who do too, with every kind of movement",
        "research.workloads.drift.mix:drift_mix",
    ),
    "topk-uniform": Entry(
        "the ten best rows in a range: rows and ranges anywhere, scores that jump",
        "research.workloads.topk.cases:topk_uniform",
    ),
    "topk-clustered": Entry(
        "the same with rows in ten clusters and ranges in ten others",
        "research.workloads.topk.cases:topk_clustered",
    ),
    "topk-correlated": Entry(
        "the same with rows in ten clusters and short ranges around them",
        "research.workloads.topk.cases:topk_correlated",
    ),
    "topk-anticorrelated": Entry(
        "the same with rows in ten clusters and short ranges between them",
        "research.workloads.topk.cases:topk_anticorrelated",
    ),
    "topk-steps": Entry(
        "the ten best rows in a range, with scores that move a little at a time",
        "research.workloads.topk.cases:topk_steps",
    ),
    "topk-stocks": Entry(
        "the ten cheapest of 2,031 made-up companies, whose prices move as five real stocks did; needs the extra research",
        "research.workloads.topk.stocks:topk_stocks",
    ),
    "join-binary": Entry(
        "pairs of rows of two tables with a range on each: rows come and go in one, ranges are around hot spots",
        "research.workloads.join.workloads:join_binary",
    ),
    "join-payload": Entry(
        "the same with few rows in the table that changes, and a kilobyte of text in every row",
        "research.workloads.join.workloads:join_payload",
    ),
    "join-multi": Entry(
        "joins of two, three and four tables, all of which change",
        "research.workloads.join.workloads:join_multi",
    ),
    "join-star": Entry(
        "sales joined with customers, products and stores: facts come and go, dimensions change now and then",
        "research.workloads.join.workloads:join_star",
    ),
    "join-stocks": Entry(
        "stocks and their reviews, price-earnings ratios that move as five real stocks did; needs the extra research",
        "research.workloads.join.stocks:join_stocks",
    ),
    "offers-fixed": Entry(
        "offers and subscriptions of one equality each, drawn such that an offer matches five subscriptions",
        "research.workloads.offers.paper:offers_fixed",
    ),
    "offers-proportional": Entry(
        "the same, but an offer matches one in a hundred subscriptions",
        "research.workloads.offers.paper:offers_proportional",
    ),
    "offers-conjunctions": Entry(
        "offers and subscriptions of many equalities, each met by every second subscription and all of them by about five",
        "research.workloads.offers.paper:offers_conjunctions",
    ),
    "offers-geometric": Entry(
        "offers that are boxes in the unit square and subscriptions that are points of it; a box has five of them",
        "research.workloads.offers.paper:offers_geometric",
    ),
    "offers-marketplace": Entry(
        "offers and wishes on one to three of fifty attributes, with all kinds of predicates; both come and go, offers expire",
        "research.workloads.offers.marketplace:offers_marketplace",
    ),
    "offers-places": Entry(
        "couriers, shops and depots that deliver somewhere, and people who look for what reaches them, at what price",
        "research.workloads.offers.places:offers_places",
    ),
}


def find(name: str) -> Entry:
    if name not in WORKLOADS:
        raise UsageError(
            f"unknown workload {name!r}; there are: {', '.join(WORKLOADS)}; `tidings workload list` has those of the product"
        )
    return WORKLOADS[name]
