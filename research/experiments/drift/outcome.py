"""What the moves of a timeline cost: time at the server, messages and bytes, to ranges and by unicast."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from research.bench.drift.data import DriftData, Timeline
from research.bench.drift.replay import DriftReplay, region_bytes, unicast_bytes
from research.strategies.drift.kernels.baselines import BaselineIndex
from research.strategies.drift.kernels.threshold_index import ABSOLUTE, NO_TIME, Touched
from tidings.model.codes import Int64Array

CHUNK = 1_000
_GROUPED = 100
"""Where only time is measured, people come in groups after so many moves: a call per move would measure the caller."""
STRATEGIES = ("region", "scan", "unicast")


@dataclass(frozen=True)
class Outcome:
    """An element per event."""

    told: Int64Array
    ranges: Int64Array
    region_bytes: Int64Array
    arrivals: int
    """People who came during these events."""
    unicast_bytes: float
    """Of one message."""

    def messages(self) -> dict[str, float]:
        """The server's messages per event. A message of ours has several ranges; the paper sends each by itself."""
        return {
            "unicast": float(self.told.mean()),
            "ranges": float(self.ranges.mean()),
            "messages": float((self.ranges > 0).mean()),
            "unicast_max": int(self.told.max()),
            "ranges_max": int(self.ranges.max()),
            "ranges_below_100": float((self.ranges < 100).mean()),
        }

    def traffic(self) -> dict[str, float]:
        """Bytes that leave the server per event, and per operation: arrivals, too, are answered with the row."""
        events = len(self.told)
        region, unicast = float(self.region_bytes.sum()), float(self.told.sum() * self.unicast_bytes)
        answers = self.arrivals * self.unicast_bytes
        operations = events + self.arrivals
        return {
            "region_bytes": region / events,
            "unicast_bytes": unicast / events,
            "region_bytes_per_operation": (region + answers) / operations,
            "unicast_bytes_per_operation": (unicast + answers) / operations,
        }


def play(timeline: Timeline, begin: int) -> Outcome:
    """Everything but time, from the move `begin` on."""
    replay, data = DriftReplay(timeline), DriftData(timeline)
    replay.play(begin)
    arrivals = timeline.size - replay.joined
    told, ranges, sizes = [], [], []
    while replay.at < timeline.moves:
        members = replay.members()
        moved = replay.play(CHUNK)
        told.append(replay.told(moved, members))
        ranges.append(np.diff(moved.touched.starts))
        sizes.append(region_bytes(data, moved))
    return Outcome(np.concatenate(told), np.concatenate(ranges), np.concatenate(sizes), arrivals, unicast_bytes(data))


def server_us(timeline: Timeline, begin: int, events: int, strategy: str) -> float:
    """Microseconds per event that a strategy needs to find whom to tell, of the processor: blind to other work."""
    groups = -(-timeline.member_after // _GROUPED) * _GROUPED
    grouped = replace(timeline, member_after=np.minimum(groups, max(begin, timeline.moves)))
    replay = _Stopwatch(grouped, strategy)
    replay.play(begin)
    replay.seconds = 0.0
    replay.play(events)
    return replay.seconds / min(events, timeline.moves - begin) * 1e6


class _Stopwatch(DriftReplay):
    """Takes the time of the moves."""

    def __init__(self, timeline: Timeline, strategy: str) -> None:
        is_plain, has_heaps = strategy != "region", strategy == "unicast"
        super().__init__(timeline, BaselineIndex(ABSOLUTE, with_heaps=has_heaps) if is_plain else None)
        self.seconds = 0.0

    def _let_in(self) -> None:
        joined = self.joined
        super()._let_in()
        if self.joined > joined and isinstance(self.index, BaselineIndex):
            # Nobody is told of a value that stays as it is, but what newcomers upset is put in order.
            self.index.move(np.array([0]), np.array([self.index.value(0)[0]]), np.array([NO_TIME]))

    def _move(self, stop: int) -> Touched:
        start = time.process_time()
        touched = super()._move(stop)
        self.seconds += time.process_time() - start
        return touched


def warm_up() -> None:
    """Lets kernels be compiled before any time is taken."""
    reach, after = np.arange(1.0, 50.0), np.arange(49) // 10
    value = 100.0 + np.cumsum(np.tile([1.0, -3.0, 7.0], 20))
    line = Timeline(("S0",), np.zeros(60, np.int64), value, np.zeros(49, np.int64), reach, after)
    play(line, 1)
    for strategy in STRATEGIES:
        server_us(line, 1, 60, strategy)
