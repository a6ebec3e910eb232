"""Top-k with ranges of several columns keeps every promise of the contract suite, and tells few besides those concerned."""

import json

import pytest

from tidings.engine import Engine
from tidings.families.registry import family, family_of
from tidings.model.errors import SqlError
from tidings.sql import Compiler, parse_catalog
from tidings.testing import CHECKS, Workload, check_family, run_inline, topk_workloads

STOCKS = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, risk BIGINT, per DOUBLE, price INT);"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check_family("topk", topk_workloads(changes_max=30, ranges=(2, 2, 3)), checks=[check], examples=10)


def stock(seq, symbol, risk, per, price, op="upsert", sector="tech"):
    row = {"symbol": symbol, "sector": sector, "risk": risk, "per": per, "price": price}
    return {"seq": seq, "table": "stocks", "op": op, "row": {"symbol": symbol} if op == "delete" else row}


def told(sql, changes, after=0):
    workload = Workload(STOCKS, [{"id": "s", "sql": sql, "after": after}], changes)
    lines = run_inline(STOCKS, workload.subscription_lines(), workload.change_lines(), [len(changes)], {})
    return [
        (record["seq"], [(change["op"], change["row"]["symbol"]) for change in record["changes"]])
        for record in map(json.loads, lines)
    ]


CHEAP = "SELECT symbol FROM stocks WHERE risk BETWEEN 1 AND 3 AND per BETWEEN 10 AND 20 ORDER BY price LIMIT 2"


def test_a_row_that_leaves_one_of_the_ranges_makes_room():
    changes = [
        stock(1, "A", 2, 15.0, 100),
        stock(2, "B", 2, 15.0, 110),
        stock(3, "C", 2, 15.0, 120),
        stock(4, "D", 9, 15.0, 1),
        stock(5, "A", 2, 25.0, 100),
        stock(6, "A", 2, 12.0, 105),
        stock(7, "C", 3, 10.0, 90),
        stock(8, "C", 0, 0, 0, op="delete"),
    ]
    assert told(CHEAP, changes) == [
        (0, []),
        (1, [("insert", "A")]),
        (2, [("insert", "B")]),
        (5, [("delete", "A"), ("insert", "C")]),
        (6, [("delete", "C"), ("insert", "A")]),
        (7, [("delete", "B"), ("insert", "C")]),
        (8, [("delete", "C"), ("insert", "B")]),
    ]


def test_created_in_mid_stream_it_starts_with_its_rows():
    changes = [stock(i, name, i, 15.0, -i) for i, name in enumerate("ABCD", 1)]
    assert told(CHEAP, changes, after=3) == [(3, [("insert", "B"), ("insert", "C")])]


def test_the_greatest_number_of_all_is_not_below_itself():
    sql = f"SELECT symbol FROM stocks WHERE risk < {2**63 - 1} AND per > 0 ORDER BY price LIMIT 1"
    changes = [stock(1, "A", 2**63 - 1, 1.0, 1), stock(2, "B", 2**63 - 2, 1.0, 2), stock(3, "C", -(2**63), 1.0, 3)]
    assert told(sql, changes) == [(0, []), (2, [("insert", "B")])]


def test_ranges_of_many_columns_are_refused_with_a_reason():
    names = [f"c{i}" for i in range(9)]
    catalog = f"CREATE TABLE t (id INT PRIMARY KEY, {', '.join(f'{name} INT' for name in names)});"
    door = Engine(parse_catalog(catalog)).door
    eight = " AND ".join(f"{name} > 0" for name in names[:8])
    door.create("s", f"SELECT * FROM t WHERE {eight} ORDER BY id LIMIT 3", 0)
    with pytest.raises(SqlError, match="ranges of 9 columns"):
        door.create("t", f"SELECT * FROM t WHERE {eight} AND c8 > 0 ORDER BY id LIMIT 3", 0)


def test_explain_names_all_ranges():
    catalog = parse_catalog(STOCKS)
    statement = Compiler(catalog).compile(CHEAP)
    placement = family("topk").place(statement.shape, statement.constants, catalog)
    lines = dict(family("topk").explanation.lines(family_of(placement.form)[1], placement, catalog))
    assert lines["point"] == "(risk: 1 .. 3, per: 10.0 .. 20.0) in the space of 2 ranges"
