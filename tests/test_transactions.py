"""A transaction is one moment: what is told is the net effect of a commit, once, for every family and engine."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notification_columns import checked_lines
from tidings.engine import Engine
from tidings.model.catalog import Catalog
from tidings.pipeline.commits import micro_batches
from tidings.pipeline.door import Door
from tidings.plain import PlainEngine
from tidings.sql import parse_catalog
from tidings.testing import (
    CHECKS,
    FAMILY_WORKLOADS,
    Workload,
    check_family,
    recompute,
    run_inline,
    with_transactions,
)
from tidings.testing.plain import canonical
from tidings.testing.workload import chunks

STOCKS = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, risk DOUBLE, per DOUBLE);"


@pytest.mark.parametrize("family", FAMILY_WORKLOADS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(family: str, check: Any) -> None:
    check_family(family, with_transactions(FAMILY_WORKLOADS[family]), checks=[check], examples=6)


@pytest.mark.parametrize("family", ["select", "drift", "topk", "join"])
def test_the_plain_engine_agrees(family: str) -> None:
    """Lines, refused records and counts of the plain engine are those of the compiled one."""

    @settings(max_examples=20)
    @given(with_transactions(FAMILY_WORKLOADS[family]), st.sampled_from([1, 3, 1_000]), st.booleans())
    def check(workload: Workload, size: int, by_commit: bool) -> None:
        catalog = parse_catalog(workload.catalog_sql)
        batches = list(chunks(workload.change_lines(), [size] * len(workload.changes)))
        engines = (
            PlainEngine(catalog, Door(catalog, keeps_queries=True), by_commit=by_commit),
            Engine(catalog, by_commit=by_commit),
        )
        found = []
        for engine in engines:
            engine.door.read(workload.subscription_lines())
            results = [*map(engine.feed, batches), engine.finish()]
            lines = [line for result in results for line in checked_lines(result.notifications)]
            refused = [entry for result in results for entry in result.refused]
            found.append((lines, refused, engine.stats.summary(0, 0)))
        assert found[0] == found[1]

    check()


@pytest.mark.parametrize("family", FAMILY_WORKLOADS)
def test_the_net_effect_of_a_micro_batch(family: str) -> None:
    """With option `net` a view is told once per micro-batch at most, and is exact after every notification."""

    @settings(max_examples=20)
    @given(
        st.one_of(FAMILY_WORKLOADS[family], with_transactions(FAMILY_WORKLOADS[family])),
        st.lists(st.integers(1, 12), min_size=1, max_size=4),
    )
    def check(workload: Workload, sizes: list[int]) -> None:
        once: dict[str, dict[str, Any]] = {}
        for record in workload.subscriptions:
            if "sql" in record:
                once.setdefault(record["id"], {**record, "option": "net"})
        net = Workload(workload.catalog_sql, list(once.values()), workload.changes)
        batches = list(chunks(net.change_lines(), sizes))
        engine = Engine(net.catalog)
        assert engine.door.read(net.subscription_lines()) == []
        expected = recompute(net)
        answers: dict[str, Counter[str]] = {}
        for result in [*map(engine.feed, batches), engine.finish()]:
            told = [json.loads(line) for line in result.notifications.lines()]
            changes = [record["subscription"] for record in told if not record["snapshot"]]
            assert len(set(changes)) == len(changes), "told twice in one micro-batch"
            for record in told:
                assert record["changes"] or record["snapshot"]
                id = record["subscription"]
                answers[id] = applied(Counter() if record["snapshot"] else answers[id], record["changes"])
                assert answers[id] == [e.after for e in expected if e.id == id and e.seq <= record["seq"]][-1]
        assert answers == {entry.id: entry.after for entry in expected}

    check()


def applied(answer: Counter[str], changes: list[dict[str, Any]]) -> Counter[str]:
    answer = Counter(answer)
    for change in changes:
        for side in ("old", "row") if change["op"] == "update" else ("row",):
            answer[canonical(change[side])] += -1 if side == "old" or change["op"] == "delete" else 1
    assert min(answer.values(), default=0) >= 0
    return +answer


def stock(seq: int, symbol: str, per: float | None, tx: Any = None, op: str = "upsert") -> dict[str, Any]:
    row = {"symbol": symbol, "risk": 1.0, "per": per}
    record = {"seq": seq, "table": "stocks", "op": op, "row": {"symbol": symbol} if op == "delete" else row}
    return record if tx is None else {**record, "tx": tx}


def told(sql: str, changes: list[dict[str, Any]], option: str | None = None, sizes: tuple[int, ...] = ()) -> list[Any]:
    """(seq, tx, changes) of every notification but the first, which is the snapshot."""
    wish = {"id": "s", "sql": sql} | ({} if option is None else {"option": option})
    workload = Workload(STOCKS, [wish], changes)
    lines = run_inline(STOCKS, workload.subscription_lines(), workload.change_lines(), list(sizes), {})
    return [(record["seq"], record.get("tx"), record["changes"]) for record in map(json.loads, lines)][1:]


def test_what_comes_and_goes_within_a_transaction_is_not_told() -> None:
    changes = [stock(1, "A", 150.0), stock(2, "A", 1.0, "4711"), stock(3, "A", 1500.0, "4711")]
    assert told("SELECT * FROM stocks WHERE per < 140", changes) == []


def test_one_notification_has_all_changes_of_a_commit_with_its_last_seq() -> None:
    changes = [stock(1, "A", 1.0), stock(2, "B", 2.0)]
    changes += [
        stock(3, "C", 3.0, 9),
        stock(4, "A", 5.0, "9"),
        stock(5, "B", None, 9, "delete"),
        stock(6, "D", 999.0, 9),
    ]
    a, old, b, c = ({"symbol": name, "per": per} for name, per in (("A", 5.0), ("A", 1.0), ("B", 2.0), ("C", 3.0)))
    assert told("SELECT symbol, per FROM stocks WHERE per < 140", changes)[2:] == [
        (
            6,
            "9",
            [
                {"op": "update", "old": old, "row": a},
                {"op": "delete", "row": b},
                {"op": "insert", "row": c},
            ],
        )
    ]


def test_rows_that_look_alike_cancel_out_whatever_their_keys() -> None:
    changes = [stock(1, "A", 1.0), stock(2, "A", None, "t", "delete"), stock(3, "B", 1.0, "t")]
    assert told("SELECT per FROM stocks", changes)[1:] == []


def test_a_movement_within_a_transaction_is_none() -> None:
    """100 -> 106 -> 103: not moved by 5 since the commit before, and 100 is still what was told last."""
    changes = [stock(1, "A", 100.0), stock(2, "A", 106.0, "x"), stock(3, "A", 103.0, "x"), stock(4, "A", 105.0)]
    found = told("SELECT per FROM stocks WHERE moved(per) >= 5", changes)
    assert found[1:] == [(4, None, [{"op": "update", "old": {"per": 100.0}, "row": {"per": 105.0}}])]


def test_a_refused_record_does_not_void_its_transaction() -> None:
    changes = [stock(1, "A", 1.0, "x"), stock(2, "Z", 1.0, "x", "update"), stock(3, "B", 2.0, "x")]
    rows = [{"op": "insert", "row": {"per": per}} for per in (1.0, 2.0)]
    assert told("SELECT per FROM stocks", changes) == [(3, "x", rows)]


def test_a_subscription_that_comes_within_a_transaction_comes_after_it() -> None:
    changes = [stock(1, "A", 1.0, "x"), stock(2, "A", 2.0, "x"), stock(3, "B", 3.0, "x"), stock(4, "C", 4.0, "y")]
    wish = {"id": "s", "sql": "SELECT per FROM stocks", "after": 1}
    workload = Workload(STOCKS, [wish, {"id": "s", "drop": True, "after": 3}], changes)
    lines = run_inline(STOCKS, workload.subscription_lines(), workload.change_lines(), [], {})
    assert [(record["seq"], record["snapshot"], len(record["changes"])) for record in map(json.loads, lines)] == [
        (3, True, 2)
    ]


def test_option_net_tells_what_a_micro_batch_comes_to() -> None:
    changes = [stock(1, "A", 5.0), stock(2, "B", 7.0), stock(3, "B", 1.0), stock(4, "B", 8.0), stock(5, "A", 4.0)]
    a = {"symbol": "A", "per": 5.0}
    expected = [
        (2, None, [{"op": "insert", "row": a}]),
        (5, None, [{"op": "update", "old": a, "row": {"symbol": "A", "per": 4.0}}]),
    ]
    for sql in ("SELECT symbol, per FROM stocks ORDER BY per LIMIT 1", "SELECT symbol, per FROM stocks WHERE per < 6"):
        found = told(sql, changes, "net", (2, 4))
        assert [(1 if seq == 1 else seq, tx, told) for seq, tx, told in found][-1] == expected[-1]
        assert found[0][2] == expected[0][2]


def test_unknown_options_are_refused() -> None:
    catalog: Catalog = parse_catalog(STOCKS)
    line = json.dumps({"id": "s", "sql": "SELECT * FROM stocks ORDER BY per LIMIT 3", "option": "gross"}).encode()
    (refused,) = Engine(catalog).door.read([line])
    assert "option" in refused.reason


@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b", 1, "broken", ""]), st.integers(1, 4)), max_size=12), st.data()
)
def test_micro_batches_split_no_transaction(runs: list[tuple[Any, int]], data: st.DataObject) -> None:
    lines: list[bytes] = []
    for tx, count in runs:
        record = {} if tx is None else {"tx": tx}
        text = {"broken": b"{", "": b"  "}.get(tx) if isinstance(tx, str) else None
        lines += [json.dumps(record).encode() if text is None else text] * count
    sizes = data.draw(st.lists(st.integers(0, 5), max_size=10))
    batches = list(micro_batches(lines, [*sizes, len(lines)]))
    assert [line for batch in batches for line in batch] == lines
    readable = [[line for line in batch if line.startswith(b'{"') or line == b"{}"] for batch in batches]
    ends = [(batch[0], batch[-1]) for batch in readable if batch]
    for (_, last), (first, _) in pairwise(ends):
        assert last == b"{}" or last != first
