"""How large a subscription may be: hostile SQL is refused with what to do, before memory is spent on it."""

from __future__ import annotations

import gc
import json
import tracemalloc

import pyarrow as pa
import pytest

from tidings.engine import Engine
from tidings.families.size import POINTS_BYTES_MAX
from tidings.model.errors import RecordError, SqlError
from tidings.pipeline.door import Door
from tidings.pipeline.registrar import Registrar
from tidings.pipeline.replica.replica import Replica
from tidings.placed import PlacedEngine
from tidings.sql import parse_catalog

CATALOG = parse_catalog("""
CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT, x INT, y INT, price DOUBLE);
CREATE TABLE r (id BIGINT PRIMARY KEY, s TEXT, x INT, y INT);
""")
WARM = [
    "SELECT * FROM t WHERE s = 'x' AND x IN (1, 2) OR y > 3",
    "SELECT * FROM t JOIN r USING (id) WHERE t.s = 'x' AND (r.x IN (1, 2) OR t.x = 1)",
    "SELECT * FROM t WHERE x IN (1, 2) ORDER BY y LIMIT 3",
    "SELECT * FROM t WHERE id IN (1, 2) AND moved(price) >= 1",
]
PEAK_MAX = 8 << 20
"""Parsing takes 2 KB for each constant, of which there are at most 4,000."""


def among(column: str, count: int, text: str = "") -> str:
    """A condition with an IN list."""
    values = (f"'{text}{i}'" if text else str(i) for i in range(count))
    return f"{column} IN ({','.join(values)})"


def disjunction(count: int) -> str:
    return " OR ".join(f"(x = {i} AND y > {i})" for i in range(count))


LONG, ESCAPED = "a" * 60_000, "\x01" * 60_000
HOSTILE = {
    "a long end on each of 992 channels": f"{among('x', 31)} AND {among('y', 32)} AND s > '{LONG}'",
    "one that JSON makes six times as long": f"{among('x', 31)} AND {among('y', 32)} AND s > '{ESCAPED}'",
    "texts on 992 channels": f"{among('x', 31)} AND {among('s', 32, 'a' * 1_900)}",
    "many channels": f"{among('x', 1_000)} AND {among('y', 1_000)} AND {among('id', 1_000)}",
    "a long end in each of 20 disjuncts": f"s > '{ESCAPED[:20_000]}' AND ({disjunction(20)})",
    "many constants": " AND ".join(among("x", 1_000) for _ in range(13)),
    "many alternatives": " OR ".join(f"x={i}" for i in range(6_000)),
    "many characters": f"s = '{LONG}' AND s = '{LONG}'",
}
JOINED = {
    "a long end in 256 boxes": f"{among('t.x', 16)} AND {among('r.y', 16)} AND t.s > '{LONG}'",
    "texts in 256 boxes": f"{among('t.x', 16)} AND {among('r.s', 16, 'a' * 3_800)}",
}


