"""The same percentage, or the same ratio, for all (section 6.2): into how many ranges of labels does an event fall?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from research.bench.drift.replay import DriftReplay
from research.experiments.drift.cases import CASES
from research.experiments.drift.outcome import CHUNK
from research.experiments.paper import Config, Rows, Say
from research.strategies.drift.follower_index import KINDS
from research.strategies.drift.kernels.threshold_index import ThresholdIndex

_REACHES = {"moved": 10_000.0, "moved_percent": 1.0, "moved_ratio": 1.01}
"""All about the same at the prices of the workload."""


def run(config: Config, seed: int, say: Say) -> Rows:
    timeline, begin = CASES["same"](config, config["subscriptions"], seed)
    rows = []
    for kind, reach in _REACHES.items():
        say(kind)
        alike = replace(timeline, member_reach=np.full(timeline.size, reach))
        replay = DriftReplay(alike, ThresholdIndex(KINDS[kind], renews=True))
        replay.play(begin)
        most = total = 0
        while replay.at < alike.moves:
            ranges = np.diff(replay.play(CHUNK).touched.starts)
            most, total = max(most, int(ranges.max())), total + int(ranges.sum())
        rows.append({"kind": kind, "ranges": total / (alike.moves - begin), "ranges_max": most})
    return rows
