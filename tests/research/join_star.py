"""Joins of a star of tables, and what every strategy must do with them."""

import json

from research.stages.staged import StagedEngine as Engine
from tidings.sql import parse_catalog
from tidings.testing import Workload, run_inline

STAR = """
CREATE TABLE sales (id BIGINT PRIMARY KEY, shop BIGINT, item BIGINT, price DOUBLE);
CREATE TABLE shops (shop BIGINT PRIMARY KEY, size DOUBLE);
CREATE TABLE items (item BIGINT PRIMARY KEY, weight DOUBLE);
"""
SHOPS = "sales JOIN shops USING (shop)"
ITEMS = "items JOIN sales USING (item)"
BOTH = "sales JOIN items USING (item) JOIN shops USING (shop)"
TURNED = "shops JOIN sales USING (shop) JOIN items USING (item)"
RANGES = {"sales": "price", "shops": "size", "items": "weight"}


def sql_of(source, ends):
    where = [
        f"{table}.{column} BETWEEN {lo} AND {hi}"
        for (table, column), (lo, hi) in zip(RANGES.items(), ends, strict=True)
        if table in source
    ]
    return f"SELECT * FROM {source} WHERE {' AND '.join(where)}"


def played(strategy, sources, records):
    """Messages of the last change, by tables that they are for, and everybody's lines."""
    sent = []
    engine = Engine(parse_catalog(STAR), {"join": strategy}, on_work=lambda work: sent.append(work.messages))
    engine.door.read(
        json.dumps({"id": f"s{i}", "sql": sql_of(source, [(0, 3)] * 3)}).encode() for i, source in enumerate(sources)
    )
    for record in records:
        lines = engine.feed([json.dumps(record).encode()]).notifications.lines()
    return [batch for batch in sent[-1] if len(batch)], [json.loads(line)["subscription"] for line in lines]


ROWS = [
    {"seq": 1, "table": "shops", "op": "insert", "row": {"shop": 1, "size": 1}},
    {"seq": 2, "table": "items", "op": "insert", "row": {"item": 1, "weight": 1}},
    {"seq": 3, "table": "sales", "op": "insert", "row": {"id": 9, "shop": 1, "item": 1, "price": 1}},
    {"seq": 4, "table": "sales", "op": "insert", "row": {"id": 1, "shop": 1, "item": 1, "price": 1}},
]


def check_that_rows_are_dropped_where_they_came(strategy):
    tables = """
    CREATE TABLE r (id INT PRIMARY KEY, b INT, a INT);
    CREATE TABLE s (id INT PRIMARY KEY, b INT, d INT);
    CREATE TABLE t (id INT PRIMARY KEY, d INT);
    """
    sql = "SELECT * FROM s JOIN r ON r.b = s.b JOIN t ON t.d = s.d WHERE r.b <= 1 AND r.a BETWEEN 2 AND 3"
    rows = [
        ("r", "insert", {"id": 1, "b": 1, "a": 0}),
        ("s", "insert", {"id": 1, "b": 1, "d": 1}),
        ("s", "delete", {"id": 1}),
        # The one brings r, the other t: only the row that is gone would join these.
        ("s", "insert", {"id": 2, "b": 1, "d": 2}),
        ("s", "insert", {"id": 3, "b": 2, "d": 1}),
        ("t", "insert", {"id": 1, "d": 1}),
        ("r", "update", {"id": 1, "b": 1, "a": 3}),
    ]
    changes = [{"seq": i, "table": table, "op": op, "row": row} for i, (table, op, row) in enumerate(rows, 1)]
    workload = Workload(tables, [{"id": "a", "sql": sql, "after": 0}], changes)
    lines = run_inline(
        tables, workload.subscription_lines(), workload.change_lines(), [1] * len(rows), {"join": strategy}
    )
    assert [json.loads(line)["snapshot"] for line in lines] == [True]
