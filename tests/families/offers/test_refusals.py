"""Constraints that make no sense are refused on both sides, with the reason and the place; nothing else is harmed."""

import json

import pytest

from bad_changes import BAD_CONSTRAINTS, CATALOG
from tidings.engine import Engine
from tidings.model.errors import SqlError
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

GOOD = {"seq": 1, "table": "market", "op": "insert", "id": "good", "where": "lot = 7"}


def engine_with(sql):
    engine = Engine(parse_catalog(CATALOG))
    engine.door.create("s", sql, 0)
    return engine


@pytest.mark.parametrize("where", BAD_CONSTRAINTS, ids=lambda where: where[:30])
def test_publications(where):
    engine = engine_with("SELECT * FROM market WHERE lot > 5")
    lines = [GOOD, {**GOOD, "seq": 2, "id": "bad", "where": where}, {**GOOD, "seq": 3, "op": "delete"}]
    result = engine.feed([json.dumps(line).encode() for line in lines])
    (refused,) = result.refused
    assert refused.reason.startswith("constraint of table 'market': ")
    assert BAD_CONSTRAINTS[where] in refused.reason
    told = [json.loads(line) for line in result.notifications.lines()]
    assert [(line["seq"], [change["op"] for change in line["changes"]]) for line in told] == [
        (0, []),
        (1, ["insert"]),
        (3, ["delete"]),
    ]


@pytest.mark.parametrize(
    "where",
    [where for where in BAD_CONSTRAINTS if where.strip() and "ORDER BY" not in where],
    ids=lambda where: where[:30],
)
def test_subscriptions(where):
    """The same problems; places are those in the whole query."""
    with pytest.raises(SqlError) as raised:
        Door(parse_catalog(CATALOG)).create("bad", f"SELECT * FROM market WHERE {where}", 0)
    assert raised.value.problem in BAD_CONSTRAINTS[where] or BAD_CONSTRAINTS[where] in str(raised.value)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT * FROM market", "the constraint is empty"),
        ("SELECT lot FROM market WHERE lot = 1", "show no 'lot'"),
        ("SELECT * FROM market WHERE lot = 1 ORDER BY topic LIMIT 3", "cannot be ordered by 'topic'"),
        ("SELECT * FROM market WHERE lot = 1 ORDER BY area LIMIT 3", "has no order"),
        ("SELECT * FROM market JOIN pairs ON market.lot = pairs.n WHERE lot = 1", "cannot be joined"),
        ("SELECT * FROM market WHERE moved(price) >= 1", "constraints do not move"),
    ],
)
def test_what_cannot_be_asked(sql, problem):
    with pytest.raises(SqlError, match=problem) as raised:
        Door(parse_catalog(CATALOG)).create("bad", sql, 0)
    assert raised.value.line == 1


def test_too_many_combinations():
    values = ", ".join(map(str, range(40)))
    sql = f"SELECT * FROM market WHERE lot IN ({values}) AND price IN ({values})"
    with pytest.raises(SqlError, match="1,600 channels"):
        Door(parse_catalog(CATALOG)).create("bad", sql, 0)
