"""The drift bench: movement subscriptions, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from research.bench.churn import Churn, Timed, churn
from research.bench.drift import index
from research.bench.drift.cases import CASES
from research.bench.drift.data import DriftData, Timeline
from research.bench.drift.peers import add_to
from research.bench.drift.replay import DriftReplay
from research.bench.inline import InlineRun, whole_path
from research.bench.runner import SAMPLE, Bench, Ratio, run_bench
from research.bench.verify import Verified
from research.strategies.drift.kernels.threshold_index import CHOOSE
from research.workloads.drift.all import drift_all
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import timed
from tidings.workloads.draws import FloatArray


class DriftBench(Bench):
    title = "drift: symbol = ? AND moved(price) >= ?, random walk"
    ratios = (Ratio("index.radii.changes_per_s", "ratio.index", "different radii: index alone over the best peer"),)
    inline_cases: ClassVar = {
        name: Heading(f"inline.{name}", f"inline, {CASES[name].label}") for name in ("radii", "items")
    }
    verified = Verified("drift", drift_all, rows=1, subscriptions=300)
    verified_share = 50
    compared = f"told by {SAMPLE:,} changes as ours"
    add_peers = staticmethod(add_to)
    expected: list[int] | None = None
    """[SAMPLE]: members notified by each of the first moves; None until the index has run."""

    @cached_property
    def given(self) -> Timeline:
        return self.timeline("radii")

    def timeline(self, case: str, changes: int | None = None) -> Timeline:
        return CASES[case].make(self.size, changes or self.options.changes, self.options.seed)

    def dataset(self, case: str, changes: int) -> DriftData:
        return DriftData(self.timeline(case, changes))

    def inline_run(self, case: str) -> InlineRun:
        return InlineRun(DriftData(self.timeline(case)))

    def index(self) -> Iterator[Figure]:
        for name in CASES:
            indexed = index.measure(name, self.given if name == "radii" else self.timeline(name), self.say)
            yield from indexed.figures
            if name == "radii":
                self.expected = indexed.told.tolist()

    def inline(self) -> Iterator[Figure]:
        for name, heading in self.inline_cases.items():
            run = self.inline_run(name)
            yield from whole_path(run, heading, self.say, CASES[name].label)
            if name == "radii":
                self.say("adding and dropping subscriptions")
                new = Churn.of(_newcomers, self.options.seed, "told the current row")
                yield from churn(run, self._add_and_drop(), new, heading)

    def _add_and_drop(self) -> Timed:
        """In an index that has made all moves."""
        replay = DriftReplay(self.given)
        replay.play(replay.timeline.moves)
        reach = _newcomers(Churn.BULK, self.options.seed + 1).timeline.member_reach
        audience, choose = np.zeros(len(reach), np.int64), np.full(len(reach), CHOOSE)
        adding, label = timed(replay.anchors.add, audience, reach, choose)
        yield "index.add", f"add {len(reach):,} at once, index alone", adding.wall / len(reach)
        dropping, _ = timed(replay.anchors.remove, audience, reach, label)
        yield "index.drop", f"drop {len(reach):,} at once, index alone", dropping.wall / len(reach)

    def parts(self, start: int, at_a_time: int) -> Iterator[FloatArray]:
        # The first move has notified all members.
        values = self.given.move_value[1:]
        for at in range(start, len(values) - at_a_time + 1, at_a_time):
            yield values[at : at + at_a_time]


def _newcomers(count: int, seed: int) -> DriftData:
    return DriftData(CASES["radii"].make(count, 1, seed))


run = partial(run_bench, DriftBench)
