"""The select bench: one equality and two ranges, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Self

import pyarrow as pa

from tidings.bench import Say, inline_path, peers, select_inline, select_peers, spark_path
from tidings.bench.frame import Bench, Engine, Ratio, run_bench
from tidings.bench.peers import Way
from tidings.bench.report import Figure
from tidings.bench.select_data import SelectData
from tidings.bench.select_inline import SAMPLE
from tidings.bench.select_peers import Peer
from tidings.bench.timing import within
from tidings.model.codes import Int64Array


class SelectBench(Bench[SelectData, Peer]):
    title = "select: kind = ? AND a BETWEEN ? AND ? AND b BETWEEN ? AND ?"
    ratios = (
        # Peers keep no table and look for the new row only, as does the first of these; the second is what users get.
        Ratio("inline.match.changes_per_s", "ratio.match", "new rows to ids: index alone over the best peer"),
        Ratio(
            "inline.ids.changes_per_s",
            "ratio.ids",
            "changes to ids: inline with tables and old rows over the best peer",
        ),
    )
    add_peers = staticmethod(select_peers.add_to)
    _sample: Int64Array | None = None
    """How many subscriptions match each of the first changes, once the inline engine has seen them."""

    @cached_property
    def given(self) -> SelectData:
        return SelectData.make(self.size, self.options.changes, self.options.seed)

    def engines(self) -> Mapping[str, Engine]:
        return {"inline": self._inline, "spark": self._spark}

    def _inline(self) -> list[Figure]:
        measured = select_inline.measure(self.given, self.say)
        self._sample = measured.sample_counts
        return measured.figures

    def _spark(self) -> list[Figure]:
        return spark_path.measure(self.given, self.say)

    @classmethod
    def in_turn(cls, benches: Sequence[Self], say: Say) -> Iterator[Mapping[int, Figure]]:
        say("all sizes in turn")
        yield inline_path.in_turn([bench.given for bench in benches])

    @property
    def compared(self) -> str:
        ours = self._sample
        return "matches not compared" if ours is None else f"matches of {len(ours):,} changes agree with ours"

    def rate(self, peer: Peer, way: Way[SelectData, Peer]) -> float:
        first, ours = next(self.given.updates()).rows, self._sample
        counts = peer.counts(first.slice(0, SAMPLE))
        if ours is not None and counts.tolist() != ours.tolist():
            raise AssertionError(f"{way.label}: {counts.sum()} matches, but ours are {ours.sum()}")
        # Once for the warm-up, because the first join of a kind is planned and compiled.
        peer.match(first.slice(0, way.at_a_time))
        taken = within(peers.BUDGET_S, peer.match, _slices(self.given, way.at_a_time))
        return min(way.at_a_time, self.given.changes) / taken


def _slices(data: SelectData, size: int) -> Iterator[pa.RecordBatch]:
    """New rows of the changes, so many at a time."""
    for changes in data.updates():
        for start in range(0, len(changes) - size + 1, size):
            yield changes.rows.slice(start, size)
        if len(changes) < size:
            yield changes.rows


run = partial(run_bench, SelectBench)
