"""The join bench: rows of two tables that belong together, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tidings.bench import Options, Say, join_index, join_inline, join_verify, spark_path
from tidings.bench.join_data import JoinData
from tidings.bench.join_peers import Peers, Way
from tidings.bench.report import Figure, Heading, Report, short, shown
from tidings.bench.stamp import describe, load_average, stamp
from tidings.bench.timing import spent
from tidings.families.join.choice import NAMES
from tidings.model.codes import Int64Array
from tidings.model.errors import UsageError
from tidings.workloads.drift_walk import FloatArray, IntArray
from tidings.workloads.join_scene import BinaryScene

SAMPLE = 200
"""So many insertions are compared with the peers, by whom they affect."""
_INLINE_MAX = 1_000_000
"""With more subscriptions only the server alone is measured: the views of a gateway would fill the memory."""
_PEER_BUDGET_S = 8.0
_VERIFIED = 100
"""One of so many changes is made again on small scenes, where all answers are recomputed after each."""


@dataclass
class _Work:
    """One size of one run."""

    options: Options
    size: int
    say: Say
    figures: list[Figure] = field(default_factory=list)

    @cached_property
    def data(self) -> JoinData:
        return JoinData.make(self.size, self.options.changes, self.options.seed)

    @property
    def is_first(self) -> bool:
        """Whether this is the size at which to do what does not depend on it."""
        return self.size == self.options.sizes[0]


def _verify(work: _Work) -> None:
    if not work.is_first:
        return
    changes = work.options.changes // _VERIFIED
    work.say(f"{len(NAMES)} strategies: {changes:,} random changes against recomputation")
    for strategy, (wrong, told) in join_verify.differences(NAMES, changes, work.options.seed).items():
        if wrong:
            raise AssertionError(f"{strategy}: {wrong} of the answers in {changes:,} changes differ")
        heading = Heading(f"verify.{strategy}", f"verify, {strategy}")
        work.figures += [
            heading.figure("changes", "random changes against recomputation", "changes", changes),
            heading.figure("told", "notifications in these", "notifications", told),
            heading.figure("differences", "answers that differ, or told for nothing", "answers", wrong),
        ]


def _index(work: _Work) -> None:
    work.figures += join_index.measure(work.data, work.say)


def _inline(work: _Work) -> None:
    if work.size <= _INLINE_MAX:
        for strategy in join_inline.STRATEGIES:
            work.figures += join_inline.measure(work.data, strategy, work.options.seed, work.say)


def _spark(work: _Work) -> None:
    if work.size <= _INLINE_MAX:
        # Views of joins are told a row at a time: finished notifications would take minutes for every batch.
        work.figures += spark_path.measure(work.data, work.say, notified_max=0)


ENGINES: dict[str, Callable[[_Work], None]] = {
    "verify": _verify,
    "index": _index,
    "inline": _inline,
    "spark": _spark,
}


def run(options: Options, say: Say) -> Report:
    engines = options.engines or tuple(ENGINES)
    for name in engines:
        if name not in ENGINES:
            raise UsageError(f"unknown engine {name!r}; there are: {', '.join(ENGINES)}")
    title = (
        "join: r JOIN s USING (b) WHERE r.a BETWEEN ? AND ? AND s.c BETWEEN ? AND ?, 16,000 and 5,100 rows, r changes"
    )
    report = Report(title, options.sizes, stamp(options.seed))
    say("warming up: kernels are compiled on their first use")
    tiny = Options((1_000,), min(20_000, options.changes), has_peers=False, seed=options.seed)
    for name in engines:
        ENGINES[name](_Work(tiny, 1_000, lambda _: None))
    if "inline" in engines:
        _in_turn(report, options, say)
    with Peers.start(options.has_peers, say) as peers:
        for size in options.sizes:
            _measure(report, options, size, engines, peers, say)
    report.stamp["load_average_end"] = load_average()
    report.notes.append(describe(report.stamp))
    if peers.missing:
        report.notes.append(f"peers left out because they are not installed: {', '.join(peers.missing)}")
    return report


def _in_turn(report: Report, options: Options, say: Say) -> None:
    sizes = [size for size in options.sizes if size <= _INLINE_MAX]
    for strategy in join_inline.STRATEGIES if len(sizes) > 1 else ():
        say(f"inline: {strategy}: all sizes in turn")
        every = [JoinData.make(size, options.changes, options.seed) for size in sizes]
        for size, figure in join_inline.in_turn(every, strategy).items():
            report.add(size, [figure])


def _measure(report: Report, options: Options, size: int, engines: tuple[str, ...], peers: Peers, say: Say) -> None:
    work = _Work(options, size, say)
    for name in engines:
        work.say = lambda text, name=name: say(f"{short(size)}: {name}: {text}")  # type: ignore[misc]
        ENGINES[name](work)
        report.add(size, work.figures)
    ways = [way for way in peers.ways if size <= way.size_max]
    if not ways:
        return
    expected = join_index.sample(work.data, SAMPLE)
    rates: dict[str, float] = {}
    for way in ways:
        say(f"{short(size)}: {way.label}")
        rates[way.label] = _peer_rate(way, work.data.scene, expected)
        report.add(size, [Figure(f"peer.{way.key}.changes_per_s", way.label, "changes/s", rates[way.label])])
    best = max(rates, key=lambda label: rates[label])
    checked = f"those affected by {SAMPLE:,} insertions as ours"
    report.notes.append(f"{short(size)}: best {best} ({shown(rates[best])} changes/s); all peers: {checked}")
    ours = report.value(f"index.{join_index.OURS.name}.changes_per_s", size)
    if ours is not None:
        label = f"{join_index.OURS.strategy}: whole change over the best peer"
        report.add(size, [Figure("ratio.peers", label, "ratio", ours / rates[best])])


def _peer_rate(way: Way, scene: BinaryScene, expected: list[Int64Array]) -> float:
    """Changes a second, after some insertions for which those found are compared with the expected."""
    peer = way.load(scene)
    try:
        sample, found = scene.changed[scene.is_insert][: len(expected)], []
        for start in range(0, len(sample), way.at_a_time):
            row = sample[start : start + way.at_a_time]
            peer.find(scene.r_b[row], scene.r_a[row])
            found += peer.found()
        if not all(map(np.array_equal, found, expected)):
            raise AssertionError(f"{way.label}: those affected by {len(expected)} insertions are not ours")
        calls, taken = spent(_PEER_BUDGET_S, lambda part: peer.find(*part), _slices(scene, way.at_a_time))
    finally:
        peer.close()
    return calls * way.at_a_time / taken.wall


def _slices(scene: BinaryScene, size: int) -> Iterator[tuple[IntArray, FloatArray]]:
    """Whole slices of the rows that come and go, after the sample."""
    for start in range(2 * SAMPLE, scene.changes - size + 1, size):
        row = scene.changed[start : start + size]
        yield scene.r_b[row], scene.r_a[row]
