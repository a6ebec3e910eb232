"""All radii: traffic per operation with a price that walks (figure 11), and with real prices (figure 12)."""

from __future__ import annotations

from typing import Any

from experiments.drift.outcome import Rows, Say, play
from tidings.bench.drift_timeline import Timeline
from tidings.workloads.drift.all import drift_all
from tidings.workloads.drift.stocks import drift_stocks
from tidings.workloads.workload import Generator


def run(config: dict[str, Any], seed: int, say: Say) -> Rows:
    return _run(drift_all, config, seed, say)


def run_stocks(config: dict[str, Any], seed: int, say: Say) -> Rows:
    return _run(drift_stocks, config, seed, say)


def _run(workload: Generator, config: dict[str, Any], seed: int, say: Say) -> Rows:
    rows = []
    for size in config["sizes"]:
        say(f"{size:,} subscriptions")
        timeline = Timeline.of(workload(seed=seed, rows=0, subscriptions=size, changes=config["events"]))
        # The first changes insert the rows.
        outcome = play(timeline, len(timeline.names))
        rows.append({"subscriptions": size} | outcome.messages() | outcome.traffic())
    return rows
