"""Lines of subscriptions: all there from the start, or some that come and go while changes flow.

Market's own churn comes in blocks, many events at one moment. Here every event has a moment of its own, as where people
open and close an app: a batch of changes then holds many events, and no two of them need be at the same place.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

SHARE = 0.1
"""Of the subscriptions so many come later, and so many, some of these among them, go again."""


def steady(queries: Iterator[str], subscriptions: int) -> Iterator[bytes]:
    """Lines of subscriptions that exist from the start and stay."""
    for number, sql in zip(range(1, subscriptions + 1), queries, strict=False):
        yield create(number, sql, 0)


def coming_and_going(
    queries: Iterator[str], subscriptions: int, moments: range, seed: int, share: float = SHARE
) -> Iterator[bytes]:
    """Lines in order of `after`; who comes later or goes does so after a sequence number drawn from `moments`."""
    if not moments:
        yield from steady(queries, subscriptions)
        return
    rng = random.Random(f"churn {seed}")
    later: list[tuple[int, bytes]] = []
    for number, sql in zip(range(1, subscriptions + 1), queries, strict=False):
        after = rng.choice(moments) if rng.random() < share else 0
        line = create(number, sql, after)
        if after:
            later.append((after, line))
        else:
            yield line
        if rng.random() < share:
            # At the moment it came at the earliest: the sort below keeps equal moments in this order.
            gone = rng.randint(max(after, moments.start), moments.stop - 1)
            later.append((gone, drop(number, gone)))
    later.sort(key=lambda event: event[0])
    yield from (line for _, line in later)


def create(number: int, sql: str, after: int) -> bytes:
    # Nothing in the queries of workloads needs escaping in JSON.
    return f'{{"id": "s{number}", "sql": "{sql}", "after": {after}}}'.encode()


def drop(number: int, after: int) -> bytes:
    return f'{{"id": "s{number}", "drop": true, "after": {after}}}'.encode()
