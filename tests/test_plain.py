"""The plain engine gives what the compiled one gives, to the byte: lines, refused records, counts."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bad_changes import BAD_CHANGES
from bad_subscriptions import BAD_SUBSCRIPTIONS
from notification_columns import checked_lines
from test_bad_input import CATALOG_OF_TEST, GOOD_AFTER, GOOD_BEFORE, GOOD_SUBSCRIPTIONS, UNDISTURBED
from tidings.engine import Engine
from tidings.model.catalog import Catalog
from tidings.pipeline.door import Door
from tidings.plain import PlainEngine, serves
from tidings.sql import parse_catalog
from tidings.testing import drift_workloads, join_workloads, select_workloads, topk_workloads
from tidings.testing.workload import chunks

TWO_TABLES = """
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, price DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT);
"""


def plain(catalog: Catalog) -> PlainEngine:
    return PlainEngine(catalog, Door(catalog, keeps_queries=True))


def run(engine, subscriptions, batches):
    """(lines, refused records, counts)"""
    refused = engine.refuse(engine.door.read(subscriptions))
    results = [*(engine.feed(batch) for batch in batches), engine.finish()]
    lines = [line for result in results for line in checked_lines(result.notifications)]
    summary = engine.stats.summary(0, 0)
    return lines, [*refused, *(entry for result in results for entry in result.refused)], summary


@pytest.mark.parametrize(
    "workloads",
    [select_workloads(), drift_workloads(), topk_workloads(), join_workloads()],
    ids=["select", "drift", "topk", "join"],
)
def test_a_whole_run(workloads):
    @settings(max_examples=20)
    @given(workloads, st.sampled_from([1, 3, 1_000]))
    def check(workload, size):
        catalog = parse_catalog(workload.catalog_sql)
        batches = list(chunks(workload.change_lines(), [size]))
        lines = workload.subscription_lines()
        assert run(plain(catalog), lines, batches) == run(Engine(catalog), lines, batches)

    check()


def test_rows_that_look_like_others_are_told_in_their_own_order():
    catalog = parse_catalog(
        "CREATE TABLE r (id INT PRIMARY KEY, b INT); CREATE TABLE s (id INT PRIMARY KEY, b INT, x TEXT);"
    )
    rows = [("r", {"id": 0, "b": 2}), ("r", {"id": 1, "b": 1})]
    rows += [("s", {"id": id, "b": b, "x": x}) for id, b, x in [(3, 2, "b"), (1, 1, "a"), (2, 1, "b")]]
    changes = [(table, "insert", row) for table, row in rows] + [("r", "delete", {"id": 1})]
    lines = [
        json.dumps({"seq": seq, "table": table, "op": op, "row": row}).encode()
        for seq, (table, op, row) in enumerate(changes, 1)
    ]
    subscriptions = [b'{"id": "s", "sql": "SELECT s.x FROM r JOIN s USING (b)"}']
    found = run(plain(catalog), subscriptions, [lines])
    assert found == run(Engine(catalog), subscriptions, [lines])
    assert [change["row"]["x"] for change in json.loads(found[0][-1])["changes"]] == ["a", "b"]


def test_bad_input():
    subscriptions = [*GOOD_SUBSCRIPTIONS, *BAD_SUBSCRIPTIONS.values()]
    batches = [[*GOOD_BEFORE, *BAD_CHANGES.values(), b"", b"  ", *GOOD_AFTER]]
    found = run(plain(CATALOG_OF_TEST), subscriptions, batches)
    assert found == run(Engine(CATALOG_OF_TEST), subscriptions, batches)
    assert found[0] == UNDISTURBED[0]


def test_those_who_come_late():
    """Subscriptions that come in between two micro-batches, for moments that are over or still to come."""
    outcomes = []
    for engine in (plain(CATALOG_OF_TEST), Engine(CATALOG_OF_TEST)):
        lines = engine.feed(GOOD_BEFORE).notifications.lines()
        engine.door.read([GOOD_SUBSCRIPTIONS[0], GOOD_SUBSCRIPTIONS[2].replace(b'"after": 3', b'"after": 10')])
        lines += engine.feed(GOOD_AFTER[:1]).notifications.lines()
        engine.door.read([b'{"id": "good", "drop": true}'])
        outcomes.append([*lines, *engine.feed(GOOD_AFTER[1:]).notifications.lines()])
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0]) > 2


def test_it_serves_what_is_soon_asked():
    def door(option: str = "") -> Door:
        door = Door(parse_catalog(TWO_TABLES), keeps_queries=True)
        sqls = [
            "SELECT * FROM stocks WHERE price > 1 OR symbol = 'x'",
            "SELECT * FROM stocks WHERE moved(price) >= 1",
            "SELECT * FROM stocks ORDER BY price LIMIT 1",
            "SELECT * FROM stocks JOIN reviews USING (symbol)",
        ]
        records = [{"id": str(i), "sql": sql} for i, sql in enumerate(sqls)]
        records[2] |= {"option": option} if option else {}
        assert door.read([json.dumps(record).encode() for record in records]) == []
        return door

    assert serves(door(), 10)
    assert not serves(door(), 10_000)
    assert not serves(door("net"), 10)


def test_a_small_replay_loads_no_compiled_code(tmp_path):
    (tmp_path / "catalog.sql").write_text(TWO_TABLES)
    (tmp_path / "subscriptions.jsonl").write_text(
        '{"id": "s", "sql": "SELECT * FROM stocks WHERE price > 1"}\n'
        '{"id": "t", "sql": "SELECT * FROM stocks ORDER BY price LIMIT 3"}\n'
    )
    (tmp_path / "changes.jsonl").write_text(
        '{"seq": 1, "table": "stocks", "op": "insert", "row": {"symbol": "x", "price": 2}}\n'
    )
    program = (
        "import sys; from typer.testing import CliRunner; from tidings.cli.main import app; "
        "result = CliRunner().invoke(app, sys.argv[1:]); "
        "assert result.exit_code == 0, result.output; assert 'numba' not in sys.modules"
    )
    files = [f"--{name.partition('.')[0]}={name}" for name in ("catalog.sql", "subscriptions.jsonl", "changes.jsonl")]
    subprocess.run([sys.executable, "-c", program, "replay", *files, "--out=out.jsonl"], cwd=tmp_path, check=True)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 4
