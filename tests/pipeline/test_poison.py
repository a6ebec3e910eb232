"""Whatever is accepted is served: nothing that comes through the registrar can stop the job."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.families.select.evaluator import SelectEvaluator
from tidings.pipeline.registrar import Answer, Registrar
from tidings.pipeline.replica.batch import Places
from tidings.pipeline.replica.replica import Replica
from tidings.sql import parse_catalog
from tidings.testing import FAMILY_WORKLOADS, Workload, with_transactions
from tidings.testing.oracle import Recomputation, walk
from tidings.testing.plain import canonical

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, x DOUBLE);"


class Live:
    """A registrar and a replica as a live job has them."""

    def __init__(self, catalog_sql: str) -> None:
        self.catalog = parse_catalog(catalog_sql)
        self.registrar = Registrar(self.catalog, lambda id, place: True, lambda _: True)
        self.replica = Replica(self.catalog, keeps_points=True, is_stream=True)
        self.views: dict[str, Counter[str]] = {}
        self.failed: list[tuple[str, str]] = []

    def feed(self, wishes: list[dict[str, Any]], changes: list[bytes]) -> list[Answer]:
        """A micro-batch; applies what is told to the views."""
        self.replica.advance()
        lines = [("", at, json.dumps(wish).encode()) for at, wish in enumerate(wishes)]
        points, answers = self.registrar.handle(lines, self.replica.passed)
        zeros = np.zeros(len(changes), np.int64)
        found = self.replica.apply(changes, Places([""], zeros, [""], zeros, np.arange(len(changes))), points)
        for line in found.notifications.lines():
            record = json.loads(line)
            view = Counter() if record["snapshot"] else self.views[record["subscription"]]
            for change in record["changes"]:
                view[canonical(change["row"])] += -1 if change["op"] == "delete" else 1
                if change["op"] == "update":
                    view[canonical(change["old"])] -= 1
            assert min(view.values(), default=0) >= 0
            self.views[record["subscription"]] = +view
        for id, _ in found.failed:
            self.registrar.expel(id)
        self.failed += found.failed
        return answers


@pytest.mark.parametrize("family", FAMILY_WORKLOADS)
def test_every_query_with_every_option_is_served_or_refused(family: str) -> None:
    @settings(max_examples=20)
    @given(
        st.one_of(FAMILY_WORKLOADS[family], with_transactions(FAMILY_WORKLOADS[family])),
        st.lists(st.sampled_from([None, "net"]), min_size=1, max_size=5),
        st.integers(1, 30),
    )
    def check(workload: Workload, options: list[str | None], size: int) -> None:
        live = Live(workload.catalog_sql)
        wishes = {record["id"]: record["sql"] for record in reversed(workload.subscriptions) if "sql" in record}
        events = [
            {"id": id, "sql": sql} | ({} if options[at % len(options)] is None else {"option": "net"})
            for at, (id, sql) in enumerate(wishes.items())
        ]
        answers = live.feed(events, [])
        assert [answer.refused for answer in answers] == [None] * len(events)
        lines = [json.dumps({k: v for k, v in record.items() if k != "seq"}).encode() for record in workload.changes]
        for start in range(0, len(lines), size):
            live.feed([], lines[start : start + size])
        assert live.failed == []
        assert set(live.views) == set(wishes)

    check()


@settings(max_examples=20)
@given(FAMILY_WORKLOADS["select"], st.integers(1, 9))
def test_views_are_right_whatever_option_they_have(workload: Workload, size: int) -> None:
    changes, passed = [], 0
    for record in workload.changes:
        if record["seq"] > passed:
            changes.append(record)
            passed = record["seq"]
    wishes = {record["id"]: record["sql"] for record in reversed(workload.subscriptions) if "sql" in record}
    live, plain = Live(workload.catalog_sql), Recomputation(workload.catalog)
    live.feed([{"id": id, "sql": sql, "option": "net"} for id, sql in wishes.items()], [])
    lines = [json.dumps({k: v for k, v in record.items() if k != "seq"}).encode() for record in changes]
    for start in range(0, len(lines), size):
        live.feed([], lines[start : start + size])
    walk(Workload(workload.catalog_sql, [{"id": id, "sql": sql} for id, sql in wishes.items()], changes), plain)
    assert live.views == {id: followed.answer for id, followed in plain.live.items()}


def row(id: int, x: float, op: str = "upsert") -> bytes:
    return json.dumps({"table": "t", "op": op, "row": {"id": id, "x": x}}).encode()


def wish(id: str, least: float, **more: Any) -> dict[str, Any]:
    return {"id": id, "sql": f"SELECT x FROM t WHERE x >= {least}", **more}


@pytest.mark.parametrize("method", ["add", "apply"])
def test_a_subscription_whose_evaluator_fails_is_dropped_with_an_answer(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evaluator fails for whoever has the constant 666; all others are served as before, from a new snapshot on."""
    live = Live(TABLE)
    live.feed([wish("old", 1)], [row(1, 5.0), row(2, 700.0)])
    real_add, real_apply = SelectEvaluator.add, SelectEvaluator.apply
    poisoned: set[int] = set()

    def add(self: SelectEvaluator, points: Any, slots: Any, lives: Any) -> None:
        bad = {slot for slot, id in zip(slots.tolist(), points.id.to_pylist(), strict=True) if id == "bad"}
        if bad and method == "add":
            raise RuntimeError("poison")
        real_add(self, points, slots, lives)
        if bad:
            poisoned.add(id_of(self))

    def id_of(evaluator: SelectEvaluator) -> int:
        return id(evaluator)

    def apply(self: SelectEvaluator, *args: Any) -> Any:
        if id(self) in poisoned:
            raise RuntimeError("poison")
        return real_apply(self, *args)

    monkeypatch.setattr(SelectEvaluator, "add", add)
    monkeypatch.setattr(SelectEvaluator, "apply", apply)
    live.feed([wish("new", 6), wish("bad", 666), wish("other", 2)], [row(1, 8.0)])
    assert [id for id, reason in live.failed if "poison" in reason] == ["bad"]
    live.feed([], [row(3, 9.0), row(2, 0.0)])
    shown = {id: sorted(json.loads(text)["x"] for text in view.elements()) for id, view in live.views.items()}
    assert shown == {"old": [8.0, 9.0], "new": [8.0, 9.0], "other": [8.0, 9.0]}
    assert live.feed([{"id": "bad", "drop": True}, wish("bad", 8.5)], [])[0].refused is not None
