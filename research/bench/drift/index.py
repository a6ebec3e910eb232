"""The drift index alone: moves to ranges of radii and labels, compared with the strategies `scan` and `unicast`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from research.bench.dataset import BATCH
from research.bench.drift.cases import CASES
from research.bench.drift.data import DriftData, Timeline
from research.bench.drift.replay import DriftReplay, region_bytes, unicast_bytes
from research.bench.runner import SAMPLE
from research.bench.timing import spent
from research.strategies.drift.kernels.baselines import BaselineIndex
from research.strategies.drift.kernels.threshold_index import ABSOLUTE, NO_TIME, Touched
from research.workloads.drift.radii import WALK
from tidings.bench import Say
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import Seconds, timed
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray

BASELINE_BUDGET_S = 2.0
_FIRST = 1_000
"""The first moves, measured separately: members notified by the same move behave alike from then on, so that members created
at different times soon become one group.
"""
_AGE = 10
"""An old index has made this many times the moves of a run."""


@dataclass
class Indexed:
    figures: list[Figure]
    told: Int64Array
    """[SAMPLE]: members notified by each of the first moves."""


def measure(name: str, timeline: Timeline, say: Say, *, has_baselines: bool = True) -> Indexed:
    """Measures one case, after all members have been created."""
    case = CASES[name]
    heading = Heading(f"index.{name}", f"index, {case.label}")
    say(case.label)
    replay, other = DriftReplay(timeline), DriftReplay(timeline)
    replay.settle()
    run = _Run(replay, heading)
    indexed = Indexed(run.figures(), run.told[:SAMPLE])
    if has_baselines and len(timeline.names) == 1:
        say(f"{case.label}: scan and unicast")
        other.settle()
        indexed.figures += _baselines(other, heading, indexed.told, BASELINE_BUDGET_S)
    if name == "radii":
        say(f"{case.label}: an old index")
        indexed.figures.append(_aged(replay, heading))
    return indexed


class _Run:
    """Makes all remaining moves, in batches, and measures them."""

    def __init__(self, replay: DriftReplay, heading: Heading) -> None:
        self._replay = replay
        self._heading = heading
        self._data = DriftData(replay.timeline)
        self._members = replay.members()
        self._wall: list[float] = []
        self._cpu: list[float] = []
        parts = [*self._play()]
        self.told = np.concatenate([told for told, _, _ in parts])
        self._boxes = np.concatenate([boxes for _, boxes, _ in parts])
        self._bytes = np.concatenate([sizes for _, _, sizes in parts])
        self._first, *wall = self._wall
        self._rate, self._rate_cpu = 1 / median(wall), 1 / median(self._cpu[1:])

    def _play(self) -> Iterator[tuple[Int64Array, Int64Array, Int64Array]]:
        """(members told, ranges, bytes to ranges) of every move, batch by batch."""
        count = _FIRST
        while self._replay.at < self._replay.timeline.moves:
            taken, played = timed(self._replay.play, count)
            count = BATCH
            self._wall.append(taken.wall / len(played))
            self._cpu.append(taken.cpu / len(played))
            told = self._replay.told(played, self._members)
            yield told, np.diff(played.touched.starts), region_bytes(self._data, played)

    def figures(self) -> list[Figure]:
        figure, told, boxes = self._heading.figure, self.told, self._boxes
        sent = int(np.count_nonzero(boxes))
        nbytes = self._replay.anchors.nbytes / self._replay.timeline.size
        return [
            figure("changes_per_s", "changes to ranges", "changes/s", self._rate),
            figure("changes_per_cpu_s", "changes to ranges", "changes/cpu s", self._rate_cpu),
            figure("first.changes_per_s", f"the first {_FIRST:,} changes to ranges", "changes/s", 1 / self._first),
            figure("told", "subscriptions told (unicast messages)", "per change", told.mean()),
            figure("ranges", "ranges", "per change", boxes.mean()),
            figure("messages", "messages, one for all ranges", "per change", sent / len(boxes)),
            figure("told.max", "most subscriptions told by a change", "subscriptions", told.max()),
            figure("ranges.max", "most ranges of a change", "ranges", boxes.max()),
            figure("ranges.ratio", "unicast messages over ranges", "ratio", told.sum() / max(1, boxes.sum())),
            figure("bytes.region", "bytes to ranges", "bytes/change", self._bytes.mean()),
            figure("bytes.unicast", "bytes by unicast", "bytes/change", unicast_bytes(self._data) * told.mean()),
            figure("memory", "memory of the index", "bytes/subscription", nbytes),
        ]


def _aged(replay: DriftReplay, heading: Heading) -> Figure:
    """The rate after many more moves of the only item: the index becomes more fragmented with age."""
    timeline = replay.timeline
    rng = np.random.default_rng(timeline.moves)
    value = float(timeline.move_value[-1])
    rates: list[float] = []
    rounds = max(1, timeline.moves // BATCH)
    for _ in range(_AGE * rounds):
        values = (value + np.cumsum(rng.normal(WALK.drift, WALK.sigma, size=BATCH))).round(2)
        value = float(values[-1])
        items, times = np.zeros(BATCH, np.int64), np.full(BATCH, NO_TIME)
        rates.append(BATCH / timed(replay.anchors.move, items, values, times)[0].wall)
    label = f"changes to ranges, after {_AGE * rounds * BATCH:,} more"
    return heading.figure("aged.changes_per_s", label, "changes/s", median(rates[-rounds:]))


BASELINES = {"scan": False, "unicast": True}
"""Strategy -> whether it finds members by heaps of their ends."""
MOVES_AT_A_TIME = 10


class Baseline:
    """One of the strategies, with one item and the members and anchors that a replay has now."""

    def __init__(self, replay: DriftReplay, name: str) -> None:
        timeline, members = replay.timeline, replay.members()
        order = members.order
        runs = replay.anchors.runs(0)
        start, stop = members.ranges(np.zeros(len(runs.value), np.int64), runs)
        anchor = np.empty(len(order))
        for first, last, value in zip(start.tolist(), stop.tolist(), runs.value.tolist(), strict=True):
            anchor[first:last] = value
        self._reach, self._label = timeline.member_reach[order], replay.label[order]
        value, time = replay.anchors.value(0)
        times = np.full(len(order), NO_TIME)
        self._plain = BaselineIndex(ABSOLUTE, with_heaps=BASELINES[name])
        self._plain.load(
            {
                "next": 1,
                "members": [[self._reach, self._label]],
                "items": [[0, 0, value, time, anchor, times]],
            }
        )
        # Makes the heaps before timing: an unchanged value notifies no member.
        self.move(np.array([value]))

    def move(self, values: FloatArray) -> Touched:
        return self._plain.move(np.zeros(len(values), np.int64), values, np.full(len(values), NO_TIME))


def slices(values: FloatArray, size: int = MOVES_AT_A_TIME) -> Iterator[FloatArray]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _baselines(replay: DriftReplay, heading: Heading, sample: Int64Array, budget_s: float) -> list[Figure]:
    """Measures both strategies from the present state of the replay, which then makes the same moves.

    sample: members notified by each of the first moves, to compare with. Ratios are of processor time, which other work on
    the machine hardly affects.
    """
    values = replay.timeline.move_value[replay.at :]
    spans = {name: _span(Baseline(replay, name), name, values, sample, budget_s) for name in BASELINES}
    replay.play(len(sample))
    ours_cpu, made = 0.0, 0
    figures = []
    for name, (count, taken) in sorted(spans.items(), key=lambda span: span[1][0]):
        ours_cpu += timed(replay.play, count - made)[0].cpu
        made = count
        figures += [
            heading.figure(f"{name}.changes_per_s", f"strategy {name}", "changes/s", count / taken.wall),
            heading.figure(f"{name}.ratio", f"index over {name} on the same changes", "ratio", taken.cpu / ours_cpu),
        ]
    return figures


def _span(
    baseline: Baseline, name: str, values: FloatArray, sample: Int64Array, budget_s: float
) -> tuple[int, Seconds]:
    """(moves that a strategy makes after the sample within the budget, the time they take)."""
    touched = baseline.move(values[: len(sample)])
    counts = np.diff(touched.starts)
    if name == "unicast" and counts.tolist() != sample.tolist():
        raise AssertionError(f"{name} tells {counts.sum()}, but ours {sample.sum()}")
    left = values[len(sample) :]
    calls, taken = spent(budget_s, baseline.move, slices(left))
    return min(calls * MOVES_AT_A_TIME, len(left)), taken
