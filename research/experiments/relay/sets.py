"""View sets, which views embed in which, and the rewritings that follow (table 2)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from research.bench.relay.data import ViewSet, documents
from research.bench.relay.stages import Prepared, peak_bytes, prepare
from research.experiments.paper import Config, Rows, Say
from tidings.relay.files import pattern_of
from tidings.relay.planner import source_costs
from tidings.relay.rewriting.rewritings import rewritings_of

SAMPLES = 20
"""Documents by which sizes of messages are measured."""


@lru_cache(maxsize=2)
def prepared(views: ViewSet, seed: int, rewritings_max: int) -> Prepared:
    """Of a view set; kept for the next experiment about it."""
    texts = [pattern.text for pattern in views.patterns(seed)]
    return prepare(texts, documents(seed, 1, SAMPLES), rewritings_max)


def view_set(config: Config) -> ViewSet:
    return ViewSet(config["views"], config.get("distinct", 0))


def name_of(views: ViewSet) -> str:
    """Of a set: what it is called in rows."""
    return f"{views.views:,} views, {views.distinct or views.views:,} distinct"


def run(config: Config, seed: int, say: Say) -> Rows:
    rows = []
    for each in config["sets"]:
        views = view_set(each)
        say(name_of(views))
        found = prepared(views, seed, config["rewritings"])
        rows.append({"set": name_of(views)} | _view_figures(found) | _graph_figures(found, config["rewritings"]))
    return rows


def _view_figures(found: Prepared) -> dict[str, Any]:
    nodes = [node for view in found.views for node in pattern_of(view).nodes]
    predicates = sum(node.constant is not None for node in nodes)
    return {
        "views": len(found.views),
        "distinct": len(found.patterns),
        "predicates_per_view": predicates / len(found.views),
        "predicates_per_node": predicates / len(nodes),
        "nodes_per_view": len(nodes) / len(found.views),
        "return_nodes_per_view": sum(bool(node.returns) for node in nodes) / len(found.views),
    }


def _graph_figures(found: Prepared, rewritings_max: int) -> dict[str, Any]:
    rewritings, views = found.rewritings, len(found.views)
    # Equal views are planned as one: what each has counts as often as there are such views.
    times = np.bincount(found.groups.query_of)
    of_query = np.diff(rewritings.first)
    each = np.repeat(times, of_query)
    count = int(each.sum())
    inputs = int((each * np.diff(rewritings.first_source)).sum())
    without = np.flatnonzero(np.diff(rewritings.first) == 0)
    # Equal views embed in each other.
    single = [query for query in without.tolist() if found.groups.sizes[query] == 1]
    alone = sum(not _embedded(found, query, rewritings_max) for query in single)
    seconds = found.seconds
    return {
        "embeddings": rewritings.embedded,
        "dropped": rewritings.dropped,
        "embedding_share": 100 * (1 - alone / views),
        "rewritings": count,
        "edges": count + inputs + views,
        # All of equal views but one are fed by each other.
        "rewritten_views": views - len(without),
        "inputs_per_rewriting": inputs / count,
        "uses_per_view": inputs / views,
        "embeddings_and_rewritings_s": seconds["table"].wall + seconds["rewritings"].wall,
        "embeddings_and_rewritings_cpu_s": seconds["table"].cpu + seconds["rewritings"].cpu,
        "all_cpu_s": sum(each.cpu for each in seconds.values()),
        "parse_s": seconds["parse"].wall + seconds["group"].wall,
        "sizes_s": seconds["sizes"].wall,
        "peak_mb": peak_bytes() / 1e6,
    }


def _embedded(found: Prepared, query: int, rewritings_max: int) -> int:
    """How many others embed in a query."""
    of = rewritings_of(found.table, np.array([query]), source_costs(found.sizes), rewritings_max)
    return of.embedded
