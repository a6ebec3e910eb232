"""The door lets subscriptions in as points and refuses the rest without a trace."""

import json

import pytest

from tidings.families.spec import Form
from tidings.model.errors import RecordError, SqlError
from tidings.model.points import Event
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

CATALOG = parse_catalog("CREATE TABLE t (id INT PRIMARY KEY, kind TEXT, n INT);")


def read(*records):
    door = Door(CATALOG)
    refused = door.read([json.dumps(record).encode() for record in records])
    return door, refused


def events(door):
    """(order, event, id, after) of everything taken."""
    found = []
    for batch in door.take():
        homes = batch.take(batch.home)
        columns = (homes.order.tolist(), homes.event.tolist(), homes.id.to_pylist(), homes.after.tolist())
        found.extend(zip(*columns, strict=True))
    return [(Event(event), id, after) for _, event, id, after in sorted(found)]


def test_subscriptions_become_points_of_their_form():
    door, refused = read({"id": "a", "sql": "SELECT * FROM t WHERE kind = 'x' AND n BETWEEN 2 AND 5", "after": 3})
    assert refused == []
    (batch,) = door.take()
    assert batch.coords.tolist() == [[2, 5]]
    assert [column.to_pylist() for column in batch.channel] == [["x"]]
    assert (batch.after.tolist(), batch.id.to_pylist(), batch.home.tolist()) == ([3], ["a"], [True])
    assert Form.from_key(batch.form).family == "select"
    assert door.take() == []


def test_equal_shapes_share_a_form_and_others_do_not():
    queries = ["SELECT * FROM t WHERE n > 1", "select * from t where n < 9", "SELECT n FROM t WHERE n > 1"]
    door, _ = read(*({"id": str(i), "sql": sql} for i, sql in enumerate(queries)))
    assert sorted(len(batch) for batch in door.take()) == [1, 2]


def test_in_has_a_row_for_each_channel_and_one_home():
    door, _ = read({"id": "a", "sql": "SELECT * FROM t WHERE kind IN ('x', 'y') AND n IN (1, 2)"})
    (batch,) = door.take()
    assert set(zip(*(column.to_pylist() for column in batch.channel), strict=True)) == {
        ("x", 1),
        ("x", 2),
        ("y", 1),
        ("y", 2),
    }
    assert batch.home.tolist() == [True, False, False, False]


def test_a_contradiction_lies_on_no_channel():
    door, refused = read({"id": "a", "sql": "SELECT * FROM t WHERE kind = 'x' AND kind = 'y' AND n = 1"})
    assert refused == []
    (batch,) = door.take()
    assert [column.to_pylist() for column in batch.channel] == [[None], [None]]
    assert batch.home.tolist() == [True]


def test_records_are_read_in_order_of_their_moment():
    door, refused = read(
        {"id": "a", "drop": True, "after": 9},
        {"id": "a", "sql": "SELECT * FROM t", "after": 5},
        {"id": "a", "sql": "SELECT n FROM t", "after": 9},
    )
    assert refused == []
    assert events(door) == [(Event.CREATE, "a", 5), (Event.DROP, "a", 9), (Event.CREATE, "a", 9)]


def test_refused_records_leave_no_trace():
    door, refused = read(
        {"id": "a", "sql": "SELECT * FROM nothing"},
        {"id": "a", "sql": "SELECT * FROM t"},
        {"id": "a", "sql": "SELECT n FROM t", "after": 4},
        {"id": "b", "drop": True},
    )
    assert [entry.position for entry in refused] == [0, 2, 3]
    assert [entry.seq for entry in refused] == [0, 4, 0]
    assert events(door) == [(Event.CREATE, "a", 0)]
    assert len(door) == 1


def test_blank_lines_are_passed_over():
    door = Door(CATALOG)
    assert door.read([b"", b"  ", b'{"id": "a", "sql": "SELECT * FROM t"}', b"\t"]) == []
    assert len(door) == 1


def test_placing_registers_nothing():
    door = Door(CATALOG)
    assert door.place("SELECT * FROM t WHERE n >= 3").coords == (3, 2**63 - 1)
    assert len(door) == 0
    assert door.take() == []


def test_mistakes_of_callers_are_errors():
    door = Door(CATALOG)
    door.create("a", "SELECT * FROM t", 0)
    with pytest.raises(RecordError, match="'a' is taken"):
        door.create("a", "SELECT * FROM t", 0)
    with pytest.raises(RecordError, match="no subscription 'b'"):
        door.drop("b", 0)
    with pytest.raises(SqlError, match="line 1"):
        door.create("c", "SELECT * FROM t WHERE n LIKE 'x'", 0)
    assert len(door) == 1


def test_events_of_one_id_never_overtake_each_other():
    door = Door(CATALOG)
    door.create("a", "SELECT * FROM t", 10)
    door.drop("a", 3)
    door.create("a", "SELECT n FROM t", 5)
    assert events(door) == [(Event.CREATE, "a", 10), (Event.DROP, "a", 10), (Event.CREATE, "a", 10)]
    door.drop("a", 12)
    door.create("a", "SELECT n FROM t", 0)
    assert events(door) == [(Event.DROP, "a", 12), (Event.CREATE, "a", 12)]
