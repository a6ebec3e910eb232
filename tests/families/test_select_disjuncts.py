"""Select subscriptions of several disjuncts and with IS NULL: one view each, whatever rows do between their disjuncts."""

import json

import numpy as np
import pytest

from research.servers.forms import is_regional
from tidings.engine import Engine
from tidings.families.select.evaluator import SelectEvaluator
from tidings.model.errors import SqlError
from tidings.pipeline.door import Door
from tidings.placed import PlacedEngine
from tidings.sql import parse_catalog

CATALOG = parse_catalog(
    "CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT, b TEXT, c DOUBLE);"
    "CREATE TABLE u (id BIGINT PRIMARY KEY, a BIGINT, b TEXT);"
)


def row(id=1, a=None, b=None, c=None):
    return {"id": id, "a": a, "b": b, "c": c}


def told(sql, rows, strategy="shared", table="t"):
    """What the subscription is told at each version of the rows, (op, row) at a time."""
    engine = Engine(CATALOG) if strategy == "shared" else PlacedEngine(CATALOG, 2, strategies={})
    assert engine.door.read([json.dumps({"id": "s", "sql": sql}).encode()]) == []
    found = []
    for seq, one in enumerate(rows, 1):
        op = "delete" if list(one) == ["id"] else "upsert"
        lines = engine.feed([json.dumps({"seq": seq, "table": table, "op": op, "row": one}).encode()]).notifications
        records = [json.loads(line) for line in lines.lines()]
        changes = [change for record in records if not record["snapshot"] for change in record["changes"]]
        assert len([record for record in records if not record["snapshot"]]) <= 1
        found.append([(change["op"], change["row"]["id"]) for change in changes])
    return found


@pytest.mark.parametrize("strategy", ["shared", "region"])
def test_a_row_that_moves_between_disjuncts_is_told_once(strategy):
    rows = [row(a=1), row(a=1, b="x"), row(b="x"), row(a=2, b="y"), {"id": 1}]
    assert told("SELECT * FROM t WHERE a = 1 OR b = 'x'", rows, strategy) == [
        [("insert", 1)],
        [("update", 1)],
        [("update", 1)],
        [("delete", 1)],
        [],
    ]


def test_a_move_between_disjuncts_that_leaves_what_is_shown_is_no_change():
    rows = [row(a=1, c=1.0), row(a=1, b="x", c=2.0), row(a=7, b="x", c=2.0), row(a=7, b="y", c=2.0)]
    assert told("SELECT id FROM t WHERE a = 1 OR b = 'x'", rows) == [[("insert", 1)], [], [], [("delete", 1)]]


def test_null_and_back():
    rows = [row(), row(a=1), row(b="x"), row(a=None, b="x", c=0.0), {"id": 1}]
    assert told("SELECT id FROM t WHERE a IS NULL", rows) == [
        [("insert", 1)],
        [("delete", 1)],
        [("insert", 1)],
        [],
        [("delete", 1)],
    ]
    assert told("SELECT id FROM t WHERE a IS NULL AND b IS NULL", rows) == [
        [("insert", 1)],
        [("delete", 1)],
        [],
        [],
        [],
    ]
    assert told("SELECT id FROM t WHERE a IS NOT NULL OR b IS NULL", rows) == [
        [("insert", 1)],
        [],
        [("delete", 1)],
        [],
        [],
    ]


@pytest.mark.parametrize(
    "condition", ["a < 5", "NOT (a < 5)", "a <> 5", "a NOT IN (1, 2)", "a NOT BETWEEN 1 AND 2", "NOT (a = 1 AND a = 2)"]
)
def test_null_satisfies_neither_a_comparison_nor_its_opposite(condition):
    assert told(f"SELECT * FROM t WHERE {condition}", [row()]) == [[]]
    assert told(f"SELECT * FROM t WHERE NOT ({condition})", [row()]) == [[]]