@pytest.mark.parametrize(
    "sql",
    [
        *(f"SELECT * FROM t WHERE {where}" for where in HOSTILE.values()),
        *(f"SELECT * FROM t JOIN r USING (id) WHERE {where}" for where in JOINED.values()),
        f"SELECT * FROM t WHERE {among('x', 31)} AND {among('s', 32, 'a' * 1_900)} ORDER BY y LIMIT 3",
    ],
    ids=[*HOSTILE, *JOINED, "texts on 992 channels of a ranking"],
)
def test_hostile_sql_is_refused_cheaply(sql: str) -> None:
    door = Door(CATALOG)
    for i, warm in enumerate(WARM):
        door.create(f"warm {i}", warm, 0)
    door.take()
    gc.collect()
    arrow = pa.default_memory_pool().bytes_allocated()
    tracemalloc.start()
    try:
        with pytest.raises(SqlError, match=r"split|fewer|limit is"):
            door.create("a", sql, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < PEAK_MAX
    assert pa.default_memory_pool().bytes_allocated() - arrow < PEAK_MAX
    assert len(door) == len(WARM) and door.take() == []


def test_a_known_template_does_not_let_long_texts_in() -> None:
    door = Door(CATALOG)
    door.create("a", "SELECT * FROM t WHERE s = 'x'", 0)
    with pytest.raises(SqlError, match="the limit is 65,536"):
        door.create("b", f"SELECT * FROM t WHERE s = '{'a' * 1_000_000}'", 0)


def test_an_id_counts_in_every_point() -> None:
    door = Door(CATALOG)
    sql, id = f"SELECT * FROM t WHERE {among('x', 1_000)}", "\U0001d11e" * 1_000
    with pytest.raises(RecordError, match="choose a shorter one"):
        door.create(id, sql, 0)
    assert len(door) == 0 and door.take() == []
    door.create(id, "SELECT * FROM t WHERE x = 1", 0)
    registrar = Registrar(CATALOG, lambda id, place: True, lambda offset: True)
    points, (answer,) = registrar.handle([("p", 0, json.dumps({"id": id, "sql": sql}).encode())], 0)
    assert points == [] and len(registrar) == 0
    assert answer.refused is not None and "choose a shorter one" in answer.refused


def test_two_long_lists_are_cheap() -> None:
    """31 x 32 values: 992 points, whose details stand once, in less memory than the limit says."""
    sql = f"SELECT id FROM t WHERE {among('x', 31)} AND {among('y', 32)} AND s >= 'abcdefghi' AND s < 'abcdefghx'"
    door, replica = Door(CATALOG), Replica(CATALOG, keeps_points=True)
    door.create("a", sql, 0)
    (points,) = door.take()
    assert len(points) == 992
    assert sum(1 for details in points.details.to_pylist() if details) == 1
    before = replica.nbytes
    replica.apply([], 0, [points], is_end=True)
    assert replica.nbytes - before < POINTS_BYTES_MAX
    rows = [{"id": i, "s": s, "x": 3 + i, "y": 5} for i, s in enumerate(["abcdefghh", "abcdefghi", "abcdefghx", "b"])]
    lines = [
        json.dumps({"seq": i + 1, "table": "t", "op": "insert", "row": {**row, "price": 1.0}}).encode()
        for i, row in enumerate(rows)
    ]
    told = [json.loads(line)["changes"] for line in replica.apply(lines, 0).notifications.lines()]
    assert told == [[{"op": "insert", "row": {"id": 1}}]]
    restored = Replica(CATALOG, keeps_points=True)
    restored.load(replica.dump())
    gone = json.dumps({"seq": 9, "table": "t", "op": "delete", "row": {"id": 1}}).encode()
    told = [each.apply([gone], 0).notifications for each in (restored, replica)]
    assert [len(found) for found in told] == [1, 1]


@pytest.mark.parametrize("engine", [Engine(CATALOG), PlacedEngine(CATALOG, 2, strategies={})], ids=["one", "gateways"])
def test_details_that_stand_once_hold_for_all_channels(engine: Engine | PlacedEngine) -> None:
    engine.door.create("a", "SELECT id FROM t WHERE x IN (1, 2, 3) AND s > 'abcdefghi'", 0)
    engine.door.create("b", "SELECT id FROM t WHERE x IN (2, 3) AND s > 'abcdefghj'", 0)
    rows = [(i, x, s) for i, (x, s) in enumerate((x, s) for x in (1, 2, 3, 4) for s in ("abcdefghj", "abcdefghk"))]
    lines = [
        json.dumps({"seq": i + 1, "table": "t", "op": "insert", "row": {"id": i, "s": s, "x": x, "y": 0, "price": 0}})
        for i, x, s in rows
    ]
    heard = [json.loads(line) for line in engine.feed([line.encode() for line in lines]).notifications.lines()]
    told = {(line["subscription"], line["changes"][0]["row"]["id"]) for line in heard if line["changes"]}
    assert told == {
        (id, i)
        for i, x, s in rows
        for id, values, end in (("a", (1, 2, 3), "abcdefghi"), ("b", (2, 3), "abcdefghj"))
        if x in values and s > end
    }


def test_what_is_large_but_allowed_is_accepted() -> None:
    door = Door(CATALOG)
    door.create("list", f"SELECT * FROM t WHERE {among('x', 1_000)}", 0)
    door.create("text", f"SELECT * FROM t WHERE s > '{LONG}' AND x = 1", 0)
    door.create("texts", f"SELECT * FROM t WHERE {among('s', 1_000, 'a' * 40)}", 0)
    door.create("join", f"SELECT * FROM t JOIN r USING (id) WHERE {among('t.x', 1_000)} AND {among('r.x', 1_000)}", 0)
    assert sum(len(batch) for batch in door.take()) == 2_002
