"""Lines of subscriptions: all from the start, or with churn.

The market's own churn is in blocks, many events at one seq. Here every event has its own seq, as when people open and close an
app: a batch of changes then has many events between its changes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

SHARE = 0.1
"""Share of the subscriptions that are created later, and share that are dropped; a subscription may be both."""


def steady(queries: Iterator[str], subscriptions: int) -> Iterator[bytes]:
    """Lines of subscriptions that exist from the start and are never dropped."""
    for number, sql in zip(range(1, subscriptions + 1), queries, strict=False):
        yield create(number, sql, 0)


def coming_and_going(
    queries: Iterator[str], subscriptions: int, moments: range, seed: int, share: float = SHARE
) -> Iterator[bytes]:
    """Lines in order of `after`. moments: sequence numbers from which those of later creations and drops are drawn."""
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
            # Not before its creation; at an equal seq the stable sort below keeps the drop behind the creation.
            gone = rng.randint(max(after, moments.start), moments.stop - 1)
            later.append((gone, drop(number, gone)))
    later.sort(key=lambda event: event[0])
    yield from (line for _, line in later)


def create(number: int, sql: str, after: int) -> bytes:
    # Nothing in the queries of workloads needs escaping in JSON.
    return f'{{"id": "s{number}", "sql": "{sql}", "after": {after}}}'.encode()


def drop(number: int, after: int) -> bytes:
    return f'{{"id": "s{number}", "drop": true, "after": {after}}}'.encode()
