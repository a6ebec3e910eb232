"""The drift bench: tell me when it moved, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Self

from tidings.bench import Say, drift_index, drift_inline, drift_peers, drift_verify, spark_path
from tidings.bench.drift_baselines import slices
from tidings.bench.drift_cases import CASES
from tidings.bench.drift_data import DriftData
from tidings.bench.drift_index import SAMPLE
from tidings.bench.drift_peers import Peer
from tidings.bench.drift_timeline import Timeline
from tidings.bench.frame import Bench, Engine, Ratio, Words, run_bench
from tidings.bench.inline_path import in_turn
from tidings.bench.peers import Way, rate_within
from tidings.bench.report import Figure, Heading
from tidings.model.codes import Int64Array

_INLINE_CASES = ("radii", "items")
_VERIFIED = 10
"""So many times the changes of a run go through the comparison with the definition."""


class DriftBench(Bench[Timeline, Peer]):
    title = "drift: symbol = ? AND moved(price) >= ?, random walk"
    ratios = (Ratio("index.radii.changes_per_s", "ratio.index", "different radii: index alone over the best peer"),)
    add_peers = staticmethod(drift_peers.add_to)
    _sample: Int64Array | None = None
    """How many each of the first moves tells, once the index has made them."""

    @cached_property
    def given(self) -> Timeline:
        return self._make("radii")

    def _make(self, name: str, changes: int | None = None) -> Timeline:
        return CASES[name].make(self.size, changes or self.options.changes, self.options.seed)

    def engines(self) -> Mapping[str, Engine]:
        return {"verify": self._verify, "index": self._index, "inline": self._inline, "spark": self._spark}

    def _verify(self) -> Iterator[Figure]:
        moves = _VERIFIED * self.options.changes
        words = Words(against="the definition", wrong="decisions that differ", wrong_unit="decisions")
        for key, level in drift_verify.LEVELS.items():
            self.say(f"{level.label}: {moves:,} random changes against the definition")
            wrong, told = drift_verify.differences(level, moves, self.options.seed)
            yield from words.figures(key, level.label, moves, wrong, told)

    def _index(self) -> Iterator[Figure]:
        for name in CASES:
            indexed = drift_index.measure(name, self.given if name == "radii" else self._make(name), self.say)
            yield from indexed.figures
            if name == "radii":
                self._sample = indexed.sample_counts

    def _inline(self) -> Iterator[Figure]:
        for name in _INLINE_CASES:
            data, seed = DriftData(self._make(name)), self.options.seed
            yield from drift_inline.measure(name, data, seed, self.say, has_churn=name == "radii")

    def _spark(self) -> list[Figure]:
        heading = Heading("spark.items", f"spark, {CASES['items'].label}")
        return spark_path.measure(DriftData(self._make("items", spark_path.CHANGES_MAX)), self.say, heading)

    @classmethod
    def in_turn(cls, benches: Sequence[Self], say: Say) -> Iterator[Mapping[int, Figure]]:
        for name in _INLINE_CASES:
            say(f"{CASES[name].label}: all sizes in turn")
            yield in_turn([DriftData(bench._make(name)) for bench in benches], drift_inline.heading_of(name))

    @property
    def compared(self) -> str:
        return "not compared" if self._sample is None else f"told by {SAMPLE:,} changes as ours"

    def rate(self, peer: Peer, way: Way[Timeline, Peer]) -> float:
        # The first move has told everybody.
        values, ours = self.given.move_value[1:], self._sample
        counts = peer.move(values[:SAMPLE])
        if ours is not None and counts.tolist() != ours.tolist():
            raise AssertionError(f"{way.label}: {counts.sum()} told, but ours are {ours.sum()}")
        whole = (len(values) - SAMPLE) // way.at_a_time * way.at_a_time
        return rate_within(peer.move, slices(values[SAMPLE : SAMPLE + whole], way.at_a_time), way.at_a_time)


run = partial(run_bench, DriftBench)
