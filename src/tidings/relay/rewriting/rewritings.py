"""Ways to compute each pattern of a set from others: the first k minimal rewritings of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidings.kernels.arrays import F64, I32, I64
from tidings.relay.rewriting.kernels.covers import DEPTH_MAX
from tidings.relay.rewriting.kernels.search import rewrite, targets_of
from tidings.relay.rewriting.table import PatternTable

REWRITINGS_MAX = 30
"""Ways to compute one pattern that the planner chooses from."""
_PORTION = 1_000


@dataclass(frozen=True, eq=False)
class Rewritings:
    """Rewritings of pattern p are first[p]:first[p + 1]; the sources of rewriting r are sources[first_source[r] :
    first_source[r + 1]], numbers of patterns.

    embedded: pairs of patterns of which the first embeds in the second.
    dropped: pairs that embed in each other, of which the second feeds the first if either does.
    """

    first: I64
    first_source: I64
    sources: I32
    embedded: int
    dropped: int

    @classmethod
    def of_kernel(cls, counts: I64, ends: I64, members: I32, embedded: int, dropped: int) -> Rewritings:
        """From what the kernels write: rewritings per target, where each one ends among the members, and room to spare."""
        first = np.concatenate([[0], np.cumsum(counts)])
        first_source = np.concatenate([[0], ends[: first[-1]]])
        return cls(first, first_source, members[: first_source[-1]].copy(), embedded, dropped)

    def of(self, pattern: int) -> list[tuple[int, ...]]:
        bounds = self.first_source[self.first[pattern] : self.first[pattern + 1] + 1]
        return [tuple(map(int, self.sources[a:b])) for a, b in pairwise(bounds)]


def find_rewritings(
    table: PatternTable,
    cost: F64,
    k: int = REWRITINGS_MAX,
    *,
    threads: int = 2,
    on_progress: Callable[[int], None] = lambda count: None,
) -> Rewritings:
    """Rewritings of all patterns of a table. cost: of using a pattern as a source; cheap ones are tried first."""
    return found_in_portions(len(table), lambda targets: rewritings_of(table, targets, cost, k), threads, on_progress)


def found_in_portions(
    count: int, find: Callable[[I64], Rewritings], threads: int, on_progress: Callable[[int], None]
) -> Rewritings:
    """Rewritings of all targets from 0 on, by a function that finds those of some, in several threads."""
    portions = portioned(count)
    with ThreadPoolExecutor(threads) as pool:
        parts = []
        for portion, part in zip(portions, pool.map(find, portions), strict=True):
            parts.append(part)
            on_progress(len(portion))
    return joined(parts)


def portioned(count: int) -> list[I64]:
    """Numbers of patterns in portions that are looked at one after the other."""
    return [np.arange(begin, min(begin + _PORTION, count)) for begin in range(0, count, _PORTION)]


def rewritings_of(
    table: PatternTable, targets: I64, cost: F64, k: int, *, ordered: bool = True, partial: bool = False
) -> Rewritings:
    """Rewritings of some patterns: those of the i-th target are `of(i)`.

    ordered: of patterns that embed in each other only one may feed the other. False for a single pattern that came last.
    partial: ways to compute what others know of them.
    """
    counts = np.empty(len(targets), np.int64)
    ends = np.empty(len(targets) * k, np.int64)
    members = np.empty(len(targets) * k * DEPTH_MAX, np.int32)
    embedded, dropped = rewrite(
        table.nodes, table.masks, table.bits, table.words, table.needs, table.full, table.alive, table.filed,
        table.features, cost, targets, k, table.labels, ordered, partial, counts, ends, members,
    )  # fmt: skip
    return Rewritings.of_kernel(counts, ends, members, embedded, dropped)


def patterns_fed_by(table: PatternTable, source: int, most: int) -> list[int]:
    """Patterns that one pattern alone is enough for, and that do not embed in it: at most so many."""
    targets = np.empty(most, np.int64)
    arrays = (table.nodes, table.masks, table.bits, table.words, table.full, table.alive)
    count = targets_of(*arrays, source, table.labels, targets)
    found: list[int] = targets[:count].tolist()
    return found


def completed(rewritings: Rewritings, targets: I64, more: Rewritings) -> Rewritings:
    """With rewritings of some targets, rising, behind those that they have."""
    both = (rewritings, more)
    owner = np.concatenate(
        [
            np.repeat(np.arange(len(rewritings.first) - 1), np.diff(rewritings.first)),
            np.repeat(targets, np.diff(more.first)),
        ]
    )
    order = np.argsort(owner, kind="stable")
    sizes = np.concatenate([np.diff(each.first_source) for each in both])
    sources = np.concatenate([each.sources for each in both])
    starts = np.cumsum(sizes) - sizes
    first_source = np.concatenate([[0], np.cumsum(sizes[order])])
    places = np.repeat(starts[order] - first_source[:-1], sizes[order]) + np.arange(len(sources))
    first = np.searchsorted(owner[order], np.arange(len(rewritings.first)))
    return Rewritings(first, first_source, sources[places], rewritings.embedded, rewritings.dropped)


def joined(parts: Sequence[Rewritings]) -> Rewritings:
    """Rewritings of targets that follow each other."""

    def chained(pieces: Iterator[I64]) -> I64:
        found, end = [np.zeros(1, np.int64)], 0
        for piece in pieces:
            found.append(piece[1:] + end)
            end += int(piece[-1])
        return np.concatenate(found)

    return Rewritings(
        chained(part.first for part in parts),
        chained(part.first_source for part in parts),
        np.concatenate([np.zeros(0, np.int32), *(part.sources for part in parts)]),
        sum(part.embedded for part in parts),
        sum(part.dropped for part in parts),
    )
