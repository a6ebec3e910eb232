"""Select subscriptions over shared rows are told what recomputing their answers after every change says they should be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidings.families.select.evaluator import SelectEvaluator
from tidings.kernels.events import CHANGE, CREATE, Told
from tidings.kernels.rows import NONE
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.testing import Workload, oracle_lines, select_workloads

STOCKS = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, per DOUBLE, price DOUBLE);"
BONDS = "CREATE TABLE bonds (id BIGINT PRIMARY KEY, sector TEXT, price DOUBLE);"


class Watched(Replica):
    """A replica that keeps what its evaluator said."""

    def __init__(self, workload: Workload, scan_cells_max: int = SelectEvaluator.scan_cells_max) -> None:
        super().__init__(workload.catalog)

        class Select(SelectEvaluator):
            pass

        Select.scan_cells_max = scan_cells_max
        self._evaluators["select"] = Select(self.catalog, self.store)
        self.told: list[tuple[Any, Told]] = []

    def _evaluate(self, events: Any, *, is_told: bool) -> list[tuple[str, Told]]:
        told = super()._evaluate(events, is_told=is_told)
        # An evaluator may use their arrays again.
        self.told += [(events, part.copy()) for _, part in told]
        return told

    @property
    def evaluator(self) -> SelectEvaluator:
        evaluator = self._evaluators["select"]
        assert isinstance(evaluator, SelectEvaluator)
        return evaluator


def run(workload: Workload, size: int, replica: Watched) -> list[str]:
    door = Door(replica.catalog)
    door.read(workload.subscription_lines())
    points = door.take()
    changes = workload.change_lines()
    found = []
    for start in range(0, max(len(changes), 1), size):
        batch = changes[start : start + size]
        is_end = start + size >= len(changes)
        lines = replica.apply(batch, start, points if start == 0 else (), is_end=is_end).notifications
        found += lines.lines()
    return found


def check_told(replica: Watched) -> None:
    """A subscription is told at most once per event; of an event, at most one tail per projection and kind of change."""
    for events, told in replica.told:
        assert len(set(zip(told.event.tolist(), told.slot.tolist(), strict=True))) == len(told.event)
        kinds = set()
        for event, projection, start, stop in told.tails.tolist():
            changes = told.changes[start:stop]
            if events.kind[event] == CHANGE:
                assert len(changes) == 1
                kind = (event, projection, *(changes[0] == NONE).tolist())
                assert kind not in kinds
                kinds.add(kind)
            else:
                assert events.kind[event] == CREATE
                assert (changes[:, 0] == NONE).all()
                assert len(set(changes[:, 1].tolist())) == len(changes)


@pytest.mark.parametrize("cells_max", [20_000_000, -1])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(workload=select_workloads(), size=st.sampled_from([1, 3, 1000]))
def test_lines_are_those_of_the_oracle(workload: Workload, size: int, cells_max: int) -> None:
    replica = Watched(workload, cells_max)
    assert run(workload, size, replica) == oracle_lines(workload)
    check_told(replica)


def insert(seq: int, table: str, **row: Any) -> dict[str, Any]:
    return {"seq": seq, "table": table, "op": "insert", "row": row}


def stock(seq: int, op: str = "insert", **row: Any) -> dict[str, Any]:
    full = {"symbol": "A", "sector": "tech", "per": 10.0, "price": 5.0, **row}
    return {"seq": seq, "table": "stocks", "op": op, "row": {"symbol": full["symbol"]} if op == "delete" else full}


def subscribe(sql: str, id: str = "s", after: int = 0) -> dict[str, Any]:
    return {"id": id, "sql": sql, "after": after}


def told_of(workload: Workload, size: int = 1000) -> list[tuple[str, int, list[Any]]]:
    replica = Watched(workload)
    lines = run(workload, size, replica)
    assert lines == oracle_lines(workload)
    check_told(replica)
    records = map(json.loads, lines)
    return [(record["subscription"], record["seq"], record["changes"]) for record in records]


def test_moving_between_values_of_an_in_list_is_an_update() -> None:
    sql = "SELECT symbol, sector FROM stocks WHERE sector IN ('tech', 'food') AND price > 1"
    changes = [stock(1), stock(2, "update", sector="food"), stock(3, "update", sector="toys")]
    told = told_of(Workload(STOCKS, [subscribe(sql)], changes))
    assert [(seq, [change["op"] for change in found]) for _, seq, found in told[1:]] == [
        (1, ["insert"]),
        (2, ["update"]),
        (3, ["delete"]),
    ]


def test_columns_that_are_not_shown_change_unheard() -> None:
    subscriptions = [
        subscribe("SELECT symbol FROM stocks WHERE per > 1", "key"),
        subscribe("SELECT symbol, price FROM stocks WHERE per > 1", "price"),
    ]
    changes = [stock(1), stock(2, "update", per=20.0), stock(3, "update", per=20.0, price=6.0)]
    told = told_of(Workload(STOCKS, subscriptions, changes))
    assert [(id, seq) for id, seq, _ in told if seq > 1] == [("price", 3)]


@pytest.mark.parametrize("size", [1, 1000])
def test_tables_do_not_mix(size: int) -> None:
    """Two tables with columns of the same name, and subscriptions without equalities."""
    subscriptions = [
        subscribe("SELECT * FROM stocks", "all stocks"),
        subscribe("SELECT * FROM bonds", "all bonds"),
        subscribe("SELECT * FROM bonds WHERE price > 3", "bonds"),
        subscribe("SELECT * FROM stocks WHERE sector = 'tech' AND price > 3", "stocks"),
        subscribe("SELECT * FROM bonds WHERE sector = 'tech' AND price > 3", "bonds of tech", after=2),
    ]
    changes = [
        stock(1),
        insert(2, "bonds", id=1, sector="tech", price=4.0),
        stock(3, "update", price=2.0),
        insert(4, "bonds", id=2, sector="food", price=1.0),
        stock(5, "delete"),
    ]
    told = told_of(Workload(STOCKS + BONDS, subscriptions, changes), size)
    heard = {id: [seq for other, seq, _ in told if other == id] for id in ("bonds", "stocks", "bonds of tech")}
    assert heard == {"bonds": [0, 2], "stocks": [0, 1, 3], "bonds of tech": [2]}


@pytest.mark.parametrize("cells_max", [20_000_000, -1])
def test_arrays_grow_within_a_micro_batch(cells_max: int) -> None:
    """More is told of one change, and more rows are in snapshots, than there is room for at first."""
    symbols = [f"S{i:04}" for i in range(1500)]
    changes = [stock(i + 1, symbol=symbol) for i, symbol in enumerate(symbols)]
    changes += [stock(1501, "update", symbol=symbols[7], price=9.0)]
    subscriptions = [subscribe("SELECT symbol, price FROM stocks WHERE per > 1", f"a{i}", 1500) for i in range(2)]
    subscriptions += [
        subscribe(f"SELECT symbol, price FROM stocks WHERE price > {8 - i / 1000}", f"b{i}", 1500) for i in range(1800)
    ]
    workload = Workload(STOCKS, subscriptions, changes)
    replica = Watched(workload, cells_max)
    records = [json.loads(line) for line in run(workload, 2000, replica)]
    check_told(replica)
    assert [len(record["changes"]) for record in records if record["seq"] == 1500] == [1500] * 2 + [0] * 1800
    assert [len(record["changes"]) for record in records if record["seq"] == 1501] == [1] * 1802


def test_what_is_dropped_is_forgotten() -> None:
    queries = ("SELECT * FROM stocks WHERE sector = 'tech'", "SELECT * FROM stocks WHERE symbol IN ('A', 'B')")
    subscriptions = [subscribe(sql, f"s{i}") for i, sql in enumerate(queries)]
    drops = [{"id": f"s{i}", "after": 2, "drop": True} for i in range(2)]
    changes = [stock(1), stock(2, "update", price=6.0), stock(3, "update", price=7.0)]
    workload = Workload(STOCKS, [*subscriptions, *drops], changes)
    replica = Watched(workload)
    assert run(workload, 1, replica) == oracle_lines(workload)
    assert len(replica.evaluator.index) == 0
