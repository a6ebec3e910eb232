"""The join family keeps every promise of the contract suite, and shows joined rows as the file contract says."""

import json

import pytest

from tidings.engine import Engine
from tidings.model.errors import SqlError
from tidings.sql import parse_catalog
from tidings.testing import CHECKS, Workload, check_family, join_workloads, run_inline

TABLES = """
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, per DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE);
CREATE TABLE authors (id BIGINT PRIMARY KEY, review BIGINT);
"""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check_family("join", join_workloads(), checks=[check], examples=12)


def stock(seq, symbol, per, op="upsert"):
    return {"seq": seq, "table": "stocks", "op": op, "row": {"symbol": symbol, "per": per}}


def review(seq, id, symbol, rating):
    return {"seq": seq, "table": "reviews", "op": "upsert", "row": {"id": id, "symbol": symbol, "rating": rating}}


def told(sql, changes):
    workload = Workload(TABLES, [{"id": "s", "sql": sql}], changes)
    lines = run_inline(TABLES, workload.subscription_lines(), workload.change_lines(), [len(changes)], {})
    return [(record["seq"], record["changes"]) for record in map(json.loads, lines)][1:]


def test_partners_come_and_go_on_both_sides():
    sql = "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per >= 10 AND rating BETWEEN 5 AND 9"
    changes = [
        stock(1, "A", 20.0),
        review(2, 1, "A", 7.0),
        review(3, 2, "A", 3.0),
        stock(4, "A", 30.0),
        review(5, 1, "B", 7.0),
    ]
    row = {"symbol": "A", "per": 20.0, "id": 1, "rating": 7.0}
    assert told(sql, changes) == [
        (2, [{"op": "insert", "row": row}]),
        (4, [{"op": "update", "old": row, "row": {**row, "per": 30.0}}]),
        (5, [{"op": "delete", "row": {**row, "per": 30.0}}]),
    ]


def test_names_that_would_clash_carry_their_table():
    changes = [stock(1, "A", 20.0), review(2, 1, "A", 7.0)]
    (first,) = told("SELECT * FROM stocks JOIN reviews ON reviews.symbol = stocks.symbol", changes)
    assert list(first[1][0]["row"]) == ["stocks.symbol", "per", "id", "reviews.symbol", "rating"]
    (first,) = told("SELECT reviews.symbol, id FROM stocks JOIN reviews ON reviews.symbol = stocks.symbol", changes)
    assert first[1] == [{"op": "insert", "row": {"symbol": "A", "id": 1}}]


def test_a_change_of_columns_that_are_not_shown_tells_nobody():
    sql = "SELECT symbol FROM stocks JOIN reviews USING (symbol)"
    changes = [stock(1, "A", 20.0), review(2, 1, "A", 7.0), stock(3, "A", 21.0), review(4, 2, "A", 1.0)]
    assert told(sql, changes) == [(seq, [{"op": "insert", "row": {"symbol": "A"}}]) for seq in (2, 4)]


def test_ranking_a_join_is_refused_with_a_reason():
    sql = "SELECT * FROM stocks JOIN reviews USING (symbol) ORDER BY per LIMIT 3"
    with pytest.raises(SqlError, match=r"ORDER BY \.\. LIMIT over a join"):
        Engine(parse_catalog(TABLES)).door.create("s", sql, 0)
