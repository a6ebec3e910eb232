"""`moved(x) BETWEEN a AND b`: how much the freedom to tell between a and b saves, by our rule and by the paper's.

Ours gives everybody a round radius out of [a, b], once and for all. The paper decides anew at every event: it sorts
by (a, b), looks for those that must be told, and tells those between two of them too if all of these may be told.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from research.bench.drift.data import Timeline
from research.experiments.drift.outcome import play
from research.experiments.paper import Config, Rows, Say
from research.workloads.drift.radii import drift_radii
from tidings.families.drift.movement import roundest_between
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray


def run(config: Config, seed: int, say: Say) -> Rows:
    size, events = config["subscriptions"], config["events"]
    timeline = Timeline.of(drift_radii(seed=seed, rows=1, subscriptions=size, changes=1 + events))
    low = timeline.member_reach
    rows = []
    for multiple in config["multiples"]:
        say(f"b = {multiple:g} a")
        high = low * multiple
        round_reach = np.array([roundest_between(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])
        row: dict[str, Any] = {"multiple": multiple, "radii": len(np.unique(round_reach))}
        for name, reach in (("exact", high), ("round", round_reach)):
            found = play(replace(timeline, member_reach=reach), 1).messages()
            row |= {f"{name}_ranges": found["ranges"], f"{name}_told": found["unicast"]}
        ranges, told = between_musts(low, high, timeline.move_value)
        rows.append(row | {"paper_ranges": float(ranges.mean()), "paper_told": float(told.mean())})
    return rows


def between_musts(low: FloatArray, high: FloatArray, values: FloatArray) -> tuple[Int64Array, Int64Array]:
    """(ranges, members told) of every value after the first by the paper's rule, member by member."""
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    centre = np.full(len(low), values[0])
    ranges, told = np.zeros(len(values) - 1, np.int64), np.zeros(len(values) - 1, np.int64)
    for i, value in enumerate(values[1:].tolist()):
        must = np.flatnonzero((value >= centre + high) | (value <= centre - high))
        if len(must) == 0:
            continue
        stays = np.cumsum((value < centre + low) & (value > centre - low))
        # A run goes on as long as nobody who may not be told stands between one that must and the next.
        breaks = np.flatnonzero(np.diff(stays[must]))
        first, last = must[np.append(0, breaks + 1)], must[np.append(breaks, len(must) - 1)]
        for start, stop in zip(first.tolist(), last.tolist(), strict=True):
            centre[start : stop + 1] = value
        ranges[i], told[i] = len(first), int((last - first + 1).sum())
    return ranges, told
