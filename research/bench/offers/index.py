"""The index of boxes alone: loading, memory, and searches with one publication and with batches.

Publications are given as numbers, already in the form that a search takes: neither SQL nor JSON is read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from research.bench.offers.cases import BLOCK, OffersData
from research.bench.offers.compared import ordered
from tidings.bench import Say
from tidings.bench.report import Figure, Heading
from tidings.families.offers.kernels.box_index import BoxIndex
from tidings.families.offers.kernels.box_index.box_layout import Queries
from tidings.families.offers.kernels.packed import read_batch
from tidings.kernels.arrays import I64

SAMPLE = 200
"""Publications whose pairs are compared with those of others."""
BUDGET_S = 2.0
"""Seconds of searches, for each batch size."""
_ONE_BY_ONE, _BATCHES = 2_000, 30
"""Searches that are timed, with one publication and with several."""
_FIRST = 100
"""Publications of the first search: so many that the index makes its segments at once."""
_MANY = 50
"""With at least so many matches of a batch, nanoseconds for each are told too."""


@dataclass
class Found:
    """What a way of matching took and found. pairs: (publications matched, [pairs, 2])."""

    ms_one: float
    pairs: tuple[int, I64]
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    load_s: float = 0.0


@dataclass
class Loaded:
    """An index with all subscriptions of a workload. Seconds: to add them, and of the first search, which makes segments."""

    index: BoxIndex
    add_s: float
    first_s: float

    @staticmethod
    def of(data: OffersData) -> Loaded:
        intervals = data.subscriptions
        index, add_s = BoxIndex([False] * len(intervals.axes)), 0.0
        for start in range(0, len(intervals), BLOCK):
            part = intervals.part(start, start + BLOCK)
            text, starts = part.packed()
            owners = np.arange(start, start + len(part))
            started = time.perf_counter()
            index.add(owners, read_batch(text, starts))
            add_s += time.perf_counter() - started
        searched = Searched(data, _FIRST)
        started = time.perf_counter()
        index.match_kind(searched.axes, searched.equal, searched.queries)
        return Loaded(index, add_s, time.perf_counter() - started)

    @property
    def load_s(self) -> float:
        return self.add_s + self.first_s


class Searched:
    """Publications in the form that a search takes."""

    def __init__(self, data: OffersData, count: int) -> None:
        publications = data.publications(count)
        self.axes, self.equal, self.queries = publications.axes, publications.equal, publications.queries()

    def batches(self, size: int) -> list[Queries]:
        q, equal, ends, text = self.queries
        stops = range(size, len(q) + 1, size)
        return [Queries(q[at - size : at], equal[at - size : at], ends[at - size : at], text) for at in stops]

    def search(self, index: BoxIndex, queries: Queries) -> I64:
        return index.match_kind(self.axes, self.equal, queries)


def time_batches(loaded: Loaded, searched: Searched, size: int) -> tuple[list[float], int]:
    """(seconds of each batch, matches of all). Stops when the budget is spent."""
    batches = searched.batches(size)
    for batch in batches[: max(1, 20 // size)]:
        searched.search(loaded.index, batch)
    seconds: list[float] = []
    matches, spent = 0, 0.0
    for batch in batches:
        started = time.perf_counter()
        hits = searched.search(loaded.index, batch)
        seconds.append(time.perf_counter() - started)
        matches, spent = matches + len(hits), spent + seconds[-1]
        if spent > BUDGET_S:
            break
    return seconds, matches


def measure(data: OffersData, batches: Sequence[int], heading: Heading, say: Say) -> Found:
    """data: drawn for one publication at a time, whose time and pairs are told in any case."""
    say("index: one publication at a time")
    loaded = Loaded.of(data)
    searched = Searched(data, _ONE_BY_ONE)
    found = Found(0.0, (SAMPLE, _pairs(loaded, searched)), load_s=loaded.load_s)
    bytes_each = loaded.index.nbytes / data.size
    found.figures += [
        heading.figure("load_s", "loaded and indexed", "s", loaded.load_s),
        heading.figure("add_s", "of that: added, before the first search", "s", loaded.add_s),
        heading.figure("bytes", "memory", "bytes/subscription", bytes_each),
    ]
    for size in sorted({1, *batches}):
        if size > 1:
            say(f"index: batches of {size:,}")
            of_batch = data.drawn_for(size)
            loaded, searched = Loaded.of(of_batch), Searched(of_batch, size * _BATCHES)
        seconds, matches = time_batches(loaded, searched, size)
        ms, matches_each = 1e3 * median(seconds), matches / len(seconds)
        if size == 1:
            found.ms_one = ms
        found.figures += _figures(heading, size, ms, matches_each)
    return found


def _figures(heading: Heading, size: int, ms: float, matches: float) -> list[Figure]:
    own = Heading(f"{heading.key}.p{size}", f"{heading.label}, P = {size:,}")
    figures = [
        own.figure("ms", "median", "ms", ms),
        own.figure("publications_per_s", "publications", "publications/s", 1e3 * size / ms),
        own.figure("matches", "matches", "matches/batch", matches),
    ]
    if matches >= _MANY:
        figures.append(own.figure("ns_per_match", "time for each match", "ns", 1e6 * ms / matches))
    return figures


def _pairs(loaded: Loaded, searched: Searched) -> I64:
    """Of the first publications, each searched with alone."""
    parts = [
        (number, searched.search(loaded.index, queries)[:, 1].copy())
        for number, queries in enumerate(searched.batches(1)[:SAMPLE])
    ]
    publication = np.repeat([number for number, _ in parts], [len(owners) for _, owners in parts])
    return ordered(publication, np.concatenate([owners for _, owners in parts]))
