"""The join bench: joins of two tables, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import ClassVar

from research.bench.inline import InlineRun
from research.bench.join import index, inline
from research.bench.join.data import JoinData
from research.bench.join.peers import RowsOfR, add_to
from research.bench.runner import SAMPLE, Bench, Ratio, run_bench
from research.bench.verify import Verified
from research.workloads.join.binary import BinaryCase, BinaryScene
from research.workloads.join.draws import widths
from research.workloads.join.workloads import binary
from tidings.bench.report import Figure, Heading

_DENSE = BinaryCase(r_size=20, s_size=20, join_values=4, width_a=widths(40_000.0), width_c=widths(40_000.0))
"""Few rows and wide ranges: most changes alter some answer."""


class JoinBench(Bench):
    title = (
        "join: r JOIN s USING (b) WHERE r.a BETWEEN ? AND ? AND s.c BETWEEN ? AND ?, 16,000 and 5,100 rows, r changes"
    )
    gateway_max = 1_000_000
    ratios = (
        Ratio(
            f"index.{index.OURS.name}.changes_per_s",
            "ratio.peers",
            f"{index.OURS.strategy}: whole change over the best peer",
        ),
    )
    inline_cases: ClassVar = {name: Heading(f"inline.{name}", f"inline, {name}") for name in inline.STRATEGIES}
    verified = Verified("join", partial(binary, _DENSE), rows=20, subscriptions=30)
    # Join views apply one row at a time: finished notifications would take minutes for every batch.
    compared = f"those affected by {SAMPLE:,} insertions as ours"
    add_peers = staticmethod(add_to)

    @cached_property
    def data(self) -> JoinData:
        return JoinData.make(self.size, self.options.changes, self.options.seed)

    @property
    def given(self) -> BinaryScene:
        return self.data.scene

    def dataset(self, case: str, changes: int) -> JoinData:
        return self.data

    def inline_run(self, case: str) -> InlineRun:
        return inline.run_of(self.data, case, has_views=False)

    def index(self) -> Iterator[Figure]:
        return index.measure(self.data, self.say)

    def inline(self) -> Iterator[Figure]:
        for strategy, heading in self.inline_cases.items():
            yield from inline.measure(self.data, strategy, heading, self.options.seed, self.say)

    @cached_property
    def expected(self) -> list[list[int]]:
        return [members.tolist() for members in index.affected_by(self.data, SAMPLE)]

    def sample(self, at_a_time: int) -> Iterator[RowsOfR]:
        """The first insertions."""
        scene = self.given
        rows = scene.changed[scene.is_insert][: len(self.expected)]
        for start in range(0, len(rows), at_a_time):
            row = rows[start : start + at_a_time]
            yield scene.r_b[row], scene.r_a[row]

    def parts(self, start: int, at_a_time: int) -> Iterator[RowsOfR]:
        """Inserted and deleted rows, after the sample of insertions."""
        scene = self.given
        for at in range(2 * start, scene.changes - at_a_time + 1, at_a_time):
            row = scene.changed[at : at + at_a_time]
            yield scene.r_b[row], scene.r_a[row]


run = partial(run_bench, JoinBench)
