"""The inline engine as a server uses it: subscriptions come and go between micro-batches, without a moment of their own."""

import json

import pytest

from tidings.engine import Engine
from tidings.pipeline.door import Door
from tidings.placed import PlacedEngine
from tidings.sql import parse_catalog

CATALOG = parse_catalog("CREATE TABLE t (id INT PRIMARY KEY, n INT);")


def change(seq, op, **row):
    return json.dumps({"seq": seq, "table": "t", "op": op, "row": row}).encode()


def told(result):
    records = [json.loads(line) for line in result.notifications.lines()]
    return [(r["subscription"], r["seq"], r["snapshot"], [c["op"] for c in r["changes"]]) for r in records]


@pytest.fixture(params=[False, True], ids=["whole", "placed"])
def engine(request):
    engine = PlacedEngine(CATALOG, 1, strategies={"select": "region"}) if request.param else Engine(CATALOG)
    engine.door.create("a", "SELECT * FROM t", 0)
    assert told(engine.feed([change(10, "insert", id=1, n=1)])) == [("a", 0, True, []), ("a", 10, False, ["insert"])]
    return engine


def test_a_subscription_of_the_past_starts_now(engine):
    engine.door.create("b", "SELECT * FROM t WHERE n >= 1", 3)
    assert told(engine.feed([])) == [("b", 10, True, ["insert"])]
    assert told(engine.feed([change(11, "delete", id=1)])) == [
        ("a", 11, False, ["delete"]),
        ("b", 11, False, ["delete"]),
    ]


def test_a_drop_of_the_past_happens_now(engine):
    engine.door.drop("a", 3)
    assert told(engine.feed([change(11, "delete", id=1)])) == []


def test_a_subscription_of_the_future_waits_also_over_batches(engine):
    engine.door.create("b", "SELECT n FROM t", 12)
    engine.door.drop("a", 10)
    assert told(engine.feed([change(11, "update", id=1, n=2)])) == []
    assert told(engine.feed([change(13, "update", id=1, n=3)])) == [
        ("b", 12, True, ["insert"]),
        ("b", 13, False, ["update"]),
    ]


def test_created_dropped_and_created_between_two_batches(engine):
    for sql in ("SELECT * FROM t", "SELECT n FROM t", "SELECT * FROM t"):
        engine.door.create("b", sql, 0)
        engine.door.drop("b", 0)
    engine.door.create("b", "SELECT id FROM t", 0)
    assert told(engine.feed([change(11, "insert", id=2, n=1)])) == [
        ("b", 10, True, ["insert"]),
        ("a", 11, False, ["insert"]),
        ("b", 11, False, ["insert"]),
    ]


def test_a_drop_that_comes_before_its_creation_ends_it_at_its_start(engine):
    engine.door.create("b", "SELECT * FROM t", 12)
    engine.door.drop("b", 0)
    assert told(engine.feed([change(11, "update", id=1, n=2)])) == [("a", 11, False, ["update"])]
    assert told(engine.feed([change(13, "update", id=1, n=3)])) == [
        ("b", 12, True, ["insert"]),
        ("a", 13, False, ["update"]),
    ]


def test_replacing_a_subscription_whose_drop_lies_ahead(engine):
    engine.door.drop("a", 12)
    engine.door.create("a", "SELECT n FROM t WHERE n > 5", 0)
    assert told(engine.feed([change(11, "update", id=1, n=2), change(12, "update", id=1, n=7)])) == [
        ("a", 11, False, ["update"]),
        ("a", 12, False, ["update"]),
        ("a", 12, True, ["insert"]),
    ]
    assert told(engine.feed([change(13, "update", id=1, n=2)])) == [("a", 13, False, ["delete"])]


def test_counts(engine):
    engine.feed([change(11, "update", id=1, n=2), change(11, "update", id=1, n=3), b"garbage"])
    summary = engine.stats.summary(1.0, 1.0)
    assert (summary["changes"], summary["quarantined"], summary["notifications"]) == (2, 2, 3)
    assert (summary["messages"], summary["deliveries"]) == (2, 3)
    assert summary["families"]["select"]["message_bytes"] == summary["message_bytes"] > 0


def test_nothing_comes_of_nothing():
    engine = Engine(CATALOG)
    assert told(engine.feed([])) == []
    assert told(engine.finish()) == []


def test_a_door_where_all_have_come_and_gone_again():
    """Nobody lives there any more, but what it has gathered is still to happen."""
    door = Door(CATALOG)
    door.create("s", "SELECT * FROM t WHERE n >= 0", 0)
    door.drop("s", 1)
    assert len(door) == 0
    result = Engine(CATALOG, door=door).feed([change(1, "insert", id=1, n=1), change(2, "insert", id=2, n=1)])
    assert told(result) == [("s", 0, True, []), ("s", 1, False, ["insert"])]
