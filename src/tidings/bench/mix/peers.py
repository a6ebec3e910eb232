"""Peers of the mix bench, each with the subscriptions of the mix that it can express.

Each peer is given the same lines as the engine and makes notification lines of them. Those of the first changes are
compared with ours before anything is timed.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from tidings.bench import Say
from tidings.bench.mix.cases import Batch, Case, MixData
from tidings.bench.mix.inline import SAMPLE, Measured, Timed, batches_timed
from tidings.bench.peers import Peer, Peers
from tidings.bench.report import Figure, Heading, short, shown

BUDGET_S = 6.0
"""Seconds for one peer, size and batch size."""


class MixPeer(Peer):
    """A peer loaded with the subscriptions of one size, without those that it cannot express."""

    expressed: int
    """Number of subscriptions that it serves."""
    is_per_change = False
    """Whether it handles one change after the other, so that the batch size makes no difference."""
    text = b""
    """Notification lines of the last batch."""
    is_net = False
    """Whether it notifies the net effect of a batch, so that its lines cannot be compared with ours."""

    @abstractmethod
    def fill(self, lines: Iterable[bytes]) -> None:
        """Applies the changes that fill the tables, without notifications."""

    @abstractmethod
    def notifications(self, lines: Sequence[bytes]) -> bytes:
        """Notification lines of a batch of changes."""

    def feed(self, part: Sequence[bytes]) -> None:
        self.text = self.notifications(part)

    def found(self) -> list[bytes]:
        return self.text.splitlines()


@dataclass(frozen=True)
class MixWay:
    key: str
    label: str
    load: Callable[[MixData], MixPeer]
    is_for_mixes: bool
    """Whether it can express more than selections."""


class Compared:
    """Measures peers at one case and size: their figures, notes, and ratios to ours."""

    def __init__(self, case: Case, data: MixData, ours: Measured | None, say: Say) -> None:
        self.figures: list[Figure] = []
        self.notes: list[str] = []
        self._case = case
        self._data = data
        self._ours = ours
        self._say = say
        self._best: dict[int, tuple[float, str]] = {}
        self._place = f"{case.label}, {short(len(data.first))}"

    def run(self, way: MixWay, sizes: Sequence[int], changes_max: int) -> None:
        self._say(way.label)
        with closing(way.load(self._data)) as peer:
            if not peer.expressed:
                self.notes.append(f"{self._place}: {way.label}: left out, it can express none of the subscriptions")
                return
            peer.fill(self._data.filling)
            first, *_ = self._data.batches(1, SAMPLE, 0)
            peer.feed(first.lines)
            self._compare(way, peer)
            fed, last = len(first.lines), Timed()
            for size in sizes:
                planned = _affordable(peer, size, last)
                found = self._timed(peer, planned, batches_timed(size, changes_max), fed)
                if not found.changes:
                    continue
                fed, last = fed + found.changes, found
                if planned < size:
                    self.notes.append(
                        f"{self._place}: {way.label}: for batches of {size:,} measured with {planned:,} at a time"
                    )
                self._add(way, size, found)

    def _timed(self, peer: MixPeer, size: int, count: int, fed: int) -> Timed:
        """Times at most `count` batches, until the budget is spent."""
        found = Timed()
        for batch in self._data.batches(count, size, fed):
            found.add(len(batch.lines), *_feed(peer, batch))
            if found.total_s > BUDGET_S:
                break
        return found

    def _compare(self, way: MixWay, peer: MixPeer) -> None:
        total, case = len(self._data.first), self._case
        served = "all" if peer.expressed == total else f"{peer.expressed:,} of {total:,}"
        ours = self._ours
        if ours is None or peer.is_net or peer.expressed < total:
            lines = "lines not compared"
        elif peer.found() != ours.sample:
            raise AssertionError(f"{way.label}: lines of the first {SAMPLE} changes differ from ours in {case.label}")
        else:
            lines = f"lines of {SAMPLE} changes agree with ours"
        told = ", told what each batch comes to" if peer.is_net else ""
        self.notes.append(f"{self._place}: {way.label}: {served} subscriptions{told}; {lines}")

    def _add(self, way: MixWay, size: int, found: Timed) -> None:
        case, batches = self._case, f"batches of {size:,}"
        self.figures += found.figures(
            Heading(f"{case.key}.peer.{way.key}.batch{size}", f"{case.label}, {way.label}, {batches}")
        )
        rate = found.changes_per_s
        self._best[size] = max(self._best.get(size, (0.0, "")), (rate, way.label))
        self._ratio(way.key, f"over {way.label}", size, rate)

    def best(self) -> None:
        """Adds the ratio of our rate to that of the best peer, for every batch size."""
        for size, (rate, _) in self._best.items():
            self._ratio("best", "over the best peer", size, rate)
        if self._best:
            each = (f"{size:,}: {label} ({shown(rate)} changes/s)" for size, (rate, label) in self._best.items())
            self.notes.append(f"{self._place}: best peer in batches of {', '.join(each)}")

    def _ratio(self, key: str, label: str, size: int, rate: float) -> None:
        if self._ours is not None and size in self._ours.rates:
            heading = Heading(f"{self._case.key}.ratio.{key}", f"{self._case.label}, ours {label}")
            ratio = self._ours.rates[size] / rate
            self.figures.append(heading.figure(f"batch{size}", f"batches of {size:,}", "ratio", ratio))


def _affordable(peer: MixPeer, size: int, last: Timed) -> int:
    """The batch size to measure in place of `size`. last: times of a smaller one.

    A peer that handles change by change gets a part that fits the budget. For other peers a larger batch is cheaper per
    change; it is left out only if a single smaller batch took the whole budget.
    """
    if not last.changes:
        return size
    if peer.is_per_change:
        return max(1, min(size, int(last.changes_per_s * BUDGET_S)))
    return size if max(last.seconds) <= BUDGET_S else min(size, last.changes // len(last.seconds))


def _feed(peer: MixPeer, batch: Batch) -> tuple[int, float]:
    """(number of notifications, seconds)."""
    started = time.perf_counter()
    peer.feed(batch.lines)
    seconds = time.perf_counter() - started
    return peer.text.count(b"\n"), seconds


def ways(peers: Peers, *, has_spark: bool) -> list[MixWay]:
    """The installed peers; those on Spark only if `has_spark`."""
    from tidings.bench.mix.numpy_peer import NumpyShapes

    found = [MixWay("numpy", "numpy scan of each shape", NumpyShapes, is_for_mixes=False)]
    if peers.has("duckdb"):
        from tidings.bench.mix.duckdb_peer import DuckDb

        found.append(MixWay("duckdb", "DuckDB, recomputing the affected", DuckDb, is_for_mixes=True))
    if has_spark and (session := peers.spark()):
        from tidings.bench.mix.spark_peer import SparkForeachBatch

        found.append(
            MixWay(
                "spark", "Spark SQL in foreachBatch", lambda data: SparkForeachBatch(data, session), is_for_mixes=False
            )
        )
    return found
