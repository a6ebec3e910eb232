"""Partial rewritings among few views: what the publisher matches and sends, with them and without (section 7)."""

from __future__ import annotations

from typing import Any

from research.bench.relay.data import ViewSet, documents
from research.experiments.paper import Config, Rows, Say
from tidings.relay.files import View
from tidings.relay.message import encode_parts
from tidings.relay.planner import Planned, plan_relay
from tidings.relay.runtime.epochs import Epoch, queries_of
from tidings.relay.runtime.pattern_query import PatternQuery


def run(config: Config, seed: int, say: Say) -> Rows:
    """A row for plans without partial rewritings, and one with them."""
    views = [View(f"v{n}", pattern) for n, pattern in enumerate(ViewSet(config["views"]).patterns(seed))]
    samples = documents(seed, 1, config["documents"])
    rows = []
    for partial in (False, True):
        say("with partial rewritings" if partial else "without partial rewritings")
        planned = plan_relay(views, samples, capacity=config["capacity"], partial=partial)
        rows.append({"partial": partial} | _work(planned, samples))
    return rows


def _work(planned: Planned, samples: list[Any]) -> dict[str, float]:
    """Of the publisher, per document."""
    epoch = Epoch(1, 1, planned.plan, queries_of(planned.views))
    steps, sent = 0, 0
    for query, views in epoch.roots.items():
        assert isinstance(query, PatternQuery)
        steps += len(query.pattern.nodes)
        sent += len(views) * sum(len(encode_parts(query.match(document))) for document in samples)
    plan = planned.plan
    figures = {"feeds": plan.feeds, "feeds_in_part": plan.feeds_in_part, "steps": steps}
    return figures | {"bytes": sent / len(samples), "use": planned.solution.use}
