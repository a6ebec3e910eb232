"""The top-k family keeps every promise of the contract suite, and its answers are the first rows in order."""

import json

import pytest

from tidings.engine import Engine
from tidings.model.errors import SqlError
from tidings.sql import parse_catalog
from tidings.testing import CHECKS, Workload, check_family, run_inline, topk_workloads

STOCKS = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, risk DOUBLE, per DOUBLE);"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check_family("topk", topk_workloads(), checks=[check], examples=10)


def stock(seq, symbol, per, risk=1.0, op="upsert", sector="tech"):
    row = {"symbol": symbol, "sector": sector, "risk": risk, "per": per}
    return {"seq": seq, "table": "stocks", "op": op, "row": {"symbol": symbol} if op == "delete" else row}


def told(sql, changes, after=0):
    workload = Workload(STOCKS, [{"id": "s", "sql": sql, "after": after}], changes)
    lines = run_inline(STOCKS, workload.subscription_lines(), workload.change_lines(), [len(changes)], {})
    return [(record["seq"], record["changes"]) for record in map(json.loads, lines)]


def test_a_better_row_takes_the_place_of_the_last_and_gives_it_back():
    sql = "SELECT symbol FROM stocks WHERE risk BETWEEN 0 AND 2 ORDER BY per LIMIT 2"
    changes = [stock(1, "A", 3.0), stock(2, "B", 5.0), stock(3, "C", 4.0), stock(4, "C", 0, op="delete")]
    a, b, c = ({"symbol": name} for name in "ABC")
    assert told(sql, changes) == [
        (0, []),
        (1, [{"op": "insert", "row": a}]),
        (2, [{"op": "insert", "row": b}]),
        (3, [{"op": "delete", "row": b}, {"op": "insert", "row": c}]),
        (4, [{"op": "delete", "row": c}, {"op": "insert", "row": b}]),
    ]


def test_ties_go_by_the_key_also_when_descending():
    sql = "SELECT symbol FROM stocks ORDER BY per DESC LIMIT 1"
    assert told(sql, [stock(1, "B", 3.0), stock(2, "A", 3.0), stock(3, "C", 3.0)])[1:] == [
        (1, [{"op": "insert", "row": {"symbol": "B"}}]),
        (2, [{"op": "delete", "row": {"symbol": "B"}}, {"op": "insert", "row": {"symbol": "A"}}]),
    ]


def test_created_in_mid_stream_it_starts_with_its_rows():
    changes = [stock(i, name, 10.0 - i) for i, name in enumerate("ABCD", 1)]
    sql = "SELECT symbol FROM stocks WHERE sector = 'tech' ORDER BY per LIMIT 2"
    assert told(sql, changes, after=3) == [
        (3, [{"op": "insert", "row": {"symbol": "B"}}, {"op": "insert", "row": {"symbol": "C"}}]),
        (4, [{"op": "delete", "row": {"symbol": "B"}}, {"op": "insert", "row": {"symbol": "D"}}]),
    ]


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT * FROM stocks WHERE risk > 1 AND sector > 'a' ORDER BY per LIMIT 3", "which is TEXT"),
        ("SELECT * FROM stocks WHERE sector > 'a' ORDER BY per LIMIT 3", "which is TEXT"),
        ("SELECT * FROM stocks ORDER BY sector LIMIT 3", "which is TEXT"),
    ],
)
def test_what_is_not_served_is_refused_with_a_reason(sql, problem):
    with pytest.raises(SqlError, match=problem):
        Engine(parse_catalog(STOCKS)).door.create("s", sql, 0)
