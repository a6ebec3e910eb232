"""The experiments of the paper as cases: which timeline, from which move on, and by what the number of people grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from research.bench.drift.data import Timeline
from research.experiments.drift.outcome import play
from research.experiments.drift.server_time import OF_CASE, timed
from research.experiments.paper import Config, Rows, Say
from research.workloads.drift.all import drift_all
from research.workloads.drift.radii import drift_radii
from research.workloads.drift.same import SameCase, drift_same
from research.workloads.drift.stocks import drift_stocks
from tidings.workloads.workload import Generator

_BOOTSTRAP = 10_000
"""Changes before the walk of the same radius, during which people come."""


class Started(NamedTuple):
    timeline: Timeline
    begin: int
    """The first move that counts."""


def _radii(config: Config, size: int, seed: int) -> Started:
    """The first change inserts the row."""
    return Started(Timeline.of(drift_radii(seed=seed, rows=1, subscriptions=size, changes=1 + config["events"])), 1)


def _same(config: Config, size: int, seed: int, arrival_rate: float = 1.0, early: float = 0.5) -> Started:
    """The share `early` of the subscriptions comes before what counts."""
    changes = _BOOTSTRAP + config["events"]
    # A little more than the share, as it is rounded down.
    share = (_BOOTSTRAP + 0.5) / changes
    case = SameCase(bootstrap_changes=share, bootstrap_subscriptions=early, arrivals_max=arrival_rate)
    return Started(
        Timeline.of(drift_same(seed=seed, rows=1, subscriptions=size, changes=changes, case=case)), _BOOTSTRAP
    )


def _mixed(workload: Generator) -> Callable[[Config, int, int], Started]:
    """All radii; the first changes insert the rows."""

    def start(config: Config, size: int, seed: int) -> Started:
        timeline = Timeline.of(workload(seed=seed, rows=0, subscriptions=size, changes=config["events"]))
        return Started(timeline, len(timeline.names))

    return start


CASES: dict[str, Callable[[Config, int, int], Started]] = {
    "radii": _radii,
    "same": _same,
    "all": _mixed(drift_all),
    "stocks": _mixed(drift_stocks),
}


def by_size(name: str) -> Callable[[Config, int, Say], Rows]:
    """A case at growing numbers of subscriptions."""

    def run(config: Config, seed: int, say: Say) -> Rows:
        rows = []
        for size in config["sizes"]:
            say(f"{size:,} subscriptions")
            timeline, begin = CASES[name](config, size, seed)
            outcome = play(timeline, begin)
            row = {"subscriptions": size} | outcome.messages() | outcome.traffic()
            row |= _times(name, config, size, seed)
            if name == "all":
                row["relaxed_ranges"] = _relaxed(timeline, begin)
            rows.append(row)
        return rows

    return run


def _times(name: str, config: Config, size: int, seed: int) -> dict[str, float]:
    """Microseconds per event of the structures of a case, after so many events, by which nearly everybody has come."""
    times: dict[str, float] = {}
    if name in OF_CASE:
        late = config["timed_after"]
        timeline, begin = CASES[name](config | {"events": late + config["timed_events"]}, size, seed)
        for structure in OF_CASE[name]:
            found = timed(timeline, begin + late, structure)
            times[f"{structure}_us"] = found.us
            if found.spread:
                times["spread"] = found.spread / float(timeline.member_reach[0])
    return times


def _relaxed(timeline: Timeline, begin: int) -> float:
    """Ranges per event if newcomers start from what others with their radius were last told: one member stands for all."""
    _, first = np.unique(np.stack([timeline.member_item, timeline.member_reach]), axis=1, return_index=True)
    first = np.sort(first)
    found = play(
        replace(
            timeline,
            member_item=timeline.member_item[first],
            member_reach=timeline.member_reach[first],
            member_after=timeline.member_after[first],
        ),
        begin,
    )
    return float(found.ranges.mean())


def of_one_radius(config: Config, seed: int, rate: float) -> Started:
    """So many subscriptions as configured at first, and new ones at a rate per event."""
    early = config["subscriptions"]
    size = early + int(rate * config["events"])
    return _same(config, size, seed, rate, early / size)


def arrivals(config: Config, seed: int, say: Say) -> Rows:
    """The same radius as people come faster (figure 10)."""
    rows = []
    for rate in config["rates"]:
        say(f"{rate:g} new subscriptions per event")
        timeline, begin = of_one_radius(config, seed, rate)
        outcome = play(timeline, begin)
        rows.append({"rate": rate, "subscriptions": timeline.size} | outcome.messages() | outcome.traffic())
    return rows
