"""Notifications of a replica that are looked at later say what they would have said at once, under the same ids."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tidings.engine import Engine
from tidings.model.notification import NotificationBatch
from tidings.sql import parse_catalog

CATALOG = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, price DOUBLE);"
LOOKS: dict[str, Callable[[NotificationBatch], object]] = {
    "lines": NotificationBatch.lines,
    "columns": lambda told: (
        told.subscriptions().to_pylist(),
        told.seq.tolist(),
        told.is_snapshot.tolist(),
        told.changes().to_pylist(),
        told.tx(),
        told.time.tolist(),
    ),
    "pieces": lambda told: [line for piece in told.pieces(50) for line in piece.lines()],
}


def told_by_churn(look: Callable[[NotificationBatch], object] | None) -> list[NotificationBatch]:
    """Subscriptions whose slots others get a little later. look: at each batch when it comes."""
    engine = Engine(parse_catalog(CATALOG))
    found = []
    seq = 0
    for turn in range(12):
        events = [{"id": f"{turn}-{n}", "sql": f"SELECT symbol FROM stocks WHERE price >= {n}"} for n in range(3)]
        events += [{"id": f"{turn - 2}-{n}", "drop": True} for n in range(3) if turn >= 2]
        lines = [json.dumps({**event, "after": seq}).encode() for event in events]
        assert engine.door.read(lines) == []
        for price in (turn % 4, (turn + 2) % 4):
            seq += 1
            row = {"symbol": "A", "price": float(price)}
            record = {"seq": seq, "table": "stocks", "op": "upsert", "row": row}
            told = engine.feed([json.dumps(record).encode()]).notifications
            if look is not None:
                look(told)
            found.append(told)
    return found


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("before", [None, *LOOKS])
def test_looks(name: str, before: str | None) -> None:
    at_once: list[object] = []
    told_by_churn(lambda told: at_once.append(LOOKS[name](told)))
    later = told_by_churn(None if before is None else LOOKS[before])
    assert [LOOKS[name](told) for told in later] == at_once
    assert sum(map(len, later)) > 50
