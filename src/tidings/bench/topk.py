"""The top-k bench: the best rows in my range, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tidings.bench import Options, Say, spark_path, topk_index, topk_inline, topk_verify
from tidings.bench.report import Figure, Heading, Report, short, shown
from tidings.bench.stamp import describe, load_average, stamp
from tidings.bench.timing import spent
from tidings.bench.topk_data import TopkData
from tidings.bench.topk_peers import Peers, Way
from tidings.model.codes import Int64Array
from tidings.model.errors import UsageError
from tidings.workloads.drift_walk import FloatArray
from tidings.workloads.topk_scene import Scene

SAMPLE = 200
"""So many changes are compared with the peers, by the answers after them."""
_INLINE_MAX = 1_000_000
"""With more subscriptions only the rankings are measured: the views of a gateway would fill the memory."""
_NOTIFIED_MAX = 10_000
"""On Spark people are there before the rows, and are told of each that comes: some seventy notifications for everybody."""
_PEER_BUDGET_S = 8.0


@dataclass
class _Work:
    """One size of one run."""

    options: Options
    size: int
    say: Say
    figures: list[Figure] = field(default_factory=list)

    @cached_property
    def data(self) -> TopkData:
        return TopkData.make(self.size, self.options.changes, self.options.seed)

    @property
    def is_first(self) -> bool:
        """Whether this is the size at which to do what does not depend on it."""
        return self.size == self.options.sizes[0]


def _verify(work: _Work) -> None:
    if not work.is_first:
        return
    changes = work.options.changes // len(topk_verify.LEVELS)
    for key, level in topk_verify.LEVELS.items():
        work.say(f"{level.label}: {changes:,} random changes against recomputation")
        wrong, told = topk_verify.differences(level, changes, work.options.seed)
        if wrong:
            raise AssertionError(f"{level.label}: {wrong} of the answers in {changes:,} changes differ")
        heading = Heading(f"verify.{key}", f"verify, {level.label}")
        work.figures += [
            heading.figure("changes", "random changes against recomputation", "changes", changes),
            heading.figure("told", "subscriptions told in these", "subscriptions", told),
            heading.figure("differences", "answers that differ, or told for nothing", "answers", wrong),
        ]


def _index(work: _Work) -> None:
    if work.is_first:
        work.figures += topk_index.measure_rows(work.options.changes, work.options.seed, work.say)
    work.figures += topk_index.measure_size(work.data, work.say)


def _inline(work: _Work) -> None:
    if work.size <= _INLINE_MAX:
        for strategy in topk_inline.STRATEGIES:
            work.figures += topk_inline.measure(work.data, strategy, work.options.seed, work.say)


def _spark(work: _Work) -> None:
    if work.size <= _INLINE_MAX:
        heading = Heading("spark.dense", "spark, dense")
        work.figures += spark_path.measure(work.data, work.say, heading, notified_max=_NOTIFIED_MAX)


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
    title = "topk: place BETWEEN ? AND ? ORDER BY score LIMIT 10, 10,000 rows, scores that jump"
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
    for strategy in topk_inline.STRATEGIES if len(sizes) > 1 else ():
        say(f"inline: {strategy}: all sizes in turn")
        every = [TopkData.make(size, options.changes, options.seed) for size in sizes]
        for size, figure in topk_inline.in_turn(every, strategy).items():
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
    expected = topk_index.sample(work.data.scene, SAMPLE)
    rates: dict[str, float] = {}
    for way in ways:
        say(f"{short(size)}: {way.label}")
        rates[way.label] = _peer_rate(way, work.data.scene, expected)
        report.add(size, [Figure(f"peer.{way.key}.changes_per_s", way.label, "changes/s", rates[way.label])])
    best = max(rates, key=lambda label: rates[label])
    checked = f"answers after {SAMPLE:,} changes as ours"
    report.notes.append(f"{short(size)}: best {best} ({shown(rates[best])} changes/s); all peers: {checked}")
    for way_of_ours in ("dense", "sparse"):
        ours = report.value(f"index.{way_of_ours}.changes_per_s", size)
        if ours is not None:
            label = f"{way_of_ours}: index alone over the best peer"
            report.add(size, [Figure(f"ratio.{way_of_ours}", label, "ratio", ours / rates[best])])


def _peer_rate(way: Way, scene: Scene, expected: Int64Array) -> float:
    """Changes a second, after some whose answers are compared with the expected."""
    peer = way.load(scene)
    try:
        peer.change(scene.changed[:SAMPLE], scene.new_score[:SAMPLE])
        if peer.answers().tolist() != expected.tolist():
            raise AssertionError(f"{way.label}: answers after {SAMPLE} changes are not ours")
        calls, taken = spent(_PEER_BUDGET_S, lambda part: peer.change(*part), _slices(scene, way.at_a_time))
    finally:
        peer.close()
    return calls * way.at_a_time / taken.wall


def _slices(scene: Scene, size: int) -> Iterator[tuple[Int64Array, FloatArray]]:
    """Whole slices of the changes after the sample."""
    for start in range(SAMPLE, scene.changes - size + 1, size):
        yield scene.changed[start : start + size], scene.new_score[start : start + size]
