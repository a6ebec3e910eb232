"""Lines come out in the order of ids, however many are told of one change."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.model.notification import NotificationBatch
from tidings.sql import parse_catalog

CATALOG = parse_catalog("CREATE TABLE t (a BIGINT PRIMARY KEY)")


def told(ids, count):
    """(seq, id) of every line of so many changes that everybody is told of."""
    engine = Engine(CATALOG)
    engine.door.read(
        json.dumps({"id": id, "sql": f"SELECT * FROM t WHERE a >= {-i}"}).encode() for i, id in enumerate(ids)
    )
    engine.feed([])
    changes = [
        f'{{"seq": {i}, "table": "t", "op": "insert", "row": {{"a": {i}}}}}'.encode() for i in range(1, count + 1)
    ]
    told = engine.feed(changes).notifications
    lines = [json.loads(line) for line in told.lines()]
    assert b"".join(told.text()) == b"".join(NotificationBatch.text(told)), "the kernel writes what any batch writes"
    assert [line["subscription"] for line in lines] == told.subscriptions().to_pylist()
    assert [line["seq"] for line in lines] == told.seq.tolist()
    return [(line["seq"], line["subscription"]) for line in lines]


@settings(max_examples=15, deadline=None)
@given(st.sets(st.text(min_size=1, max_size=3), min_size=1, max_size=200))
def test_ids_of_any_text(ids):
    assert told(list(ids), 2) == [(seq, id) for seq in (1, 2) for id in sorted(ids)]


@pytest.mark.parametrize("count", [1, 15, 16, 17, 31, 32, 33, 1_000, 4_097])
def test_groups_of_any_size(count):
    ids = [str(i * 7919 % count) for i in range(count)] if count > 1 else ["x"]
    assert sorted(set(ids)) == sorted(ids)
    assert told(ids, 1) == [(1, id) for id in sorted(ids)]
