"""A gateway behind a broker, through a great many subscriptions that come and go: what is held depends on who is there."""

from __future__ import annotations

import gc
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from months import CATALOG_SQL, left_behind, random_change, random_query

from tidings.pipeline.edge.broker import Broker
from tidings.pipeline.edge.dispatch import NOTICES, ROWS, PlaceOptions
from tidings.pipeline.edge.gateway import Gateway
from tidings.pipeline.edge.wire import decode, encode
from tidings.pipeline.live import Live
from tidings.sql import parse_catalog

ALIVE = 1_000
AT_ONCE = 250
"""Subscriptions that come in a micro-batch, while as many go."""
NEW_SHAPES = 0.02
PLACE = "eu/berlin"
RANGES = (
    "SELECT * FROM quotes WHERE price BETWEEN {} AND {} AND market = 'north'",
    "SELECT market, symbol, price FROM quotes WHERE symbol = {} AND volume <= {}",
    "SELECT * FROM trades WHERE price BETWEEN {} AND {} ORDER BY lots LIMIT 2",
    "SELECT id, price FROM trades WHERE id = {} AND moved(price) >= {}",
)


class Chain:
    """A job, a broker and a gateway, which reach each other by bytes."""

    def __init__(self, receive: str) -> None:
        options = PlaceOptions((PLACE,), receive, CATALOG_SQL)
        self.live = Live(parse_catalog(CATALOG_SQL), places=options)
        self.broker, self.gateway = Broker(), Gateway()
        self.rng = random.Random(11)
        self.alive: list[str] = []
        self.created = 0

    def query(self) -> str:
        if self.rng.random() < NEW_SHAPES:
            return random_query(self.rng)
        low = self.rng.randrange(1, 9)
        return self.rng.choice(RANGES).format(low, low + self.rng.randrange(3))

    def step(self) -> None:
        events: list[dict[str, Any]] = []
        if len(self.alive) >= ALIVE:
            self.rng.shuffle(self.alive)
            events += [{"id": self.alive.pop(), "drop": True} for _ in range(AT_ONCE)]
        for _ in range(AT_ONCE):
            self.created += 1
            self.alive.append(f"s{self.created}")
            events.append({"id": self.alive[-1], "sql": self.query(), "place": PLACE})
        changes = [random_change(self.rng, 0) for _ in range(20)]
        lines = [json.dumps({key: value for key, value in each.items() if key != "seq"}).encode() for each in changes]
        taken = self.live.take(lines, [json.dumps(event).encode() for event in events])
        assert not [answer for answer in taken.answers if answer.refused]
        for parcel in self.live.apply(taken).parcels:
            below = self.broker.take(decode(encode(parcel)))
            assert below is not None
            for each in below.parcels:
                assert self.gateway.take(decode(encode(each))) is not None


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("count", "receive"),
    [
        (10_000, ROWS),
        pytest.param(1_000_000, ROWS, marks=pytest.mark.extended),
        pytest.param(1_000_000, NOTICES, marks=pytest.mark.extended),
    ],
)
def test_memory_does_not_grow_with_who_has_been(count: int, receive: str) -> None:
    chain = Chain(receive)
    sizes: list[tuple[int, ...]] = []
    for half in (count // 2, count):
        while chain.created < half:
            chain.step()
        assert len(chain.gateway.queries) == len(chain.broker.queries) == len(chain.alive) <= ALIVE
        sizes.append((chain.gateway.nbytes, chain.broker.nbytes, chain.live.nbytes, resident()))
    print(f"{count:,} created, of the gateway, the broker, the job, and resident: {sizes}")
    # Templates of the job's queries are remembered, up to a limit that a short run does not reach.
    is_long = count >= 1_000_000
    for name, first, second in zip(("gateway", "broker", "job", "resident"), *sizes, strict=True):
        assert second <= 1.1 * first or (name in ("job", "resident") and not is_long), name
    if chain.gateway.has_rows:
        assert left_behind(chain.gateway._replica)["subscriptions"] == len(chain.alive)  # type: ignore[arg-type]
