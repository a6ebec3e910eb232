"""Plans of least use, passes that reduce latency, and views per level before and after (table 3, figures 6 to 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from research.bench.relay.data import ViewSet
from research.bench.relay.stages import Outcome, plan
from research.experiments.paper import Config, Rows, Say
from research.experiments.relay.sets import name_of, prepared, view_set
from tidings.relay.plan import PUBLISHER, RelayPlan

UNLIMITED = "none"
"""How configurations and rows name a capacity without limit."""


class Planned(NamedTuple):
    """What is told of one plan: of its use, of every number of passes that reduce latency, and of its levels."""

    use: dict[str, Any]
    passes: Rows
    levels: dict[str, list[int]]


@cache
def planned(views: ViewSet, seed: int, rewritings_max: int, capacity: int | None, slack: float) -> Planned:
    """Kept for the next experiment about the same plan, which itself is large."""
    found = prepared(views, seed, rewritings_max)
    outcome = plan(found, capacity, found.publisher_capacity, slack=slack)
    return Planned(_use(outcome), _passes(outcome), level_figures(outcome))


def use(config: Config, seed: int, say: Say) -> Rows:
    return [place | found.use for place, found in _all(config, seed, say)]


def latency(config: Config, seed: int, say: Say) -> Rows:
    """A row for every number of passes."""
    return [place | each for place, found in _all(config, seed, say) for each in found.passes]


def levels(config: Config, seed: int, say: Say) -> Rows:
    return [place | found.levels for place, found in _all(config, seed, say)]


def _all(config: Config, seed: int, say: Say) -> Iterator[tuple[dict[str, Any], Planned]]:
    for each in config["sets"]:
        views = view_set(each)
        for capacity in each["capacities"]:
            say(f"{name_of(views)}, capacity {capacity}")
            found = planned(views, seed, config["rewritings"], limit(capacity), config["slack"])
            yield {"set": name_of(views), "capacity": capacity}, found


def _use(outcome: Outcome) -> dict[str, Any]:
    made, solution = outcome.least_use, outcome.solution
    found: dict[str, Any] = {
        "publisher_capacity": outcome.publisher_capacity,
        "publisher_feeds": made.feeds,
        "rewritten_share": 100 * (1 - made.feeds / len(made.inputs)),
        "use": solution.use,
        "bound": solution.bound,
        "gap_percent": 100 * solution.gap,
        "inputs_per_rewriting": inputs_per_rewriting(made),
        "solve_cpu_s": outcome.solve_s.cpu,
        "full_share": _full_share(outcome),
    }
    return found | certificate(outcome)


def _full_share(outcome: Outcome) -> float:
    """Of views that feed others, the percentage of those that feed as many as they may."""
    made, most = outcome.least_use, outcome.capacity
    fed = [len(views) for source, views in made.dependants.items() if views and source != PUBLISHER]
    return 100 * sum(count == most for count in fed) / max(1, len(fed))


def certificate(outcome: Outcome) -> dict[str, Any]:
    """Where the publisher's capacity could not be kept: what it must feed at least, and whether that is proven."""
    if outcome.infeasible is None:
        return {}
    return {"needed": outcome.infeasible.needed, "is_proven": outcome.infeasible.is_proven}


def _passes(outcome: Outcome) -> Rows:
    """Latencies are sums over all views, in hops; equal views count as their head does."""
    first = outcome.passes[0]
    return [
        {
            "passes": number,
            "seconds": each.seconds,
            "latency": each.latency,
            "latency_share": 100 * each.latency / first.latency,
            "use_increase": 100 * (each.use / first.use - 1),
        }
        for number, each in enumerate(outcome.passes)
    ]


def level_figures(outcome: Outcome) -> dict[str, list[int]]:
    """Views on level 1, 2, .., by the plan of least use and by the one of less latency."""
    return {"least_use": views_per_level(outcome.least_use), "less_latency": views_per_level(outcome.hastened)}


def views_per_level(made: RelayPlan) -> list[int]:
    counts = Counter(made.levels.values())
    return [counts[level] for level in range(1, max(counts) + 1)]


def inputs_per_rewriting(made: RelayPlan) -> float:
    """Of views that are not fed by the publisher."""
    inputs = [len(sources) for sources in made.inputs.values() if sources != (PUBLISHER,)]
    return sum(inputs) / max(1, len(inputs))


def limit(capacity: int | str) -> int | None:
    return None if capacity == UNLIMITED else int(capacity)


def warm_up() -> None:
    """Compiles kernels."""
    planned(ViewSet(300), 0, 30, 3, 1.5)
