"""Data of the mix bench: subscriptions and rows at the start, later subscription events, and the changes to be timed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Protocol

from tidings.workloads.auctions import auctions
from tidings.workloads.market import Churn, market
from tidings.workloads.shapes import shapes
from tidings.workloads.workload import WorkloadLines

_AFTER = re.compile(rb'"after": (\d+)\}$')
_SEQ = re.compile(rb'^\{"seq": (\d+)')


@dataclass(frozen=True)
class MixData:
    """Lines of the file contract, without line ends."""

    catalog_sql: str
    first: list[bytes]
    """Subscriptions that exist from the start."""
    later: list[tuple[int, bytes]]
    """(after, line) of later creations and drops, in order."""
    filling: list[bytes]
    """The changes that fill the tables."""
    live: list[bytes]

    @staticmethod
    def of(made: WorkloadLines) -> MixData:
        """The data of a workload. Its filling ends at the first change that is no insert."""
        first: list[bytes] = []
        later: list[tuple[int, bytes]] = []
        for line in made.subscriptions:
            if after := _number(_AFTER, line):
                later.append((after, line))
            else:
                first.append(line)
        changes = list(made.changes)
        filling = list(takewhile(lambda line: b'"op": "insert"' in line, changes))
        return MixData(made.catalog_sql, first, later, filling, changes[len(filling) :])

    def batches(self, count: int, size: int, start: int) -> Iterator[Batch]:
        """Up to `count` batches of `size` live changes, from change `start` on; the last may be smaller."""
        for at in range(start, min(start + count * size, len(self.live)), size):
            lines = self.live[at : at + size]
            yield Batch(lines, _number(_SEQ, lines[-1]))


@dataclass(frozen=True)
class Batch:
    lines: list[bytes]
    last: int
    """Sequence number of the last change."""


class Make(Protocol):
    def __call__(self, *, seed: int, rows: int, subscriptions: int, changes: int, has_churn: bool) -> WorkloadLines: ...


@dataclass(frozen=True)
class Case:
    key: str
    label: str
    make: Make
    rows: Callable[[int], int]
    """Rows at the start, by the number of subscriptions."""
    filling: float
    """Approximate number of changes per row that fill the tables."""
    replayed: int
    """Changes of the whole replay, the filling among them."""
    is_select: bool = False
    """Whether all subscriptions are selections, which every peer can express."""

    def data(self, size: int, live: int, seed: int, *, has_churn: bool) -> MixData:
        """Data with about so many live changes."""
        rows = self.rows(size)
        changes = int(self.filling * rows) + 50 + live
        return MixData.of(self.make(seed=seed, rows=rows, subscriptions=size, changes=changes, has_churn=has_churn))

    def whole(self, size: int, seed: int) -> MixData:
        """Data of the whole replay: as many rows as suit the changes, and subscriptions that come and go."""
        return MixData.of(self.make(seed=seed, rows=0, subscriptions=size, changes=self.replayed, has_churn=True))


def _market(
    is_select_only: bool, *, seed: int, rows: int, subscriptions: int, changes: int, has_churn: bool
) -> WorkloadLines:
    churn = Churn.single if has_churn else Churn.none
    return market(
        seed=seed, rows=rows, subscriptions=subscriptions, changes=changes, churn=churn, is_select_only=is_select_only
    )


def between(low: int, high: int, share: float, size: int) -> int:
    return max(low, min(high, int(share * size)))


CASES = {
    case.key: case
    for case in (
        Case("market", "market", partial(_market, False), partial(between, 20, 5_000, 1.0), 1.75, 60_000),
        Case(
            "select",
            "market, selections",
            partial(_market, True),
            partial(between, 20, 5_000, 1.0),
            1.55,
            60_000,
            True,
        ),
        Case("auctions", "auctions", auctions, partial(between, 40, 40_000, 0.2), 1.75, 20_000),
        Case("shapes", "1,000 shapes", shapes, partial(between, 20, 20_000, 0.2), 1.0, 20_000, True),
    )
}


def _number(pattern: re.Pattern[bytes], line: bytes) -> int:
    found = pattern.search(line)
    assert found is not None, line
    return int(found[1])
