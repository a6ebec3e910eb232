"""The plain strategies beside the drift index: `scan` and `unicast`, from the same state and with the same moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidings.bench.drift_player import Player
from tidings.bench.drift_timeline import FloatArray
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import Seconds, spent, timed
from tidings.families.drift.kernels.baselines import BaselineIndex
from tidings.families.drift.kernels.threshold_index import ABSOLUTE, NO_TIME, Touched
from tidings.model.codes import Int64Array

BASELINES = {"scan": False, "unicast": True}
"""Strategy -> whether it finds members by heaps of their ends."""
MOVES_AT_A_TIME = 10


class Baseline:
    """One of the strategies, with one item and the members and anchors that a player has now."""

    def __init__(self, player: Player, name: str) -> None:
        timeline, members = player.timeline, player.members()
        order = members.order
        runs = player.anchors.runs(0)
        start, stop = members.ranges(np.zeros(len(runs.value), np.int64), runs)
        anchor = np.empty(len(order))
        for first, last, value in zip(start.tolist(), stop.tolist(), runs.value.tolist(), strict=True):
            anchor[first:last] = value
        self._reach, self._label = timeline.member_reach[order], player.label[order]
        value, time = player.anchors.value(0)
        times = np.full(len(order), NO_TIME)
        self._plain = BaselineIndex(ABSOLUTE, with_heaps=BASELINES[name])
        self._plain.load(
            {
                "next": 1,
                "members": [[self._reach, self._label]],
                "items": [[0, 0, value, time, anchor, times]],
            }
        )
        # Nobody is told of a value that stays as it is, but heaps are made for the first move.
        self.move(np.array([value]))

    def move(self, values: FloatArray) -> Touched:
        return self._plain.move(np.zeros(len(values), np.int64), values, np.full(len(values), NO_TIME))


def slices(values: FloatArray, size: int = MOVES_AT_A_TIME) -> Iterator[FloatArray]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def measure(player: Player, heading: Heading, sample: Int64Array, budget_s: float) -> list[Figure]:
    """Both strategies from where the player is; `sample` is how many members the first moves tell.

    Afterwards the player makes the same moves. Ratios are of processor time: all of this is done by one thread, and
    other work hardly matters.
    """
    values = player.timeline.move_value[player.at :]
    spans = {name: _span(Baseline(player, name), name, values, sample, budget_s) for name in BASELINES}
    player.play(len(sample))
    ours_cpu, made = 0.0, 0
    figures = []
    for name, (count, taken) in sorted(spans.items(), key=lambda span: span[1][0]):
        ours_cpu += timed(player.play, count - made)[0].cpu
        made = count
        figures += [
            heading.figure(f"{name}.changes_per_s", f"strategy {name}", "changes/s", count / taken.wall),
            heading.figure(f"{name}.ratio", f"index over {name} on the same changes", "ratio", taken.cpu / ours_cpu),
        ]
    return figures


def _span(
    baseline: Baseline, name: str, values: FloatArray, sample: Int64Array, budget_s: float
) -> tuple[int, Seconds]:
    """How many moves a strategy makes after the sample within the budget, and the time they take."""
    touched = baseline.move(values[: len(sample)])
    counts = np.diff(touched.starts)
    if name == "unicast" and counts.tolist() != sample.tolist():
        raise AssertionError(f"{name} tells {counts.sum()}, but ours {sample.sum()}")
    left = values[len(sample) :]
    calls, taken = spent(budget_s, baseline.move, slices(left))
    return min(calls * MOVES_AT_A_TIME, len(left)), taken
