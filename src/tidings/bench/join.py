"""The join bench: rows of two tables that belong together, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Self

import numpy as np

from tidings.bench import Say, join_index, join_inline, join_peers, join_verify, spark_path
from tidings.bench.frame import Bench, Engine, Ratio, Words, run_bench
from tidings.bench.join_data import JoinData
from tidings.bench.join_peers import Peer
from tidings.bench.peers import Way, rate_within
from tidings.bench.report import Figure
from tidings.families.join.family import STRATEGIES
from tidings.model.codes import Int64Array
from tidings.workloads.drift_walk import FloatArray, IntArray
from tidings.workloads.join_scene import BinaryScene

SAMPLE = 200
"""So many insertions are compared with the peers, by whom they affect."""
_VERIFIED = 100
"""One of so many changes is made again on small scenes, where all answers are recomputed after each."""


class JoinBench(Bench[BinaryScene, Peer]):
    title = (
        "join: r JOIN s USING (b) WHERE r.a BETWEEN ? AND ? AND s.c BETWEEN ? AND ?, 16,000 and 5,100 rows, r changes"
    )
    gateway_max = 1_000_000
    compared = f"those affected by {SAMPLE:,} insertions as ours"
    ratios = (
        Ratio(
            f"index.{join_index.OURS.name}.changes_per_s",
            "ratio.peers",
            f"{join_index.OURS.strategy}: whole change over the best peer",
        ),
    )
    add_peers = staticmethod(join_peers.add_to)

    @cached_property
    def data(self) -> JoinData:
        return JoinData.make(self.size, self.options.changes, self.options.seed)

    def engines(self) -> Mapping[str, Engine]:
        return {"verify": self._verify, "index": self._index, "inline": self._inline, "spark": self._spark}

    def _verify(self) -> Iterator[Figure]:
        changes, words = self.options.changes // _VERIFIED, Words(told="notifications", told_unit="notifications")
        self.say(f"{len(STRATEGIES)} strategies: {changes:,} random changes against recomputation")
        for strategy, (wrong, told) in join_verify.differences(STRATEGIES, changes, self.options.seed).items():
            yield from words.figures(strategy, strategy, changes, wrong, told)

    def _index(self) -> Iterator[Figure]:
        return join_index.measure(self.data, self.say)

    def _inline(self) -> Iterator[Figure]:
        for strategy in join_inline.STRATEGIES:
            yield from join_inline.measure(self.data, strategy, self.options.seed, self.say)

    def _spark(self) -> list[Figure]:
        # Views of joins are told a row at a time: finished notifications would take minutes for every batch.
        return spark_path.measure(self.data, self.say, notified_max=0)

    @classmethod
    def in_turn(cls, benches: Sequence[Self], say: Say) -> Iterator[Mapping[int, Figure]]:
        for strategy in join_inline.STRATEGIES:
            say(f"{strategy}: all sizes in turn")
            yield join_inline.in_turn([bench.data for bench in benches], strategy)

    @property
    def given(self) -> BinaryScene:
        return self.data.scene

    @cached_property
    def _expected(self) -> list[Int64Array]:
        return join_index.sample(self.data, SAMPLE)

    def rate(self, peer: Peer, way: Way[BinaryScene, Peer]) -> float:
        scene, found = self.given, []
        sample = scene.changed[scene.is_insert][: len(self._expected)]
        for start in range(0, len(sample), way.at_a_time):
            row = sample[start : start + way.at_a_time]
            peer.find(scene.r_b[row], scene.r_a[row])
            found += peer.found()
        if not all(map(np.array_equal, found, self._expected)):
            raise AssertionError(f"{way.label}: those affected by {len(sample)} insertions are not ours")
        return rate_within(lambda part: peer.find(*part), _slices(scene, way.at_a_time), way.at_a_time)


def _slices(scene: BinaryScene, size: int) -> Iterator[tuple[IntArray, FloatArray]]:
    """Whole slices of the rows that come and go, after the sample."""
    for start in range(2 * SAMPLE, scene.changes - size + 1, size):
        row = scene.changed[start : start + size]
        yield scene.r_b[row], scene.r_a[row]


run = partial(run_bench, JoinBench)
