"""The whole path of offers: subscriptions as SQL lines through the door, publications as JSON lines, notification lines out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

import msgspec
import numpy as np

from research.bench.offers.cases import OffersData
from research.bench.offers.compared import ordered
from research.bench.offers.index import SAMPLE, Found
from research.workloads.offers.paper import TABLE
from tidings.bench import Say
from tidings.bench.report import Figure, Heading, short
from tidings.bench.timing import rss_bytes, timed
from tidings.engine import Engine
from tidings.kernels.arrays import I64
from tidings.sql import parse_catalog
from tidings.workloads.publications import publish, withdraw
from tidings.workloads.subscribers import steady

BUDGET_S = 4.0
"""Seconds for each batch size."""
LINES_MAX = 1_000_000
"""A batch has at most about so many notification lines."""
_ONE_BY_ONE = 1_000
_BATCHES = 5
_WEIGHED_MIN = 100_000
"""With fewer subscriptions the memory of the process says little about them."""
_WARM = 100
"""Publications before the first that is timed: with fewer, the index has not made its segments."""


class Running:
    """An engine with all subscriptions of a workload. Publications are numbered from 0 on as they come."""

    def __init__(self, data: OffersData, published: int) -> None:
        self._constraints = data.constraints(published)
        self._seq = self._published = self._withdrawn = 0
        self._engine = Engine(parse_catalog(data.paper.catalog_sql))
        is_weighed = data.size >= _WEIGHED_MIN
        before = rss_bytes() if is_weighed else 0
        lines = list(steady(data.queries(), data.size))
        taken, refused = timed(self._engine.door.read, lines)
        assert refused == []
        self.door_s = taken.wall
        del lines
        self.first_s, self.first_text = self.feed(self.publications(1))
        self.bytes = rss_bytes() - before if is_weighed else None
        """Of the process, for all subscriptions."""

    def publications(self, count: int) -> list[bytes]:
        """Lines of the next ones."""
        lines = []
        for where in (next(self._constraints) for _ in range(count)):
            self._seq += 1
            lines.append(publish(self._seq, TABLE, "insert", f"p{self._published}", where))
            self._published += 1
        return lines

    def withdrawals(self) -> list[bytes]:
        """Lines that withdraw all publications that are there."""
        first = self._withdrawn
        self._withdrawn = self._published
        start, self._seq = self._seq + 1, self._seq + self._published - first
        return [withdraw(start + i, TABLE, f"p{first + i}") for i in range(self._published - first)]

    def feed(self, lines: Sequence[bytes]) -> tuple[float, list[memoryview]]:
        """(seconds, notification lines)."""
        started = time.perf_counter()
        text = list(self._engine.feed(lines).notifications.text())
        return time.perf_counter() - started, text

    def feed_each(self, lines: Iterable[bytes]) -> Iterator[tuple[float, list[memoryview]]]:
        """The same, one line after the other, until the budget is spent."""
        spent = 0.0
        for line in lines:
            seconds, text = self.feed([line])
            yield seconds, text
            spent += seconds
            if spent > BUDGET_S:
                return


def batch_size(data: OffersData, wanted: int) -> int:
    """How many publications a batch has: fewer than wanted where it would have too many notification lines."""
    return max(1, min(wanted, int(LINES_MAX / max(1.0, data.paper.expected_matches))))


def measure(data: OffersData, batches: Sequence[int], heading: Heading, say: Say) -> Found:
    """data: drawn for one publication at a time."""
    sizes = {wanted: batch_size(data, wanted) for wanted in batches if wanted > 1}
    published = 1 + SAMPLE + _WARM + _ONE_BY_ONE + sum(size * (_BATCHES + 1) for size in sizes.values())
    say(f"inline: {data.size:,} subscriptions as SQL lines")
    running = Running(data, published)
    pairs = _sample(running)
    running.feed(running.publications(_WARM))
    running.feed(running.withdrawals())
    say("inline: one publication at a time")
    told = list(running.feed_each(running.publications(_ONE_BY_ONE)))
    ms_one = 1e3 * median(seconds for seconds, _ in told)
    lines_each = sum(map(len, (_lines(text) for _, text in told))) / len(told)
    # Those beyond the budget were never inserted.
    gone = list(running.feed_each(running.withdrawals()[: len(told)]))
    found = Found(ms_one, (SAMPLE, pairs), load_s=running.door_s + running.first_s)
    found.figures += [
        heading.figure("load_s", "subscriptions from SQL lines to the first notifications", "s", found.load_s),
        heading.figure("door_s", "of that: through the door", "s", running.door_s),
        heading.figure("p1.ms", "one publication, median", "ms", ms_one),
        heading.figure("p1.lines", "notification lines of it", "lines", lines_each),
        heading.figure("p1.withdraw_ms", "one withdrawn, median", "ms", 1e3 * median(seconds for seconds, _ in gone)),
    ]
    if running.bytes is not None:
        weight = running.bytes / data.size
        found.figures.append(heading.figure("bytes", "memory of the process", "bytes/subscription", weight))
    for wanted, size in sizes.items():
        say(f"inline: batches of {size:,}")
        found.figures += _timed(running, wanted, size, heading)
        if size < wanted:
            place = f"{data.case.label}, {short(data.size)}"
            found.notes.append(f"{place}: inline: batches of {size:,} in place of {wanted:,}: each match is a line")
    return found


def _timed(running: Running, wanted: int, size: int, heading: Heading) -> Iterator[Figure]:
    """Medians of several batches, each withdrawn before the next."""
    seconds: list[float] = []
    lines: list[int] = []
    for number in range(_BATCHES + 1):
        taken, text = running.feed(running.publications(size))
        if number:
            # The first one is a warm-up.
            seconds.append(taken)
            lines.append(len(_lines(text)))
        running.feed(running.withdrawals())
        if sum(seconds) > BUDGET_S:
            break
    own = Heading(f"{heading.key}.p{wanted}", f"{heading.label}, batches of {wanted:,}")
    usual = median(seconds)
    yield own.figure("publications_per_s", "publications", "publications/s", size / usual)
    yield own.figure("lines_per_s", "notification lines", "lines/s", sum(lines) / len(lines) / usual)


def _sample(running: Running) -> I64:
    """Pairs of the first publications, as notification lines tell them."""
    text = [*running.first_text]
    for line in running.publications(SAMPLE - 1):
        text += running.feed([line])[1]
    decode = msgspec.json.Decoder(_Notification).decode
    publication, subscription = [], []
    for told in map(decode, _lines(text)):
        for change in told.changes:
            publication.append(int(change["row"]["id"][1:]))
            subscription.append(int(told.subscription[1:]) - 1)
    return ordered(np.array(publication, np.int64), np.array(subscription, np.int64))


class _Notification(msgspec.Struct):
    subscription: str
    changes: list[dict[str, Any]]


def _lines(text: Iterable[memoryview]) -> list[bytes]:
    return b"".join(text).splitlines()
