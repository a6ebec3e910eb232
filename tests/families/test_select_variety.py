"""Select subscriptions of many shapes on one table: a message per change, told as the reference says, at all places."""

import json
import random

import pytest

from tidings.families.registry import family, strategies_of
from tidings.testing import Workload, oracle_lines, run_inline
from tidings.testing.checks.places import Places
from tidings.testing.workload import chunks

CATALOG = """CREATE TABLE t (id INT PRIMARY KEY, kind TEXT, name TEXT, a INT, b INT, c INT, d DOUBLE, e DOUBLE, is_open BOOLEAN,
day DATE);"""
TEXTS = ["x", "y", "prefix08", "prefix08a", "prefix08b", 'quo"te']
DAYS = ["2024-02-28", "2024-02-29", "2024-03-01"]
COLUMNS = ["id", "kind", "name", "a", "b", "c", "d", "e", "is_open", "day"]


def literal(rng, column):
    if column in ("kind", "name"):
        return f"'{rng.choice(TEXTS)}'"
    if column == "day":
        return f"DATE '{rng.choice(DAYS)}'"
    if column == "is_open":
        return rng.choice(["TRUE", "FALSE"])
    return str(rng.randint(0, 6))


def term(rng, column):
    kind = rng.choice(["equal", "in", "range", "range"]) if column != "is_open" else "equal"
    if kind == "equal":
        return f"{column} = {literal(rng, column)}"
    if kind == "in":
        return f"{column} IN ({', '.join(literal(rng, column) for _ in range(rng.randint(1, 3)))})"
    return f"{column} {rng.choice(['<', '<=', '>', '>='])} {literal(rng, column)}"


def query(rng):
    shown = rng.choice(["*", ", ".join(sorted(rng.sample(COLUMNS, rng.randint(1, 4))))])
    terms = [term(rng, column) for column in rng.sample(COLUMNS, rng.choice([0, 1, 1, 2, 3]))]
    return f"SELECT {shown} FROM t" + (f" WHERE {' AND '.join(terms)}" if terms else "")


def row(rng, key):
    values = {column: None if rng.random() < 0.1 else rng.randint(0, 6) for column in "abcde"}
    values["d"], values["e"] = (None if values[name] is None else values[name] / 2 for name in "de")
    named = {"kind": rng.choice(TEXTS), "name": rng.choice([*TEXTS, None]), "day": rng.choice(DAYS)}
    return {"id": key, **named, **values, "is_open": rng.choice([True, False, None])}


def workload(seed, subscriptions=300, changes=120):
    rng = random.Random(seed)
    made = [{"id": f"s{i}", "sql": query(rng), "after": rng.choice([0, 0, 0, 17, 60])} for i in range(subscriptions)]
    made += [{"id": f"s{i}", "drop": True, "after": 80} for i in range(0, subscriptions, 7)]
    rows, told = {}, []
    for seq in range(1, changes + 1):
        key = rng.randint(1, 20)
        if key in rows and rng.random() < 0.2:
            told.append({"seq": seq, "table": "t", "op": "delete", "row": {"id": key}})
            del rows[key]
            continue
        new = row(rng, key)
        rows[key] = {**rows[key], **{name: new[name] for name in rng.sample(COLUMNS[1:], 2)}} if key in rows else new
        told.append({"seq": seq, "table": "t", "op": "upsert", "row": rows[key]})
    return Workload(CATALOG, made, told)


@pytest.mark.parametrize("count", [1, 4])
def test_many_shapes_lie_in_one_space(count):
    found = workload(1)
    shapes = {batch["sql"].split("WHERE")[-1] for batch in found.subscriptions if "sql" in batch}
    assert len(shapes) > 200
    places = Places(found, count, {})
    lines = [
        line for chunk in chunks(found.change_lines(), [1, 7, 50, len(found.changes)]) for line in places.feed(chunk)
    ]
    lines += places.feed([], is_end=True)
    (space,) = places.sender._points_in
    assert space.table.name == "t"
    assert lines == oracle_lines(found)


@pytest.mark.extended
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_strategies_tell_what_shared_rows_tell(size):
    found = workload(2, subscriptions=120, changes=60)
    sizes = [size] * (-(-len(found.changes) // size))
    expected = run_inline(CATALOG, found.subscription_lines(), found.change_lines(), sizes, {})
    assert any(not json.loads(line)["snapshot"] for line in expected)
    for strategy in strategies_of(family("select")):
        lines = run_inline(CATALOG, found.subscription_lines(), found.change_lines(), sizes, {"select": strategy})
        assert lines == expected, strategy
