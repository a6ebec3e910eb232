"""Counters of a live job: what is counted in every micro-batch, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.families.registry import families
from tidings.model.change import NO_TIME
from tidings.model.quarantine import CATEGORIES, Quarantined
from tidings.pipeline.live import Output
from tidings.pipeline.replica.replica import Replica

_PLAIN = (
    "changes",
    "messages",
    "deliveries",
    "answers",
    "answers_refused",
    "shared_keys",
    "cache_hits",
    "cache_catch_ups",
    "cache_rebuilds",
    "folds",
    "state_bytes",
    "memory_bytes",
    "rows",
    "subscriptions",
    "forms",
    "shards",
)
LATENCIES = {"latency_p50": 0.5, "latency_p99": 0.99, "latency_max": 1.0}
"""Microseconds, 0 if no change had a time; of several shards the highest counts. As every shard gets every change, the highest
quantile of the shards is the quantile of the times until the last shard has written."""


@cache
def fields() -> tuple[str, ...]:
    """Names of all counters."""
    told = [f"notifications_{family.name}" for family in families()]
    refused = [f"refused_{category}" for category in CATEGORIES]
    return (*_PLAIN, *told, *refused, *LATENCIES)


def refusals(refused: Iterable[Quarantined]) -> dict[str, int]:
    """Refused records by category, as counts."""
    found: dict[str, int] = {}
    for entry in refused:
        name = f"refused_{entry.category}"
        found[name] = found.get(name, 0) + 1
    return found


def latencies(seconds: NDArray[np.float64]) -> dict[str, int]:
    """Quantiles of latencies, as counts: each is one of the latencies themselves."""
    if not len(seconds):
        return {}
    micros = np.sort(np.maximum(seconds * 1e6, 1.0)).astype(np.int64)
    return {name: int(micros[ceil(fraction * len(micros)) - 1]) for name, fraction in LATENCIES.items()}


def totals(replica: Replica) -> dict[str, Counter[str]]:
    """What a replica has counted so far."""
    told = replica.notifications.copy()
    return {
        "changes": Counter({"": replica.changes}),
        "messages": replica.messages(),
        "message_bytes": replica.message_bytes(),
        "deliveries": told,
        "notifications": told,
    }


def figures(
    replica: Replica, before: Mapping[str, Counter[str]], found: Output, now: float, *, is_first: bool = True
) -> tuple[dict[str, Any], dict[str, int]]:
    """(metrics of a micro-batch for its sink, its counters). before: `totals` before the micro-batch.

    is_first: of several replicas, each of which has all rows, the one that counts these.
    """
    metrics: dict[str, Any] = {
        name: dict(count - then) for (name, count), then in zip(totals(replica).items(), before.values(), strict=True)
    }
    counts = {f"notifications_{family}": number for family, number in metrics["notifications"].items()}
    counts |= refusals(found.refused) | latencies(now - found.times[found.times != NO_TIME] / 1e6)
    counts |= {"answers": len(found.answers), "shards": 1, **replica.size_counts()}
    counts["deliveries"] = sum(metrics["deliveries"].values())
    counts["answers_refused"] = sum(answer.refused is not None for answer in found.answers)
    if is_first:
        metrics |= {"passed": replica.passed, "changes": metrics["changes"].get("", 0)}
        counts |= {"changes": metrics["changes"], "messages": sum(metrics["messages"].values())}
        counts["shared_keys"] = found.shared_keys
    else:
        counts["rows"] = 0
        metrics = {name: metrics[name] for name in ("deliveries", "notifications")}
    metrics["quarantined"] = len(found.refused)
    return metrics, counts
