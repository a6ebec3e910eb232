"""Top-k subscriptions over shared rows are told what recomputing says they should be."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidings.families.topk.evaluator import TopkEvaluator
from tidings.kernels.events import CHANGE, Events, Told
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.testing import Workload, recompute, topk_workloads
from tidings.testing.plain import canonical
from tidings.testing.workload import Record, random_sizes

SOME = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))

STOCKS = "CREATE TABLE stocks (id INT PRIMARY KEY, sector TEXT, per DOUBLE, price DOUBLE, note TEXT);"
LISTINGS = """
CREATE TABLE listings (
    market TEXT, symbol TEXT, sector TEXT, kind INT, risk INT, per DOUBLE, price BIGINT, note TEXT, PRIMARY KEY (symbol, market)
);
"""


class Watched(Replica):
    """A replica that keeps what its evaluator said."""

    def __init__(self, catalog: Any) -> None:
        super().__init__(catalog)
        self._evaluators["topk"] = TopkEvaluator(catalog, self.store)
        self.told: list[tuple[Events, Told]] = []

    def _evaluate(self, events: Any, *, is_told: bool) -> list[tuple[str, Told]]:
        told = super()._evaluate(events, is_told=is_told)
        self.told += [(events, part) for _, part in told]
        return told

    @property
    def evaluator(self) -> TopkEvaluator:
        evaluator = self._evaluators["topk"]
        assert isinstance(evaluator, TopkEvaluator)
        return evaluator


def run(workload: Workload, sizes: list[int]) -> tuple[list[str], Watched]:
    replica = Watched(workload.catalog)
    door = Door(workload.catalog)
    door.read(workload.subscription_lines())
    found = replica.apply([], 0, door.take()).notifications
    lines, changes, start = found.lines(), workload.change_lines(), 0
    for size in [*sizes, len(changes)]:
        found = replica.apply(changes[start : start + size], start).notifications
        lines += found.lines()
        start += size
    found = replica.apply([], start, is_end=True).notifications
    return [*lines, *found.lines()], replica


def check_recomputed(workload: Workload, lines: list[str]) -> None:
    """Lines are one per difference of recomputed answers, and tell just that difference."""
    expected = recompute(workload)
    told = [json.loads(line) for line in lines]
    assert [(r["seq"], r["subscription"], r["snapshot"]) for r in told] == [entry.place for entry in expected]
    for record, entry in zip(told, expected, strict=True):
        changes = record["changes"]
        gone = Counter(
            canonical(change.get("old", change["row"])) for change in changes if change["op"] in ("update", "delete")
        )
        come = Counter(canonical(change["row"]) for change in changes if change["op"] in ("update", "insert"))
        assert (gone, come) == (entry.before - entry.after, entry.after - entry.before), record


@SOME
@given(workload=topk_workloads(ranges=(0, 1, 2, 3)), rng=st.randoms(use_true_random=False))
def test_lines_tell_what_recomputing_says(workload, rng):
    check_recomputed(workload, run(workload, random_sizes(len(workload.changes), rng))[0])


def query(rng: random.Random, ranges_max: int) -> str:
    """A query of LISTINGS; most hide the rank or the key, so that different rows look alike."""
    terms = []
    if rng.random() < 0.5:
        terms.append(rng.choice(["sector = 'tech'", "sector = 'food'", "sector IN ('tech', 'food', 'none')"]))
    if rng.random() < 0.3:
        terms.append(rng.choice(["kind = 1", "kind IN (0, 2)", "kind = 1 AND kind = 2"]))
    ranges = []
    if rng.random() < 0.6:
        low = rng.randrange(8)
        ranges.append(f"risk BETWEEN {low} AND {low + rng.randrange(6)}")
    if rng.random() < 0.3:
        ranges.append(f"per {rng.choice(['>', '>=', '<'])} {rng.randrange(4)}")
    if rng.random() < 0.1:
        ranges.append(f"price < {rng.randrange(30)}")
    terms += ranges[:ranges_max]
    shown = rng.choice(["*", "symbol, market", "price", "kind, per", "risk, note", "symbol"])
    rank = rng.choice(["price", "price DESC", "price DESC", "per", "risk DESC", "kind"])
    where = f" WHERE {' AND '.join(terms)}" if terms else ""
    return f"SELECT {shown} FROM listings{where} ORDER BY {rank} LIMIT {rng.choice([1, 1, 2, 3, 4, 5, 20])}"


def listing(rng: random.Random, seq: int, key: tuple[str, str], op: str) -> Record:
    market, symbol = key
    row = {
        "market": market,
        "symbol": symbol,
        "sector": rng.choice(["tech", "tech", "food", "none", None]),
        "kind": rng.choice([0, 1, 2, None]),
        "risk": rng.choice([*range(12), None]),
        "per": rng.choice([-1.0, 0.0, -0.0, 1.0, 2.5, 3.0, None]),
        "price": rng.choice([*range(30), None]),
        "note": rng.choice(["a", "b", None]),
    }
    return {"seq": seq, "table": "listings", "op": op, "row": row}


def listings(seed: int, *, rows: int, changes: int, subscriptions: int, ranges_max: int = 3) -> Workload:
    """Rows come until there are enough, then most changes are deletes and inserts; subscriptions come and go."""
    rng = random.Random(seed)
    keys = [(market, f"prefix08{i:04}") for i in range(rows // 2) for market in ("N", "Q")]
    there: set[tuple[str, str]] = set()
    records = []
    for seq in range(1, changes + 1):
        key = rng.choice(keys)
        goes = key in there and rng.random() < (0.2 if seq < changes // 2 else 0.6)
        records.append(listing(rng, seq, key, "delete" if goes else "upsert"))
        (there.discard if goes else there.add)(key)
    lives: list[Record] = []
    for i in range(subscriptions):
        after = rng.choice([0, 0, rng.randrange(changes)])
        lives.append({"id": f"s{i}", "sql": query(rng, ranges_max), "after": after})
        if rng.random() < 0.4:
            lives.append({"id": f"s{i}", "drop": True, "after": after + rng.randrange(1, changes)})
    return Workload(LISTINGS, lives, records)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.extended) for seed in (1, 2))])
def test_rows_that_go_are_replaced_by_those_behind(seed):
    workload = listings(seed, rows=180, changes=450, subscriptions=25)
    check_recomputed(workload, run(workload, [1, 1, 200, 7, 1, 100])[0])


@pytest.mark.extended
@pytest.mark.parametrize("ranges_max", [1, 3])
@pytest.mark.parametrize("sizes", [[1] * 400, [2000]], ids=["one by one", "all at once"])
def test_orders_of_several_blocks(sizes, ranges_max):
    workload = listings(7, rows=700, changes=2000, subscriptions=12, ranges_max=ranges_max)
    check_recomputed(workload, run(workload, sizes)[0])


def stock(seq: int, id: int, price: float | None, op: str = "upsert", **others: Any) -> Record:
    row = {"id": id, "sector": "tech", "per": 1.0, "price": price, "note": "n", **others}
    return {"seq": seq, "table": "stocks", "op": op, "row": row}


def test_a_change_of_hidden_columns_tells_nobody_and_is_shown_later():
    sql = "SELECT id, price FROM stocks ORDER BY price LIMIT 1"
    every = "SELECT * FROM stocks ORDER BY price LIMIT 1"
    subscriptions = [{"id": "a", "sql": sql}, {"id": "b", "sql": every, "after": 3}]
    workload = Workload(STOCKS, subscriptions, [stock(1, 1, 1.0), stock(2, 1, 1.0, note="x"), stock(3, 2, 5.0)])
    lines, _ = run(workload, [1, 1, 1])
    assert [(json.loads(line)["seq"], json.loads(line)["subscription"]) for line in lines] == [
        (0, "a"),
        (1, "a"),
        (3, "b"),
    ]
    assert '"note": "x"' in lines[-1]


def test_those_told_the_same_share_a_tail():
    sql = "SELECT * FROM stocks WHERE per BETWEEN {} AND 9 ORDER BY price DESC LIMIT 2"
    subscriptions = [{"id": f"s{i}", "sql": sql.format(i / 100)} for i in range(50)]
    workload = Workload(STOCKS, subscriptions, [stock(i, i, float(i), per=5.0) for i in range(1, 6)])
    _, replica = run(workload, [5])
    events, told = replica.told[-1]
    assert len(told.event) == 250
    assert told.tails[:, 0].tolist() == np.flatnonzero(events.kind == CHANGE).tolist()


def test_those_who_are_gone_leave_nothing():
    workload = listings(3, rows=100, changes=300, subscriptions=40)
    ids = {record["id"] for record in workload.subscriptions}
    lives = [record for record in workload.subscriptions if not record.get("drop")]
    drops = [{"id": id, "drop": True, "after": 301} for id in sorted(ids)]
    again = [{"id": "again", "sql": "SELECT symbol FROM listings ORDER BY price LIMIT 3", "after": 303}]
    changes = [*workload.changes, *(listing(random.Random(i), i, ("N", "new"), "upsert") for i in range(301, 310))]
    changed = Workload(LISTINGS, [*lives, *drops, *again], changes)
    lines, replica = run(changed, [100, 100, 100, 2, 1, 1, 1])
    check_recomputed(changed, lines)
    assert replica.evaluator.nbytes < 100_000
    replica.evaluator.remove(np.array([replica.subscriptions.slots["again"]]))
    assert replica.evaluator.nbytes < 10_000


def test_a_restart_makes_lists_from_current_rows():
    workload = listings(5, rows=150, changes=400, subscriptions=30)
    lives = [record for record in workload.subscriptions if not record.get("drop")]
    lives = [{**record, "after": 0} for record in lives]
    whole = Workload(LISTINGS, lives, workload.changes)
    _, replica = run(Workload(LISTINGS, lives, workload.changes[:300]), [100])
    restarted = TopkEvaluator(replica.catalog, replica.store)
    door = Door(replica.catalog)
    door.read(whole.subscription_lines())
    slots = replica.subscriptions.slots
    for points in door.take():
        own = np.array([slots[id] for id in points.id.to_pylist()], np.int64)
        restarted.add(points, own, replica.subscriptions.lives)
    replica._evaluators["topk"] = restarted
    found = replica.apply(whole.change_lines()[300:], 300).notifications
    expected = [line for line in run(whole, [100])[0] if json.loads(line)["seq"] > 300]
    assert found.lines() == expected
