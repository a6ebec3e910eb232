"""Documents through plans on machines in several cities: levels, view latency and document delivery time (figures 9 to 11).

Documents are published one at a time: each finds the network idle. What the publisher takes to match a document is not counted,
as published. A view is done when it has its matches, or when it has listed the rows of its subscriber as well (`rows`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from research.bench.relay.data import ViewSet, documents
from research.bench.relay.stages import Prepared, plan, prepare
from research.experiments.paper import Config, Rows, Say
from research.experiments.relay.grown import grown_views
from research.experiments.relay.machines import Machines, draw_machines
from research.experiments.relay.plans import certificate, level_figures, limit
from research.experiments.relay.simulation import Delivery, Deployment, deliver, deploy
from research.experiments.relay.work import MessageTable, NodeWork, Speed, TableWork, fit, tabulate
from tidings.kernels.arrays import I64
from tidings.relay.document import Document
from tidings.relay.plan import RelayPlan

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
        outcome = plan(found, limit(capacity), config["publisher_capacity"])
        row: dict[str, Any] = {
            "capacity": capacity,
            "unfed": found.unfed,
            "publisher_feeds": outcome.least_use.feeds,
            "gap_percent": 100 * outcome.solution.gap,
            "use_increase": 100 * outcome.use_change,
            "matched_share": 100 * site.table.matched_share,
        }
        row |= certificate(outcome)
        row |= {f"{name}_levels": counts for name, counts in level_figures(outcome).items()}
        for name, made in (("least_use", outcome.least_use), ("less_latency", outcome.hastened)):
            say(f"capacity {capacity}: documents, {name.replace('_', ' ')}")
            row |= {f"{name}_{key}": value for key, value in site.figures(made).items()}
        rows.append(row | {f"node_{key}": value for key, value in asdict(site.speed).items()})
    return rows


def _texts(config: Config, seed: int) -> list[str]:
    views, distinct, values = config["views"], config["distinct"], config["values"]
    if "pool" in config:
        return [pattern.text for pattern in grown_views(seed, views, distinct, config["pool"], values)]
    return [pattern.text for pattern in ViewSet(views, distinct, values).patterns(seed)]


class _Site:
    """Machines with views on them, and what views say of documents. speed: of nodes, measured by the first plan."""

    table: MessageTable
    speed: Speed

    def __init__(self, found: Prepared, published: list[Document], config: Config, seed: int) -> None:
        self._found, self._documents, self._seed = found, published, seed
        self._nodes_documents, self._lists_rows = config["nodes_documents"], config["rows"]
        self._machines: Machines = draw_machines(
            seed, config["machines"], mbit=tuple(config["mbit"]), switch_ms=config["switch_ms"],
            jitter_ms=config["jitter_ms"], message_ms=config["message_ms"],
        )  # fmt: skip
        self._machine_of: I64 = np.random.default_rng([seed, 7]).integers(0, config["machines"], len(found.views))
        self.table = tabulate(found.patterns, published, lists_rows=self._lists_rows)
        self._is_measured = False

    def figures(self, made: RelayPlan) -> dict[str, float]:
        views, query_of = self._found.views, self._found.groups.query_of
        deployment = deploy(made, views, self._machines, self._machine_of)
        nodes = NodeWork(made, views, lists_rows=self._lists_rows)
        some = [
            deliver(deployment, nodes.take(document), self._rng(at))
            for at, document in enumerate(self._documents[: self._nodes_documents])
        ]
        if not self._is_measured:
            self.speed, self._is_measured = fit(nodes.timings), True
        by_table = TableWork(self.table, self.speed, made, views, query_of)
        every = [self._by_table(deployment, by_table, at) for at in range(len(self._documents))]
        done = np.array([each.done_s for each in every])
        slowest = done.max(axis=1)
        by_nodes = np.mean([each.done_s.mean() for each in some])
        return {
            "latency_min_s": float(done.min()),
            "latency_mean_s": float(done.mean()),
            "latency_max_s": float(done.max()),
            "delivery_min_s": float(slowest.min()),
            "delivery_mean_s": float(slowest.mean()),
            "delivery_max_s": float(slowest.max()),
            "messages_per_document": float(np.mean([each.messages for each in every])),
            "bytes_per_document": float(np.mean([each.bytes for each in every])),
            # The same documents by the nodes themselves, and by the table.
            "latency_by_nodes_s": float(by_nodes),
            "latency_by_table_s": float(done[: len(some)].mean()),
            "bytes_off": sum(abs(one.bytes - other.bytes) for one, other in zip(some, every, strict=False)),
        }

    def _by_table(self, deployment: Deployment, work: TableWork, at: int) -> Delivery:
        return deliver(deployment, work.take(at), self._rng(at))

    def _rng(self, at: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, 8, at])
