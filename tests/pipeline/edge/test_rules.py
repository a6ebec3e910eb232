"""The rules by which places are sent rows, each broken on purpose: then lines are wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tidings.engine import Engine
from tidings.kernels.packs import EVENT, FLAGS, IS_BACKFILL
from tidings.pipeline.edge import holders as module
from tidings.pipeline.edge.holders import Holders
from tidings.pipeline.edge.partial import PartialStore
from tidings.testing import Workload
from tidings.testing.checks.places import Places

CATALOG = "CREATE TABLE t (id INT PRIMARY KEY, kind TEXT, n INT);"


def put(seq: int, id: int, n: int, **more: Any) -> dict[str, Any]:
    return {"seq": seq, "table": "t", "op": "upsert", "row": {"id": id, "kind": "x", "n": n}, **more}


def drop(seq: int, id: int) -> dict[str, Any]:
    return {"seq": seq, "table": "t", "op": "delete", "row": {"id": id}}


WORKLOAD = Workload(
    CATALOG,
    [
        {"id": "best", "sql": "SELECT id, n FROM t ORDER BY n LIMIT 1"},
        {"id": "all", "sql": "SELECT * FROM t WHERE n < 5"},
    ],
    [
        put(1, 1, 1),
        put(2, 2, 2),
        put(3, 3, 30),
        put(4, 4, 40),
        put(5, 1, 0),
        drop(6, 1),
        put(7, 2, 3, tx="a"),
        put(8, 3, 2, tx="a"),
        drop(9, 3),
        drop(10, 2),
        put(11, 4, 45),
        put(12, 5, 50, tx="b"),
        put(13, 6, 1, tx="b"),
        drop(14, 6),
    ],
)


LINES = WORKLOAD.change_lines()
BATCHES = [*([line] for line in LINES[:6]), LINES[6:8], *([line] for line in LINES[8:11]), LINES[11:13], LINES[13:]]
"""One change after the other; those of a transaction together."""


def whole() -> list[str]:
    """What one engine with all rows tells."""
    engine = Engine(WORKLOAD.catalog)
    engine.door.read(WORKLOAD.subscription_lines())
    return [line for batch in BATCHES for line in engine.feed(batch).notifications.lines()]


def told(between: Callable[[Places], object] = lambda places: None) -> list[str]:
    """What is told at two places."""
    places = Places(WORKLOAD, 2)
    found = []
    for batch in BATCHES:
        found += places.feed(batch)
        between(places)
    return found


def test_lines_are_those_of_one_engine() -> None:
    assert told() == whole()
    assert told(Places.forget) == whole()


def test_who_may_hold_a_row_does_not_surely_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Holders.forget

    def all_hold(self: Holders, versions: Any) -> None:
        honest(self, versions)
        self._sure[versions] = self._may[versions]

    monkeypatch.setattr(Holders, "forget", all_hold)
    assert told(Places.forget) != whole()


def test_backfills_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = module.list_items

    def late(*arguments: Any) -> Any:
        items, masks = honest(*arguments)
        seq = arguments[1]
        order = np.lexsort(((items[:, FLAGS] & IS_BACKFILL) != 0, seq[items[:, EVENT]]))
        return np.ascontiguousarray(items[order]), np.ascontiguousarray(masks[order])

    monkeypatch.setattr(module, "list_items", late)
    assert told() != whole()


def test_records_of_a_commit_are_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = PartialStore.take_pack

    def apart(self: PartialStore, pack: Any, *, forgives: bool) -> Any:
        batch = honest(self, pack, forgives=forgives)
        batch.is_part, batch.has_tx = np.zeros_like(batch.is_part), False
        return batch

    monkeypatch.setattr(PartialStore, "take_pack", apart)
    assert told() != whole()


def test_nothing_is_taken_from_those_who_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def evict(places: Places) -> None:
        places.sender.holders._may[:] = 0

    assert told(evict) != whole()