def test_unknown_beside_true_and_false():
    assert told("SELECT * FROM t WHERE a < 5 OR b = 'x'", [row(b="x")]) == [[("insert", 1)]]
    assert told("SELECT * FROM t WHERE NOT (a < 5 AND b = 'x')", [row(b="y"), row(b="x")]) == [
        [("insert", 1)],
        [("delete", 1)],
    ]


def test_prefixes_end_where_they_should():
    rows = [row(b="ab"), row(b="ab\U0010ffff"), row(b="ac"), row(b="a"), row(b="abcdefghijklm")]
    assert told("SELECT id FROM t WHERE b LIKE 'ab%'", rows) == [
        [("insert", 1)],
        [],
        [("delete", 1)],
        [],
        [("insert", 1)],
    ]
    assert told("SELECT id FROM t WHERE b NOT LIKE 'ab%'", rows) == [[], [], [("insert", 1)], [], [("delete", 1)]]
    top = [row(b="\U0010ffff"), row(b="\U0010ffffz"), row(b="z")]
    assert told("SELECT id FROM t WHERE b LIKE '\U0010ffff%'", top) == [[("insert", 1)], [], [("delete", 1)]]


def test_nulls_of_one_table_are_not_those_of_another():
    engine = Engine(CATALOG)
    subscriptions = [{"id": table, "sql": f"SELECT id FROM {table} WHERE a IS NULL"} for table in "tu"]
    engine.door.read([json.dumps(record).encode() for record in subscriptions])
    changes = [
        {"seq": 1, "table": "t", "op": "insert", "row": row()},
        {"seq": 2, "table": "u", "op": "insert", "row": {"id": 2, "a": 1, "b": None}},
        {"seq": 3, "table": "u", "op": "insert", "row": {"id": 3, "a": None, "b": None}},
    ]
    lines = engine.feed([json.dumps(change).encode() for change in changes]).notifications.lines()
    heads = [json.loads(line) for line in lines]
    assert [(head["subscription"], head["seq"]) for head in heads if not head["snapshot"]] == [("t", 1), ("u", 3)]


def test_all_boxes_go_with_the_subscription():
    engine = Engine(CATALOG)
    engine.feed([json.dumps({"seq": 1, "table": "t", "op": "insert", "row": row(a=1, b="x")}).encode()])
    for number in range(3):
        sql = "SELECT * FROM t WHERE a NOT IN (5, 7, 9) OR b = 'x' OR (c IS NULL AND b IN ('p', 'q'))"
        engine.door.create("s", sql, 0)
        lines = engine.feed([]).notifications.lines()
        assert [len(json.loads(line)["changes"]) for line in lines] == [1]
        evaluator = engine._replica._evaluators["select"]
        assert isinstance(evaluator, SelectEvaluator) and len(evaluator.index) == 7
        engine.door.drop("s", 0)
        engine.feed([])
        assert len(evaluator.index) == 0, number
    change = {"seq": 2, "table": "t", "op": "update", "row": row(a=2, b="x")}
    assert engine.feed([json.dumps(change).encode()]).notifications.lines() == []


def test_points_of_one_subscription_have_one_home():
    door = Door(CATALOG)
    door.create("plain", "SELECT * FROM t WHERE a = 1", 0)
    door.create("s", "SELECT * FROM t WHERE a IN (1, 2) OR b LIKE 'x%' OR c <> 0", 0)
    batches = door.take()
    assert len({batch.form for batch in batches}) == len(batches) == 4
    assert sum(int(np.count_nonzero(batch.home)) for batch in batches) == 2
    assert sum(len(batch) for batch in batches) == 1 + 5
    assert [is_regional(batch.form) for batch in batches] == [True, False, False, False]


def test_many_channels_are_refused_over_all_disjuncts():
    values = ", ".join(map(str, range(31)))
    pairs = f"id IN ({values}) AND a IN ({values})"
    Door(CATALOG).place(f"SELECT * FROM t WHERE ({pairs}) OR c > 1")
    with pytest.raises(SqlError, match="combine to 1,922 channels"):
        Door(CATALOG).place(f"SELECT * FROM t WHERE ({pairs} AND c < 0) OR ({pairs} AND b = 'x')")
