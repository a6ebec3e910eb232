"""The same radius: server time (figure 8), messages (table 3), traffic (figure 9), the most messages of an event."""

from __future__ import annotations

from typing import Any

from experiments.drift.outcome import STRATEGIES, Rows, Say, play, server_us
from tidings.bench.drift_timeline import Timeline
from tidings.workloads.drift.same import SameCase, drift_same

_BOOTSTRAP = 10_000
"""Changes before the walk, during which half of the subscriptions come."""


def timeline_of(size: int, events: int, seed: int, arrival_rate: float, early: float) -> tuple[Timeline, int]:
    """A timeline and the number of changes of its bootstrap, in which the share `early` of the subscriptions come."""
    changes = _BOOTSTRAP + events
    # A little more than the share, as it is rounded down.
    share = (_BOOTSTRAP + 0.5) / changes
    case = SameCase(bootstrap_changes=share, bootstrap_subscriptions=early, arrivals_max=arrival_rate)
    return Timeline.of(drift_same(seed=seed, rows=1, subscriptions=size, changes=changes, case=case)), _BOOTSTRAP


def run(config: dict[str, Any], seed: int, say: Say) -> Rows:
    rows = []
    for size in config["sizes"]:
        say(f"{size:,} subscriptions")
        timeline, begin = timeline_of(size, config["events"], seed, 1.0, 0.5)
        outcome = play(timeline, begin)
        row = {"subscriptions": size} | outcome.messages() | outcome.traffic()
        for name in STRATEGIES:
            events = config["events" if name == "region" else "baseline_events"]
            row[f"{name}_us"] = server_us(timeline, begin, events, name)
        rows.append(row)
    return rows


def run_arrivals(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """Traffic per operation as people come faster (figure 10)."""
    rows = []
    for rate in config["rates"]:
        say(f"{rate:g} new subscriptions per event")
        early, events = config["subscriptions"], config["events"]
        size = early + int(rate * events)
        timeline, begin = timeline_of(size, events, seed, rate, early / size)
        outcome = play(timeline, begin)
        rows.append({"rate": rate, "subscriptions": size} | outcome.messages() | outcome.traffic())
    return rows
