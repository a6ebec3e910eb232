"""The top-k bench: the best rows in my range, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Self

from tidings.bench import Say, spark_path, topk_index, topk_inline, topk_peers, topk_verify
from tidings.bench.frame import Bench, Engine, Ratio, Words, run_bench
from tidings.bench.peers import Way, rate_within
from tidings.bench.report import Figure, Heading
from tidings.bench.topk_data import TopkData
from tidings.bench.topk_peers import Peer
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray
from tidings.workloads.topk.scene import Scene

SAMPLE = 200
"""So many changes are compared with the peers, by the answers after them."""
_NOTIFIED_MAX = 10_000
"""On Spark people are there before the rows, and are told of each that comes: some seventy notifications for everybody."""


class TopkBench(Bench[Scene, Peer]):
    title = "topk: place BETWEEN ? AND ? ORDER BY score LIMIT 10, 10,000 rows, scores that jump"
    gateway_max = 1_000_000
    compared = f"answers after {SAMPLE:,} changes as ours"
    ratios = tuple(
        Ratio(f"index.{name}.changes_per_s", f"ratio.{name}", f"{name}: index alone over the best peer")
        for name in ("dense", "sparse")
    )
    add_peers = staticmethod(topk_peers.add_to)

    @cached_property
    def data(self) -> TopkData:
        return TopkData.make(self.size, self.options.changes, self.options.seed)

    def engines(self) -> Mapping[str, Engine]:
        return {"verify": self._verify, "index": self._index, "inline": self._inline, "spark": self._spark}

    def _verify(self) -> Iterator[Figure]:
        changes = self.options.changes // len(topk_verify.LEVELS)
        for key, level in topk_verify.LEVELS.items():
            self.say(f"{level.label}: {changes:,} random changes against recomputation")
            wrong, told = topk_verify.differences(level, changes, self.options.seed)
            yield from Words().figures(key, level.label, changes, wrong, told)

    def _index(self) -> Iterator[Figure]:
        if self.is_first:
            yield from topk_index.measure_rows(self.options.changes, self.options.seed, self.say)
        yield from topk_index.measure_size(self.data, self.say)

    def _inline(self) -> Iterator[Figure]:
        for strategy in topk_inline.STRATEGIES:
            yield from topk_inline.measure(self.data, strategy, self.options.seed, self.say)

    def _spark(self) -> list[Figure]:
        heading = Heading("spark.dense", "spark, dense")
        return spark_path.measure(self.data, self.say, heading, notified_max=_NOTIFIED_MAX)

    @classmethod
    def in_turn(cls, benches: Sequence[Self], say: Say) -> Iterator[Mapping[int, Figure]]:
        for strategy in topk_inline.STRATEGIES:
            say(f"{strategy}: all sizes in turn")
            yield topk_inline.in_turn([bench.data for bench in benches], strategy)

    @property
    def given(self) -> Scene:
        return self.data.scene

    @cached_property
    def _expected(self) -> Int64Array:
        return topk_index.sample(self.given, SAMPLE)

    def rate(self, peer: Peer, way: Way[Scene, Peer]) -> float:
        scene = self.given
        peer.change(scene.changed[:SAMPLE], scene.new_score[:SAMPLE])
        if peer.answers().tolist() != self._expected.tolist():
            raise AssertionError(f"{way.label}: answers after {SAMPLE} changes are not ours")
        return rate_within(lambda part: peer.change(*part), _slices(scene, way.at_a_time), way.at_a_time)


def _slices(scene: Scene, size: int) -> Iterator[tuple[Int64Array, FloatArray]]:
    """Whole slices of the changes after the sample."""
    for start in range(SAMPLE, scene.changes - size + 1, size):
        yield scene.changed[start : start + size], scene.new_score[start : start + size]


run = partial(run_bench, TopkBench)
