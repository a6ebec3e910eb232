"""Documents through plans on machines in several cities: levels, view latency and document delivery time (figures 9 to 11).

Documents follow each other before the last views have the ones before: they share machines and lines. What the publisher takes
to match a document is not counted, as published; it is measured apart. A view is done when it has its matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from research.bench.relay.data import documents
from research.bench.relay.stages import Prepared, plan, prepare
from research.experiments.paper import Config, Rows, Say
from research.experiments.relay.grown import grown_views
from research.experiments.relay.machines import Machines, draw_machines
from research.experiments.relay.plans import certificate, level_figures, limit
from research.experiments.relay.simulation import Delivery, Deployment, deliver, deploy
from research.experiments.relay.work import MessageTable, NodeWork, Speed, TableWork, fit, tabulate
from tidings.bench.timing import timed
from tidings.kernels.arrays import I64
from tidings.relay.document import Document
from tidings.relay.files import pattern_of
from tidings.relay.pattern import Pattern
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.runtime.matching import match_all_patterns
from tidings.relay.runtime.pattern_query import PatternQuery

_SAMPLES = 20


def run(config: Config, seed: int, say: Say) -> Rows:
    say("views, sizes, rewritings")
    published = documents(seed, 1, config["documents"], config["values"])
    found = prepare(_texts(config, seed), published[:_SAMPLES])
    say("messages of all views about all documents")
    site = _Site(found, published, config, seed)
    rows = []
    for capacity in config["capacities"]:
        say(f"capacity {capacity}: plan")
        outcome = plan(found, limit(capacity), config["publisher_capacity"], slack=config["slack"])
        row: dict[str, Any] = {
            "capacity": capacity,
            "unfed": found.unfed,
            "publisher_feeds": outcome.least_use.feeds,
            "gap_percent": 100 * outcome.solution.gap,
            "use_increase": 100 * outcome.use_change,
            "estimated_reduction": -100 * outcome.latency_change,
            "matched_share": 100 * site.matched_share,
            "matching_ms": site.matching_ms(outcome.least_use),
            "matching_all_ms": site.matching_all_ms,
        }
        row |= certificate(outcome)
        row |= {f"{name}_levels": counts for name, counts in level_figures(outcome).items()}
        for name, made in (("least_use", outcome.least_use), ("less_latency", outcome.hastened)):
            say(f"capacity {capacity}: documents, {name.replace('_', ' ')}")
            row |= {f"{name}_{key}": value for key, value in site.figures(made).items()}
        rows.append(row | {f"node_{key}": value for key, value in asdict(site.speed).items()})
    return rows


def _texts(config: Config, seed: int) -> list[str]:
    grown = grown_views(seed, config["views"], config["distinct"], config["pool"], config["values"])
    return [pattern.text for pattern in grown]


class _Site:
    """Machines with views on them, and what views say of documents. speed: of nodes, measured by the first plan."""

    table: MessageTable
    speed: Speed

    def __init__(self, found: Prepared, published: list[Document], config: Config, seed: int) -> None:
        self._found, self._documents, self._seed = found, published, seed
        self._nodes_documents, self._interval_s = config["nodes_documents"], config["interval_ms"] / 1e3
        self._machines: Machines = draw_machines(
            seed, config["machines"], mbit=tuple(config["mbit"]), switch_ms=config["switch_ms"],
            jitter_ms=config["jitter_ms"], message_ms=config["message_ms"],
        )  # fmt: skip
        self._machine_of: I64 = np.random.default_rng([seed, 7]).integers(0, config["machines"], len(found.views))
        self.table = tabulate(found.patterns, published)
        self.matching_all_ms = self._matching_ms(found.patterns)
        self._is_measured = False

    @property
    def matched_share(self) -> float:
        """Of pairs of a document and a view, those with matches."""
        return float((self.table.ids > 0)[:, self._found.groups.query_of].mean())

    def matching_ms(self, made: RelayPlan) -> float:
        """CPU time of the publisher for a document."""
        fed = set(made.dependants[PUBLISHER])
        return self._matching_ms([*dict.fromkeys(pattern_of(view) for view in self._found.views if view.id in fed)])

    def _matching_ms(self, patterns: Sequence[Pattern]) -> float:
        match = match_all_patterns([PatternQuery(pattern) for pattern in patterns])
        some = self._documents[:_SAMPLES]
        match(some[0])
        seconds, _ = timed(lambda: [match(document) for document in some])
        return 1e3 * seconds.cpu / len(some)

    def figures(self, made: RelayPlan) -> dict[str, float]:
        views, query_of = self._found.views, self._found.groups.query_of
        deployment = deploy(made, views, self._machines, self._machine_of)
        by_nodes: list[Delivery] = []
        if not self._is_measured:
            nodes = NodeWork(made, views)
            for at, document in enumerate(self._documents[: self._nodes_documents]):
                by_nodes.append(deliver(deployment, [nodes.take(document)], self._rng(at)))
            self.speed, self._is_measured = fit(nodes.timings), True
        by_table = TableWork(self.table, self.speed, made, views, query_of)
        works = [by_table.at(at) for at in range(len(self._documents))]
        every = deliver(deployment, works, self._rng(len(works)), self._interval_s)
        done = every.done_s
        slowest = done.max(axis=1)
        return {
            "latency_min_s": float(done.min()),
            "latency_mean_s": float(done.mean()),
            "latency_max_s": float(done.max()),
            "delivery_min_s": float(slowest.min()),
            "delivery_mean_s": float(slowest.mean()),
            "delivery_max_s": float(slowest.max()),
            "messages_per_document": every.messages / len(works),
            "bytes_per_document": every.bytes / len(works),
        } | (self._compared(deployment, by_nodes, by_table) if by_nodes else {})

    def _compared(self, deployment: Deployment, by_nodes: Sequence[Delivery], by_table: TableWork) -> dict[str, float]:
        """The documents that the nodes had, each alone in the network: by the nodes themselves, and by the table."""
        same = [deliver(deployment, [by_table.at(at)], self._rng(at)) for at in range(len(by_nodes))]
        return {
            "latency_by_nodes_s": float(np.mean([each.done_s.mean() for each in by_nodes])),
            "latency_by_table_s": float(np.mean([each.done_s.mean() for each in same])),
            "bytes_off": sum(abs(one.bytes - other.bytes) for one, other in zip(by_nodes, same, strict=True)),
        }

    def _rng(self, at: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, 8, at])
