"""Different radii: server time (figure 6), messages (table 2), traffic (figure 7), the most messages of an event."""

from __future__ import annotations

from typing import Any

from experiments.drift.outcome import STRATEGIES, Rows, Say, play, server_us
from tidings.bench.drift_timeline import Timeline
from tidings.workloads.drift.radii import drift_radii


def run(config: dict[str, Any], seed: int, say: Say) -> Rows:
    rows = []
    for size in config["sizes"]:
        say(f"{size:,} subscriptions")
        # The first change inserts the row.
        timeline = Timeline.of(drift_radii(seed=seed, rows=1, subscriptions=size, changes=1 + config["events"]))
        outcome = play(timeline, 1)
        row = {"subscriptions": size} | outcome.messages() | outcome.traffic()
        for name in STRATEGIES:
            events = config["events" if name == "region" else "baseline_events"]
            row[f"{name}_us"] = server_us(timeline, 1, events, name)
        rows.append(row)
    return rows
