"""The runner of all benches: measures engines and peers at growing numbers of subscriptions, and makes the report."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any, ClassVar, NamedTuple

from research.bench.dataset import Dataset
from research.bench.inline import InlineRun, runs_in_turn
from research.bench.peers import PeerWays, Way
from research.bench.timing import spent
from research.bench.verify import Verified
from tidings.bench import Options, Say
from tidings.bench.peers import Peer
from tidings.bench.report import Figure, Heading, Report, short, shown
from tidings.bench.stamp import describe, load_average, stamp
from tidings.model.errors import UsageError

Engine = Callable[[], Iterable[Figure]]
_WITH_GATEWAYS = ("inline",)
_ONCE = ("verify",)
"""Engines that are run at the first size only."""
_TINY, _TINY_CHANGES = 1_000, 20_000
"""Subscriptions and changes of the warm-up run, which compiles kernels."""
BUDGET_S = 8.0
"""Seconds for one peer at one size."""
SAMPLE = 200
"""Number of changes whose results are compared with the peers'."""


class Ratio(NamedTuple):
    """A figure of ours over the best peer."""

    ours: str
    """The figure's key."""
    key: str
    label: str


class Bench(ABC):
    """A bench at one size: what to measure, and what to compare with. Data are made when first used."""

    title: ClassVar[str]
    ratios: ClassVar[tuple[Ratio, ...]]
    inline_cases: ClassVar[Mapping[str, Heading]]
    """The cases of the inline engine, with the heading of their figures."""
    verified: ClassVar[Verified | None] = None
    verified_share: ClassVar[int] = 200
    """One of this many changes is verified."""
    gateway_max: ClassVar[int] = sys.maxsize
    """With more subscriptions there is no gateway: its views would fill the memory."""
    compared: ClassVar[str]
    """Text that says in what results all peers agree with us."""

    def __init__(self, options: Options, size: int, say: Say) -> None:
        self.options = options
        self.size = size
        self.say = say

    @property
    def is_first(self) -> bool:
        """Whether this is the smallest size, at which engines in _ONCE are run."""
        return self.size == self.options.sizes[0]

    def engines(self) -> Mapping[str, Engine]:
        """Name -> measurement, in the order in which they are run."""
        every = {"verify": self.verify, "index": self.index, "inline": self.inline}
        return every if self.verified else {name: every[name] for name in _WITH_GATEWAYS}

    def verify(self) -> Iterator[Figure]:
        assert self.verified is not None
        changes = self.options.changes // self.verified_share
        self.say(f"{len(self.verified.strategies())} strategies: {changes:,} random changes against recomputation")
        return self.verified.figures(changes, self.options.seed)

    def index(self) -> Iterable[Figure]:
        """The index of the family alone."""
        return ()

    @abstractmethod
    def inline(self) -> Iterable[Figure]:
        """The inline engine, case by case."""

    @abstractmethod
    def dataset(self, case: str, changes: int) -> Dataset:
        """The data of a case. changes: least number of changes, if they are not made on demand."""

    @abstractmethod
    def inline_run(self, case: str) -> InlineRun:
        """A server for a case; its rows may still be missing."""

    @staticmethod
    @abstractmethod
    def add_peers(peers: PeerWays) -> None:
        """Adds the installed peers."""

    @property
    @abstractmethod
    def given(self) -> Any:
        """What peers are loaded with."""

    @abstractmethod
    def parts(self, start: int, at_a_time: int) -> Iterator[Any]:
        """Changes from number `start` on in the form that peers take, in full parts of `at_a_time`."""

    def sample(self, at_a_time: int) -> Iterator[Any]:
        """The first `SAMPLE` changes, after which a peer must have found what we have."""
        return iter([next(self.parts(0, SAMPLE))])

    @property
    @abstractmethod
    def expected(self) -> list[Any] | None:
        """The results that a peer must find in the sample; None if none of our engines has run."""


def run_bench(bench: type[Bench], options: Options, say: Say) -> Report:
    tiny = Options((_TINY,), min(_TINY_CHANGES, options.changes), has_peers=False, seed=options.seed)
    known = bench(tiny, _TINY, _say_nothing).engines()
    engines = options.engines or tuple(known)
    for name in engines:
        if name not in known:
            raise UsageError(f"unknown engine {name!r}; there are: {', '.join(known)}")
    report = Report(bench.title, options.sizes, stamp(options.seed))
    say("warming up: kernels are compiled on their first use")
    for name in engines:
        deque(known[name](), maxlen=0)
    if "inline" in engines:
        _in_turn(report, bench, options, say)
    with ExitStack() as stack:
        peers = PeerWays(stack, say)
        if options.has_peers:
            bench.add_peers(peers)
        for size in options.sizes:
            of_size = bench(options, size, say)
            _measure(report, of_size, engines)
            _compare(report, of_size, peers)
    report.stamp["load_average_end"] = load_average()
    report.notes.append(describe(report.stamp))
    if peers.missing:
        report.notes.append(f"peers left out because they are not installed: {', '.join(peers.missing)}")
    return report


def _say_nothing(_: str) -> None:
    pass


def _in_turn(report: Report, bench: type[Bench], options: Options, say: Say) -> None:
    """Measures the inline engine at all sizes in turn, case by case."""
    sizes = [size for size in options.sizes if size <= bench.gateway_max]
    if len(sizes) < 2:
        return
    benches = [bench(options, size, say) for size in sizes]
    for case, heading in bench.inline_cases.items():
        say(f"{heading.label}: all sizes in turn")
        figures = runs_in_turn([of_size.inline_run(case) for of_size in benches], heading)
        for size, figure in figures.items():
            report.add(size, [figure])


def _measure(report: Report, bench: Bench, engines: Iterable[str]) -> None:
    say, size = bench.say, bench.size
    for name in engines:
        if (name in _WITH_GATEWAYS and size > bench.gateway_max) or (name in _ONCE and not bench.is_first):
            continue
        bench.say = lambda text, name=name: say(f"{short(size)}: {name}: {text}")  # type: ignore[misc]
        report.add(size, bench.engines()[name]())


def _compare(report: Report, bench: Bench, peers: PeerWays) -> None:
    size, rates = bench.size, {}
    for way in peers.for_size(size):
        peers.say(f"{short(size)}: {way.label}")
        # Only one of them is loaded at a time.
        with closing(way.load(bench.given)) as peer:
            rate = rate_of(bench, peer, way)
        report.add(size, [Figure(f"peer.{way.key}.changes_per_s", way.label, "changes/s", rate)])
        rates[way.label] = rate
    if not rates:
        return
    best = max(rates, key=lambda label: rates[label])
    agree = "not compared" if bench.expected is None else bench.compared
    report.notes.append(f"{short(size)}: best {best} ({shown(rates[best])} changes/s); all peers: {agree}")
    for ratio in bench.ratios:
        ours = report.value(ratio.ours, size)
        if ours is not None:
            report.add(size, [Figure(ratio.key, ratio.label, "ratio", ours / rates[best])])


def rate_of(bench: Bench, peer: Peer, way: Way) -> float:
    """Changes per second of a peer. First checks that its results for the sample are ours."""
    found: list[Any] = []
    for part in bench.sample(way.at_a_time):
        peer.feed(part)
        found += peer.found()
    if bench.expected is not None and found != bench.expected:
        raise AssertionError(f"{way.label}: what it finds in {SAMPLE} changes is not ours")
    calls, taken = spent(BUDGET_S, peer.feed, bench.parts(SAMPLE, way.at_a_time))
    return calls * way.at_a_time / taken.wall
