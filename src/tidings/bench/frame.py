"""The frame of all benches: engines and peers at growing numbers of subscriptions, and the report of what they found."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Self

from tidings.bench import Options, Say
from tidings.bench.peers import Given, Peer, Peers, Way
from tidings.bench.report import Figure, Heading, Report, short, shown
from tidings.bench.stamp import describe, load_average, stamp
from tidings.model.errors import UsageError

Engine = Callable[[], Iterable[Figure]]
_WITH_GATEWAYS = ("inline", "spark")
_ONCE = ("verify",)
"""Does not depend on the size."""
_TINY, _TINY_CHANGES = 1_000, 20_000
"""What kernels are compiled with."""


class Ratio(NamedTuple):
    """A figure of ours over the best peer."""

    ours: str
    """The figure's key."""
    key: str
    label: str


class Bench(ABC, Generic[Given, Peer]):
    """One size of one run: what a bench has to measure, and to compare with. Data are made when first asked for."""

    title: ClassVar[str]
    ratios: ClassVar[tuple[Ratio, ...]]
    gateway_max: ClassVar[int] = sys.maxsize
    """With more subscriptions there is no gateway: its views would fill the memory."""

    def __init__(self, options: Options, size: int, say: Say) -> None:
        self.options = options
        self.size = size
        self.say = say

    @property
    def is_first(self) -> bool:
        """Whether this is the size at which to do what does not depend on it."""
        return self.size == self.options.sizes[0]

    @abstractmethod
    def engines(self) -> Mapping[str, Engine]:
        """What there is to measure, in the order in which it is done."""

    @classmethod
    @abstractmethod
    def in_turn(cls, benches: Sequence[Self], say: Say) -> Iterator[Mapping[int, Figure]]:
        """The inline engine at all these sizes at once, a figure by size for each of its cases."""

    @staticmethod
    @abstractmethod
    def add_peers(peers: Peers[Given, Peer]) -> None:
        """Adds the ways that can be had here."""

    @property
    @abstractmethod
    def given(self) -> Given:
        """What peers are loaded with."""

    @abstractmethod
    def rate(self, peer: Peer, way: Way[Given, Peer]) -> float:
        """Changes a second of a peer, after some for which it must have found the same as we."""

    @property
    @abstractmethod
    def compared(self) -> str:
        """In what all peers agree with us."""


@dataclass(frozen=True)
class Words:
    """How a bench speaks of what it verifies."""

    against: str = "recomputation"
    told: str = "subscriptions told"
    told_unit: str = "subscriptions"
    wrong: str = "answers that differ, or told for nothing"
    wrong_unit: str = "answers"

    def figures(self, key: str, label: str, changes: int, wrong: int, told: int) -> list[Figure]:
        if wrong:
            raise AssertionError(f"{label}: {wrong} of the {self.wrong_unit} in {changes:,} changes differ")
        figure = Heading(f"verify.{key}", f"verify, {label}").figure
        return [
            figure("changes", f"random changes against {self.against}", "changes", changes),
            figure("told", f"{self.told} in these", self.told_unit, told),
            figure("differences", self.wrong, self.wrong_unit, wrong),
        ]


def run_bench(bench: type[Bench[Any, Any]], options: Options, say: Say) -> Report:
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
        peers: Peers[Any, Any] = Peers(stack, say)
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


def _in_turn(report: Report, bench: type[Bench[Any, Any]], options: Options, say: Say) -> None:
    sizes = [size for size in options.sizes if size <= bench.gateway_max]
    if len(sizes) < 2:
        return
    benches = [bench(options, size, say) for size in sizes]
    for figures in bench.in_turn(benches, lambda text: say(f"inline: {text}")):
        for size, figure in figures.items():
            report.add(size, [figure])


def _measure(report: Report, bench: Bench[Any, Any], engines: Iterable[str]) -> None:
    say, size = bench.say, bench.size
    for name in engines:
        if (name in _WITH_GATEWAYS and size > bench.gateway_max) or (name in _ONCE and not bench.is_first):
            continue
        bench.say = lambda text, name=name: say(f"{short(size)}: {name}: {text}")  # type: ignore[misc]
        report.add(size, bench.engines()[name]())


def _compare(report: Report, bench: Bench[Given, Peer], peers: Peers[Given, Peer]) -> None:
    size, rates = bench.size, {}
    if not peers.for_size(size):
        return
    for way, rate in peers.rates(size, bench.given, bench.rate):
        report.add(size, [Figure(f"peer.{way.key}.changes_per_s", way.label, "changes/s", rate)])
        rates[way.label] = rate
    best = max(rates, key=lambda label: rates[label])
    report.notes.append(f"{short(size)}: best {best} ({shown(rates[best])} changes/s); all peers: {bench.compared}")
    for ratio in bench.ratios:
        ours = report.value(ratio.ours, size)
        if ours is not None:
            report.add(size, [Figure(ratio.key, ratio.label, "ratio", ours / rates[best])])
