"""The mix bench: the whole path as users have it, JSON lines in and notification lines out, with mixed subscriptions.

Cases: the market and auctions workloads, the selections of the market, and searches of a thousand shapes; each with all
subscriptions from the start, and with churn.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from tidings.bench import Options, Say, known_names
from tidings.bench.mix import inline, spark
from tidings.bench.mix.cases import CASES, Case, MixData
from tidings.bench.mix.inline import Measured, changes_needed
from tidings.bench.mix.peers import Compared, MixWay, ways
from tidings.bench.peers import Peers
from tidings.bench.report import Heading, Report, short
from tidings.bench.stamp import describe, load_average, stamp

TITLE = "mix: JSON lines in, notification lines out"
BATCHES = (1, 10, 100, 1_000, 10_000)
CHURN = changes_needed(BATCHES, 100_000)
"""Churn is spread over at least this many changes, so that it is as dense whichever batch sizes are measured."""
SPARK_SIZES = range(10_000, 100_001)
"""With fewer subscriptions Spark's overhead dominates; with more a run takes an hour."""
_ENGINES = ("inline", "spark")
_TINY, _TINY_CHANGES, _TINY_BATCH_MAX = 300, 40, 100


def run(options: Options, say: Say, known: Mapping[str, Case] = CASES) -> Report:
    engines = known_names("engine", options.engines, _ENGINES)
    cases = [known[key] for key in known_names("case", options.cases, known)]
    report = Report(TITLE, options.sizes, stamp(options.seed))
    bench = _Mix(options, report, say)
    if "inline" in engines:
        say("warming up: kernels are compiled on their first use")
        for case in cases:
            bench.warm_up(case)
    with ExitStack() as stack:
        peers = Peers(stack, say)
        # Without our engine on Spark there is no Spark peer either.
        found = ways(peers, has_spark="spark" in engines) if options.has_peers else []
        for case in cases:
            for size in options.sizes:
                bench.inline(case, size, found, is_engine="inline" in engines)
    if "spark" in engines:
        # Peers have stopped their session, since our engine needs other settings.
        for case in cases:
            bench.spark(case)
    report.stamp["load_average_end"] = load_average()
    report.notes.append(describe(report.stamp))
    if peers.missing:
        report.notes.append(f"peers left out because they are not installed: {', '.join(peers.missing)}")
    return report


class _Mix:
    """Measures cases and adds figures to the report."""

    def __init__(self, options: Options, report: Report, say: Say) -> None:
        self._options = options
        self._report = report
        self._tell = say
        self._batches = options.batches or BATCHES

    def warm_up(self, case: Case) -> None:
        small = [size for size in self._batches if size <= _TINY_BATCH_MAX]
        live = changes_needed(small, _TINY_CHANGES)
        data = case.data(_TINY, live, self._options.seed, has_churn=True)
        inline.measure(data, small, _TINY_CHANGES, Heading("", ""), lambda _: None)

    def inline(self, case: Case, size: int, peers: list[MixWay], *, is_engine: bool) -> None:
        """The engine without churn, peers on the same lines, the engine with churn, and a whole replay."""
        say = self._saying(case, size)
        data = self._data(case, size, has_churn=False)
        ours = self._measure(case, size, data, "steady", case.label) if is_engine else None
        self._compare(case, size, data, ours, peers)
        if is_engine:
            data = self._data(case, size, has_churn=True)
            self._measure(case, size, data, "churn", f"{case.label}, with churn")
            say(f"replay of {case.replayed:,} changes")
            heading = Heading(f"{case.key}.replay", f"{case.label}, whole replay with churn")
            self._report.add(size, inline.replay(case.whole(size, self._options.seed), heading))

    def spark(self, case: Case) -> None:
        for size in self._options.sizes:
            if size in SPARK_SIZES:
                data = case.data(size, spark.CHANGES, self._options.seed, has_churn=True)
                heading = Heading(f"{case.key}.spark", f"{case.label}, with churn, on Spark")
                self._report.add(size, spark.measure(data, heading, self._saying(case, size)))
            else:
                limits = f"{short(SPARK_SIZES[0])} to {short(SPARK_SIZES[-1])}"
                self._report.notes.append(f"{case.label}, {short(size)}: not on Spark, which is measured with {limits}")

    def _data(self, case: Case, size: int, *, has_churn: bool) -> MixData:
        needed = changes_needed(self._batches, self._options.changes)
        return case.data(size, max(needed, CHURN) if has_churn else needed, self._options.seed, has_churn=has_churn)

    def _measure(self, case: Case, size: int, data: MixData, key: str, label: str) -> Measured:
        heading = Heading(f"{case.key}.{key}", label)
        found = inline.measure(data, self._batches, self._options.changes, heading, self._saying(case, size))
        self._report.add(size, found.figures)
        return found

    def _compare(self, case: Case, size: int, data: MixData, ours: Measured | None, peers: list[MixWay]) -> None:
        compared = Compared(case, data, ours, self._saying(case, size))
        for way in peers:
            if case.is_select or way.is_for_mixes:
                compared.run(way, self._batches, self._options.changes)
        compared.best()
        self._report.add(size, compared.figures)
        self._report.notes += compared.notes

    def _saying(self, case: Case, size: int) -> Say:
        return lambda text: self._tell(f"{case.label}, {short(size)}: {text}")
