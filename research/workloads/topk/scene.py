"""A top-k workload as arrays: rows with a place and a score each, ranges of places, and changes to the scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tidings.workloads.draws import FloatArray, IntArray

Block = tuple[IntArray, FloatArray]
"""Changes one after the other: which row, and its new score."""


@dataclass(frozen=True)
class Scene:
    """Every subscription wants the `k` rows of lowest score in a range of places."""

    k: int
    place: FloatArray
    score: FloatArray
    """place, score: [rows], at the start."""
    changed: IntArray
    new_score: FloatArray
    """changed (the row), new_score: [changes]."""
    ranges: FloatArray
    """[subscriptions, 2], low end first."""

    @property
    def rows(self) -> int:
        return len(self.place)

    @property
    def changes(self) -> int:
        return len(self.changed)

    @property
    def size(self) -> int:
        """Number of subscriptions."""
        return len(self.ranges)

    def with_k(self, k: int) -> Scene:
        return replace(self, k=k)


class Source(Protocol):
    """What a scene is made of, for a number of rows."""

    @property
    def k(self) -> int: ...

    def start(self, seed: int, rows: int) -> tuple[FloatArray, FloatArray]:
        """Places and first scores."""
        ...

    def blocks(self, seed: int, score: FloatArray) -> Iterator[Block]:
        """Changes without end, from the first scores on."""
        ...

    def draw_ranges(self, seed: int, count: int) -> FloatArray:
        """Ranges of so many subscriptions, [count, 2]."""
        ...


def scene_of(source: Source, *, seed: int, rows: int, subscriptions: int, changes: int) -> Scene:
    """changes: number of changes after the inserts."""
    place, score = source.start(seed, rows)
    changed, new_score = _first(source.blocks(seed, score), changes)
    return Scene(source.k, place, score, changed, new_score, source.draw_ranges(seed, subscriptions))


def _first(blocks: Iterable[Block], changes: int) -> Block:
    """The first `changes` changes as one block."""
    changed, scores = [np.empty(0, np.int64)], [np.empty(0)]
    left = changes
    for row, score in blocks:
        changed.append(row[:left])
        scores.append(score[:left])
        left -= len(changed[-1])
        if left <= 0:
            break
    return np.concatenate(changed), np.concatenate(scores)
