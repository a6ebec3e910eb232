"""Zero has no sign: 0.0 is kept and told whatever a record writes. So what is retracted is what was told, text for text."""

import json
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.pipeline.door import Door
from tidings.placed import PlacedEngine
from tidings.plain import PlainEngine
from tidings.sql import parse_catalog
from tidings.testing.workload import chunks

CATALOG = parse_catalog("""
CREATE TABLE stocks (id INT PRIMARY KEY, risk DOUBLE);
CREATE TABLE notes (id INT PRIMARY KEY, risk DOUBLE);
""")
QUERIES = [
    "SELECT * FROM stocks WHERE risk >= -0.0",
    "SELECT risk FROM stocks WHERE risk < 2 OR id = 1",
    "SELECT risk FROM stocks WHERE risk >= 0.0 ORDER BY risk LIMIT 3",
    "SELECT risk FROM stocks ORDER BY id DESC LIMIT 2",
    "SELECT * FROM stocks WHERE moved(risk) >= 1",
    "SELECT risk, notes.id FROM stocks JOIN notes USING (risk)",
]
ZEROS = ["0.0", "-0.0", "0", "-0", "-0e5", "-0.000", "-1e-400", "1e-400"]
ENGINES = {
    "shared": lambda: Engine(CATALOG),
    "gateways": lambda: PlacedEngine(CATALOG, 3, strategies={}),
    "plain": lambda: PlainEngine(CATALOG, Door(CATALOG, keeps_queries=True)),
}

VALUES = st.sampled_from([*ZEROS, "1.5", "null"])
OPS = st.sampled_from(["upsert", "upsert", "delete"])
CHANGES = st.tuples(st.sampled_from(["stocks", "stocks", "notes"]), OPS, st.integers(1, 4), VALUES)


def lines_of(changes: list[tuple[str, str, int, str]]) -> list[bytes]:
    """Records; those with an even seq are Debezium's."""
    lines = []
    for seq, (table, op, id, value) in enumerate(changes, 1):
        row = f'{{"id": {id}, "risk": {value}}}'
        if seq % 2:
            lines.append(f'{{"seq": {seq}, "table": "{table}", "op": "{op}", "row": {row}}}')
        else:
            image = f'"op": "d", "before": {row}' if op == "delete" else f'"op": "r", "after": {row}'
            lines.append(f'{{"seq": {seq}, {image}, "source": {{"table": "{table}"}}}}')
    return [line.encode() for line in lines]


@pytest.mark.parametrize("engine", ["shared", "gateways", "plain"])
@given(st.lists(CHANGES, max_size=12), st.sampled_from([1, 4, 100]))
@example([("stocks", "upsert", 1, "0.0"), ("stocks", "upsert", 1, "-0.0"), ("stocks", "delete", 1, "0")], 1)
@example([("stocks", "upsert", 1, "-0.0"), ("stocks", "upsert", 2, "0.0"), ("stocks", "delete", 2, "0.0")], 1)
def test_what_goes_is_what_came(engine: str, changes: list[tuple[str, str, int, str]], size: int) -> None:
    run = ENGINES[engine]()
    subscriptions = [{"id": f"s{i}", "sql": sql} for i, sql in enumerate(QUERIES)]
    assert run.door.read([json.dumps(record).encode() for record in subscriptions]) == []
    held: dict[str, Counter[str]] = {record["id"]: Counter() for record in subscriptions}
    results = [*(run.feed(batch) for batch in chunks(lines_of(changes), [size] * 12)), run.finish()]
    for line in (line for result in results for line in result.notifications.lines()):
        assert '"risk": -' not in line
        record = json.loads(line)
        for change in record["changes"]:
            if change["op"] != "insert":
                held[record["subscription"]].subtract([json.dumps(change.get("old", change["row"]))])
            if change["op"] != "delete":
                held[record["subscription"]].update([json.dumps(change["row"])])
        assert min(held[record["subscription"]].values(), default=0) >= 0, line
