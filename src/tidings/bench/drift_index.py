"""The drift index alone: moves to ranges of radii and labels, and what sending these saves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from tidings.bench import Say, drift_baselines
from tidings.bench.drift_cases import CASES
from tidings.bench.drift_data import BATCH, DriftData
from tidings.bench.drift_player import Player
from tidings.bench.drift_timeline import Timeline
from tidings.bench.drift_wire import region_bytes, unicast_bytes
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import timed
from tidings.kernels.anchors import NO_TIME
from tidings.model.codes import Int64Array
from tidings.workloads.drift.radii import WALK

SAMPLE = 200
"""So many moves are compared with the baselines and the peers, by the number of members told."""
BASELINE_BUDGET_S = 2.0
_FIRST = 1_000
"""Moves at the beginning that are taken by themselves: whoever is told by the same move is told the same from then on,
so members who came at different moments are soon as one."""
_AGE = 10
"""An old index has made so many times the moves of a run."""


@dataclass
class Indexed:
    figures: list[Figure] = field(default_factory=list)
    sample_counts: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    """How many members each of the first moves tells."""


def measure(name: str, timeline: Timeline, say: Say, *, has_baselines: bool = True) -> Indexed:
    """One case, from the moment all members are there."""
    case = CASES[name]
    heading = Heading(f"index.{name}", f"index, {case.label}")
    say(case.label)
    player, other = Player(timeline), Player(timeline)
    player.settle()
    run = _Run(player, heading)
    indexed = Indexed(run.figures(), run.told[:SAMPLE])
    if has_baselines and len(timeline.names) == 1:
        say(f"{case.label}: scan and unicast")
        other.settle()
        indexed.figures += drift_baselines.measure(other, heading, indexed.sample_counts, BASELINE_BUDGET_S)
    if name == "radii":
        say(f"{case.label}: an old index")
        indexed.figures.append(_aged(player, heading))
    return indexed


class _Run:
    """All moves that are left, in batches."""

    def __init__(self, player: Player, heading: Heading) -> None:
        self._player = player
        self._heading = heading
        self._data = DriftData(player.timeline)
        self._members = player.members()
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
        while self._player.at < self._player.timeline.moves:
            taken, played = timed(self._player.play, count)
            count = BATCH
            self._wall.append(taken.wall / len(played))
            self._cpu.append(taken.cpu / len(played))
            told = self._player.told(played, self._members)
            yield told, np.diff(played.touched.starts), region_bytes(self._data, played)

    def figures(self) -> list[Figure]:
        figure, told, boxes = self._heading.figure, self.told, self._boxes
        sent = int(np.count_nonzero(boxes))
        nbytes = self._player.anchors.nbytes / self._player.timeline.size
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


def _aged(player: Player, heading: Heading) -> Figure:
    """The rate after many more moves of the only item: the index gets more to keep apart as it ages."""
    timeline = player.timeline
    rng = np.random.default_rng(timeline.moves)
    value = float(timeline.move_value[-1])
    rates: list[float] = []
    rounds = max(1, timeline.moves // BATCH)
    for _ in range(_AGE * rounds):
        values = (value + np.cumsum(rng.normal(WALK.drift, WALK.sigma, size=BATCH))).round(2)
        value = float(values[-1])
        items, times = np.zeros(BATCH, np.int64), np.full(BATCH, NO_TIME)
        rates.append(BATCH / timed(player.anchors.move, items, values, times)[0].wall)
    label = f"changes to ranges, after {_AGE * rounds * BATCH:,} more"
    return heading.figure("aged.changes_per_s", label, "changes/s", median(rates[-rounds:]))
