"""The top-k bench: the best rows in a range, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import ClassVar

from research.bench.churn import Churn, Timed, churn
from research.bench.inline import InlineRun, whole_path
from research.bench.runner import SAMPLE, Bench, Ratio, run_bench
from research.bench.topk import index
from research.bench.topk.data import TopkData
from research.bench.topk.peers import add_to
from research.bench.topk.replay import crowds_of
from research.bench.verify import Verified
from research.workloads.topk.cases import topk_uniform
from research.workloads.topk.scene import Block, Scene
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import timed

STRATEGIES = ("dense", "sparse")


class TopkBench(Bench):
    title = "topk: place BETWEEN ? AND ? ORDER BY score LIMIT 10, 10,000 rows, scores that jump"
    gateway_max = 1_000_000
    ratios = tuple(
        Ratio(f"index.{name}.changes_per_s", f"ratio.{name}", f"{name}: index alone over the best peer")
        for name in STRATEGIES
    )
    inline_cases: ClassVar = {name: Heading(f"inline.{name}", f"inline, {name}") for name in STRATEGIES}
    verified = Verified("topk", topk_uniform, rows=30, subscriptions=40)
    # On Spark subscriptions are created before the rows: each gets some seventy notifications while rows are inserted.
    compared = f"answers after {SAMPLE:,} changes as ours"
    add_peers = staticmethod(add_to)

    @cached_property
    def data(self) -> TopkData:
        return TopkData.make(self.size, self.options.changes, self.options.seed)

    @property
    def given(self) -> Scene:
        return self.data.scene

    def dataset(self, case: str, changes: int) -> TopkData:
        return self.data

    def inline_run(self, case: str) -> InlineRun:
        # Subscriptions are created after the rows: snapshots take far less time than notifications of every insert.
        return InlineRun(self.data, {"topk": case}, has_forms=True, rows_first=True)

    def index(self) -> Iterator[Figure]:
        if self.is_first:
            yield from index.measure_rows(self.options.changes, self.options.seed, self.say)
        yield from index.measure_size(self.data, self.say)

    def inline(self) -> Iterator[Figure]:
        for strategy, heading in self.inline_cases.items():
            self.say(f"{strategy}: filling the server")
            run = self.inline_run(strategy)
            yield from whole_path(run, heading, self.say, strategy)
            self.say(f"{strategy}: adding and dropping subscriptions")
            new = Churn.of(_newcomers, self.options.seed, f"given the first {self.given.k} rows")
            # Only one of the strategies has subscriptions in an index of its own.
            alone = self._add_and_drop() if strategy == "sparse" else iter(())
            yield from churn(run, alone, new, heading)

    def _add_and_drop(self) -> Timed:
        """Among the subscriptions that `sparse` looks at."""
        crowds = crowds_of(self.data.coords())
        points = _newcomers(Churn.BULK, self.options.seed + 1).coords()
        columns = ([0] * len(points), points[:, 0], points[:, 1])
        adding, _ = timed(crowds.add, *columns)
        yield "index.add", f"add {len(points):,} at once, index alone", adding.wall / len(points)
        dropping, _ = timed(crowds.remove, *columns)
        yield "index.drop", f"drop {len(points):,} at once, index alone", dropping.wall / len(points)

    @cached_property
    def expected(self) -> list[int]:
        found: list[int] = index.answers_after(self.given, SAMPLE).tolist()
        return found

    def parts(self, start: int, at_a_time: int) -> Iterator[Block]:
        scene = self.given
        for at in range(start, scene.changes - at_a_time + 1, at_a_time):
            yield scene.changed[at : at + at_a_time], scene.new_score[at : at + at_a_time]


def _newcomers(count: int, seed: int) -> TopkData:
    return TopkData.make(count, 0, seed)


run = partial(run_bench, TopkBench)
