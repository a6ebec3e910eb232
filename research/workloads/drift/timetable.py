"""Times at which subscriptions are created and dropped, and their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from research.workloads.draws import BLOCK
from tidings.workloads.draws import IntArray

_CREATED_LATER = 0.3
"""Share of the subscriptions that are created after the start, with churn."""
_DROPPED = 10
"""One of this many subscriptions is dropped."""
_RETURNED = 2
"""One of this many dropped subscriptions is created again with the same id and another query."""
_RETURNED_AT_ONCE = 0.2
"""Share of these that are created again at the seq of their drop, as when a query is changed."""


@dataclass(frozen=True)
class Timetable:
    """Creations and drops in order; all arrays [events]."""

    number: IntArray
    """Number of the subscription: 1, 2, .."""
    is_drop: npt.NDArray[np.bool_]
    after: IntArray

    @staticmethod
    def of_creations(after: IntArray) -> Timetable:
        """Creations only. after: ascending."""
        return Timetable(np.arange(1, len(after) + 1), np.zeros(len(after), np.bool_), after)

    @staticmethod
    def with_churn(rng: np.random.Generator, creations: int, changes: int) -> Timetable:
        """Most subscriptions exist from the start, some are created later, some dropped, some of these created again.

        creations: number of all creations, repeated ones included.
        """
        drops = creations // _DROPPED
        returns = drops // _RETURNED
        people = creations - returns
        created = np.where(rng.random(people) < _CREATED_LATER, (changes * rng.random(people)).astype(np.int64), 0)
        created.sort()
        leaver = rng.permutation(people)[:drops]
        dropped = _later(rng, created[leaver], changes)
        returned = _later(rng, dropped[:returns], changes)
        at_once = rng.random(returns) < _RETURNED_AT_ONCE
        returned[at_once] = dropped[:returns][at_once]
        number = np.concatenate([np.arange(people), leaver, leaver[:returns]]) + 1
        after = np.concatenate([created, dropped, returned])
        stage = np.repeat([0, 1, 2], [people, drops, returns])
        order = np.lexsort((stage, after))
        return Timetable(number[order], stage[order] == 1, after[order])

    def at(self, seq: Callable[[IntArray], IntArray]) -> Timetable:
        """The same timetable with `after` converted from counts of changes to sequence numbers."""
        return replace(self, after=seq(self.after))

    def lines(self, queries: Iterator[str]) -> Iterator[bytes]:
        """A line for every event; each creation takes the next query."""
        for start in range(0, len(self.after), BLOCK):
            part = slice(start, start + BLOCK)
            columns = (self.number[part].tolist(), self.is_drop[part].tolist(), self.after[part].tolist())
            for number, is_drop, after in zip(*columns, strict=True):
                # Nothing in these queries needs escaping in JSON.
                what = '"drop": true' if is_drop else f'"sql": "{next(queries)}"'
                yield f'{{"id": "s{number}", {what}, "after": {after}}}'.encode()


def random_moments(rng: np.random.Generator, count: int, changes: int) -> IntArray:
    """`count` uniformly random numbers of changes, ascending."""
    return np.sort(rng.integers(max(1, changes), size=count))


def even_moments(rng: np.random.Generator, count: int, first: int, changes: int) -> IntArray:
    """`count` moments evenly spread over the changes first, .., first + changes - 1, ascending.

    Each is random within its own share of the changes: with equal steps, all could fall on the same of several items.
    """
    return first + ((np.arange(count) + rng.random(count)) * (changes / max(1, count))).astype(np.int64)


def _later(rng: np.random.Generator, moments: IntArray, changes: int) -> IntArray:
    return moments + ((changes - moments) * rng.random(len(moments))).astype(np.int64)
