"""The join family keeps every promise of the contract suite, and shows joined rows as the file contract says."""

import json

import pytest

from join_bounds import selects_either
from tidings.engine import Engine
from tidings.families.join.family import JoinFamily
from tidings.families.join.semijoin.decomposition import UNFILTERED, Traffic, cheapest, combinations_of
from tidings.families.optional import SHARED
from tidings.model.errors import SqlError
from tidings.sql import parse_catalog
from tidings.testing import (
    CHECKS,
    ENGINE_CHECKS,
    SHARED_CHECKS,
    STAGE_CHECKS,
    Workload,
    check_family,
    join_workloads,
    run_inline,
)

TABLES = """
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, per DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE);
CREATE TABLE authors (id BIGINT PRIMARY KEY, review BIGINT);
"""
BOUNDS = {"has_exact_regions": lambda *_: False, "may_hear_twice": True, "may_reach": selects_either}


@pytest.mark.parametrize("check", SHARED_CHECKS, ids=lambda check: check.__name__)
def test_contract_over_shared_rows(check):
    check_family("join", join_workloads(), checks=[check], examples=12, strategies=[SHARED])


@pytest.mark.extended
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    # Rows travel whether or not they find a partner, and one that changes its partners may come from two shards.
    check_family("join", join_workloads(), checks=[check], examples=12, **BOUNDS)


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


def test_a_table_is_filtered_by_the_neighbour_that_makes_the_least_traffic():
    # The first neighbour has few partners, and rarely changes; the second has many, and often does.
    traffic = Traffic((10.0, 1.0, 5.0), {(0, 1): 2.0, (1, 0): 0.5, (0, 2): 2.0, (2, 0): 20.0})
    assert traffic.cost(0, (1,)) < traffic.cost(0, (2,)) < traffic.cost(0, UNFILTERED)
    assert cheapest(traffic, 0, [UNFILTERED, (2,), (1,)]) == (1,)
    assert traffic.cost(0, (1,)) == pytest.approx((10 / 16 * 0.5 / 2.5 + 1 / 16 * 2 * 2 / (2.5 * 3.5)) / 3)
    assert traffic.cost(0, (1, 2)) < traffic.cost(0, (1,))
    assert combinations_of([1, 2]) == [(), (1,), (2,), (1, 2)]


@pytest.mark.extended
@pytest.mark.parametrize("check", (*ENGINE_CHECKS, *STAGE_CHECKS), ids=lambda check: check.__name__)
def test_filters_follow_the_traffic_and_answers_stay_exact(check, monkeypatch):
    monkeypatch.setattr("tidings.families.join.semijoin.server._RECONSIDER_AFTER", 2)
    monkeypatch.setattr("tidings.families.join.semijoin.server._MUCH_CHEAPER", 1.0)
    monkeypatch.setattr(JoinFamily, "strategies", ("auto",))
    check_family("join", join_workloads(), checks=[check], examples=4, may_hear_twice=True)
