"""The inline engine on the mix bench: JSON lines in, notification lines out, in batches of several sizes.

Only what users have is used: the door, `feed`, and the text of notifications.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tidings.bench import Say
from tidings.bench.mix.cases import Batch, MixData
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import rss_bytes, timed
from tidings.engine import Engine
from tidings.sql import parse_catalog

BUDGET_S = 10.0
"""Seconds for one batch size; a whole replay may take ten times as long."""
SAMPLE = 100
"""The first live changes, whose notifications are compared with those of peers. They are not timed."""
_FILLED_AT_A_TIME = 10_000
_REPLAYED_AT_A_TIME = 10_000
_CHANGES_MIN, _BATCHES_MIN = 2_000, 5
"""A batch size is timed with this many changes or batches, whichever is more."""
_WARM_CHANGES = 200


def batches_warm(size: int) -> int:
    """Batches that are not timed, before those that are."""
    return max(1, min(20, _WARM_CHANGES // size))


def batches_timed(size: int, changes_max: int) -> int:
    return max(1, min(changes_max, max(_CHANGES_MIN, _BATCHES_MIN * size)) // size)


def changes_needed(sizes: Iterable[int], changes_max: int) -> int:
    """Live changes that all batch sizes take together."""
    return SAMPLE + sum(size * (batches_warm(size) + batches_timed(size, changes_max)) for size in sizes)


@dataclass
class Timed:
    """Counts and times of batches of one size."""

    changes: int = 0
    notifications: int = 0
    seconds: list[float] = field(default_factory=list)

    def add(self, changes: int, notifications: int, seconds: float) -> None:
        self.changes += changes
        self.notifications += notifications
        self.seconds.append(seconds)

    @property
    def total_s(self) -> float:
        return sum(self.seconds)

    @property
    def changes_per_s(self) -> float:
        return self.changes / self.total_s

    def figures(self, heading: Heading) -> list[Figure]:
        """Rates; for batches of one change also percentiles of their time."""
        figures = []
        if self.changes == len(self.seconds):
            p50, p99 = np.percentile(self.seconds, (50, 99))
            figures = [
                heading.figure("p50_ms", "p50", "ms", 1e3 * p50),
                heading.figure("p99_ms", "p99", "ms", 1e3 * p99),
            ]
        told = self.notifications / self.total_s
        return [
            *figures,
            heading.figure("changes_per_s", "changes", "changes/s", self.changes_per_s),
            heading.figure("notifications_per_s", "notifications", "notifications/s", told),
        ]


class Running:
    """An engine with the subscriptions of the start and with filled tables."""

    def __init__(self, data: MixData) -> None:
        self.data = data
        self._moments = [after for after, _ in data.later]
        self._come = 0
        self._fed = 0
        self._engine = Engine(parse_catalog(data.catalog_sql))
        taken, refused = timed(self._engine.door.read, data.first)
        assert refused == []
        self.door_s = taken.wall
        for start in range(0, len(data.filling), _FILLED_AT_A_TIME):
            lines = data.filling[start : start + _FILLED_AT_A_TIME]
            result = self._engine.feed(lines)
            assert result.refused == []
            list(result.notifications.text())

    def batches(self, count: int, size: int) -> Iterator[Batch]:
        """The next `count` batches; each counts as fed when the next one is requested."""
        for batch in self.data.batches(count, size, self._fed):
            yield batch
            self._fed += len(batch.lines)

    def feed(self, batch: Batch) -> tuple[float, list[memoryview]]:
        """(seconds for the batch, with the subscription events up to its last seq; text of its notifications)."""
        until = bisect_right(self._moments, batch.last)
        events = [line for _, line in self.data.later[self._come : until]]
        self._come = until
        started = time.perf_counter()
        if events:
            refused = self._engine.door.read(events)
            assert refused == []
        text = list(self._engine.feed(batch.lines).notifications.text())
        return time.perf_counter() - started, text


def count_lines(text: Iterable[bytes | memoryview]) -> int:
    return sum(bytes(piece).count(b"\n") for piece in text)


@dataclass
class Measured:
    figures: list[Figure]
    sample: list[bytes]
    """Notification lines of the first `SAMPLE` changes."""
    rates: dict[int, float]
    """Changes a second by batch size."""


def measure(data: MixData, sizes: Sequence[int], changes_max: int, heading: Heading, say: Say) -> Measured:
    """All batch sizes, one after the other on one engine, each until its budget is spent."""
    before = rss_bytes()
    _forget_peak()
    say(f"{len(data.first):,} subscriptions, {len(data.filling):,} changes that fill the tables")
    running = Running(data)
    sample: list[bytes] = []
    for batch in running.batches(1, SAMPLE):
        sample = b"".join(running.feed(batch)[1]).splitlines()
    figures: list[Figure] = []
    rates: dict[int, float] = {}
    told = changes = 0
    for size in sizes:
        say(f"batches of {size:,}")
        found = _timed(running, size, changes_max)
        if not found.changes:
            continue
        figures += found.figures(Heading(f"{heading.key}.batch{size}", f"{heading.label}, batches of {size:,}"))
        rates[size] = found.changes_per_s
        told, changes = told + found.notifications, changes + found.changes
    figures += [
        heading.figure("notifications", "notifications per change", "notifications/change", told / max(1, changes)),
        heading.figure("door_s", "subscriptions from SQL to the door", "s", running.door_s),
        heading.figure("peak_mb", "memory at its highest, lines not counted", "MB", (_peak_bytes() - before) / 1e6),
    ]
    return Measured(figures, sample, rates)


def _timed(running: Running, size: int, changes_max: int) -> Timed:
    for batch in running.batches(batches_warm(size), size):
        running.feed(batch)
    found = Timed()
    for batch in running.batches(batches_timed(size, changes_max), size):
        seconds, text = running.feed(batch)
        found.add(len(batch.lines), count_lines(text), seconds)
        if found.total_s > BUDGET_S:
            break
    return found


def replay(data: MixData, heading: Heading) -> list[Figure]:
    """The whole replay as `tidings replay` does it, from the first line of subscriptions to the last notification."""
    started = time.perf_counter()
    engine = Engine(parse_catalog(data.catalog_sql))
    refused = engine.door.read([*data.first, *(line for _, line in data.later)])
    assert refused == []
    changes, done, told = [*data.filling, *data.live], 0, 0
    while done < len(changes) and time.perf_counter() - started < 10 * BUDGET_S:
        text = list(engine.feed(changes[done : done + _REPLAYED_AT_A_TIME]).notifications.text())
        done = min(len(changes), done + _REPLAYED_AT_A_TIME)
        told += count_lines(text)
    told += count_lines(engine.finish().notifications.text())
    taken = time.perf_counter() - started
    figures = [heading.figure("changes_per_s", "changes", "changes/s", done / taken)]
    if done == len(changes):
        figures.append(heading.figure("seconds", f"{done:,} changes", "s", taken))
    return figures


def _forget_peak() -> None:
    """Resets the peak memory counter of this process, if the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_bytes() -> int:
    """Peak memory of this process since `_forget_peak`; 0 if the system does not report it."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)
