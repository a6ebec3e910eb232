"""What less latency costs by the weights that use and latency have, and without slack (sections 2.2 and 5.4)."""

from __future__ import annotations

from typing import Any

from research.bench.relay.data import ViewSet
from research.bench.relay.stages import plan
from research.experiments.paper import Config, Rows, Say
from research.experiments.relay.sets import prepared
from tidings.relay.planning.latency import reduce_latency, total_latency

_WEIGHTS: dict[str, tuple[float, float | None]] = {
    "both": (1.0, None),
    "alpha alone": (1.0, 0.0),
    "beta alone": (0.0, 1.0),
}


def run(config: Config, seed: int, say: Say) -> Rows:
    """A row for each choice of weights, without slack. Latency in hops, changes in percent of the plan of least use."""
    found = prepared(ViewSet(config["views"]), seed, config["rewritings"])
    say(f"capacity {config['capacity']}")
    outcome = plan(found, config["capacity"], found.publisher_capacity)
    instance, least = outcome.instance, outcome.solution.columns
    use, latency = instance.use(least), total_latency(instance, least)
    rows: list[dict[str, Any]] = []
    for name, (alpha, beta) in _WEIGHTS.items():
        columns = reduce_latency(instance, least, alpha, beta)
        now, then = instance.use(columns), total_latency(instance, columns)
        changes = {"use_increase": 100 * (now / use - 1), "reduction": 100 * (1 - then / latency)}
        rows.append({"weights": name, "use": now, "latency": then} | changes)
    return rows
