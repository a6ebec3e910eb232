"""The drift bench: tell me when it moved, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tidings.bench import Options, Say, drift_index, drift_inline, drift_verify, spark_path
from tidings.bench.drift_baselines import slices
from tidings.bench.drift_cases import CASES
from tidings.bench.drift_data import DriftData
from tidings.bench.drift_peers import Peers
from tidings.bench.drift_timeline import Timeline
from tidings.bench.inline_path import in_turn
from tidings.bench.report import Figure, Heading, Report, short, shown
from tidings.bench.stamp import describe, load_average, stamp
from tidings.bench.timing import spent
from tidings.model.codes import Int64Array
from tidings.model.errors import UsageError

_INLINE_CASES = ("radii", "items")
_PEER_BUDGET_S = 8.0
_VERIFIED = 10
"""So many times the changes of a run go through the comparison with the definition."""


@dataclass
class _Work:
    """One size of one run."""

    options: Options
    size: int
    say: Say
    figures: list[Figure] = field(default_factory=list)
    timeline: Timeline | None = None
    sample: Int64Array | None = None
    """Of the first case: what peers are given, and how many each of its first moves tells."""

    def make(self, name: str, changes: int | None = None) -> Timeline:
        return CASES[name].make(self.size, changes or self.options.changes, self.options.seed)


def _index(work: _Work) -> None:
    for name in CASES:
        timeline = work.make(name)
        indexed = drift_index.measure(name, timeline, work.say)
        work.figures += indexed.figures
        if name == "radii":
            work.timeline, work.sample = timeline, indexed.sample_counts


def _inline(work: _Work) -> None:
    for name in _INLINE_CASES:
        data = DriftData(work.make(name))
        seed, has_churn = work.options.seed, name == "radii"
        work.figures += drift_inline.measure(name, data, seed, work.say, has_churn=has_churn)


def _spark(work: _Work) -> None:
    heading = Heading("spark.items", f"spark, {CASES['items'].label}")
    work.figures += spark_path.measure(DriftData(work.make("items", spark_path.CHANGES_MAX)), work.say, heading)


def _verify(work: _Work) -> None:
    """Once, as it does not depend on the size."""
    if work.size != work.options.sizes[0]:
        return
    moves = _VERIFIED * work.options.changes
    for key, level in drift_verify.LEVELS.items():
        work.say(f"{level.label}: {moves:,} random changes against the definition")
        wrong, told = drift_verify.differences(level, moves, work.options.seed)
        if wrong:
            raise AssertionError(f"{level.label}: {wrong} of the decisions in {moves:,} changes differ")
        heading = Heading(f"verify.{key}", f"verify, {level.label}")
        work.figures += [
            heading.figure("changes", "random changes against the definition", "changes", moves),
            heading.figure("told", "subscriptions told in these", "subscriptions", told),
            heading.figure("differences", "decisions that differ", "decisions", wrong),
        ]


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
    title = "drift: symbol = ? AND moved(price) >= ?, random walk"
    report = Report(title, options.sizes, stamp(options.seed))
    say("warming up: kernels are compiled on their first use")
    tiny = Options((1_000,), 20_000, has_peers=False, seed=options.seed)
    for name in engines:
        ENGINES[name](_Work(tiny, 1_000, lambda _: None))
    if "inline" in engines and len(options.sizes) > 1:
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
    for name in _INLINE_CASES:
        say(f"inline: {CASES[name].label}: all sizes in turn")
        sizes = [DriftData(CASES[name].make(size, options.changes, options.seed)) for size in options.sizes]
        for size, figure in in_turn(sizes, drift_inline.heading_of(name)).items():
            report.add(size, [figure])


def _measure(report: Report, options: Options, size: int, engines: tuple[str, ...], peers: Peers, say: Say) -> None:
    work = _Work(options, size, say)
    for name in engines:
        work.say = lambda text, name=name: say(f"{short(size)}: {name}: {text}")  # type: ignore[misc]
        ENGINES[name](work)
        report.add(size, work.figures)
    work.say = lambda text: say(f"{short(size)}: {text}")
    rates: dict[str, float] = {}
    for figure in _measure_peers(work, peers):
        report.add(size, [figure])
        rates[figure.label] = figure.value
    if not rates:
        return
    best = max(rates, key=lambda label: rates[label])
    is_checked = work.sample is not None
    checked = f"told by {drift_index.SAMPLE:,} changes as ours" if is_checked else "not compared"
    report.notes.append(f"{short(size)}: best {best} ({shown(rates[best])} changes/s); all peers: {checked}")
    ours = report.value("index.radii.changes_per_s", size)
    if ours is not None:
        label = "different radii: index alone over the best peer"
        report.add(size, [Figure("ratio.index", label, "ratio", ours / rates[best])])


def _measure_peers(work: _Work, peers: Peers) -> Iterator[Figure]:
    if not peers.ways:
        return
    timeline = work.timeline or work.make("radii")
    values, sample = timeline.move_value, work.sample
    for key, label, batch, load in peers.ways:
        work.say(label)
        peer = load(timeline.member_reach, float(values[0]))
        try:
            counts = peer.move(values[1 : 1 + drift_index.SAMPLE])
            if sample is not None and counts.tolist() != sample.tolist():
                raise AssertionError(f"{label}: {counts.sum()} told, but ours are {sample.sum()}")
            left = values[1 + drift_index.SAMPLE :]
            calls, taken = spent(_PEER_BUDGET_S, peer.move, slices(left, batch))
        finally:
            peer.close()
        yield Figure(f"peer.{key}.changes_per_s", label, "changes/s", min(calls * batch, len(left)) / taken.wall)
