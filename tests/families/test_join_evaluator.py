"""Joins over shared rows: after every event answers are those of the reference, and lines those of the staged engine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.families.join import evaluator, predicates
from tidings.families.join.plan import Signature
from tidings.families.join.reference import answer
from tidings.families.protocols import PlainTables
from tidings.placed import PlacedEngine
from tidings.sql import parse_catalog
from tidings.sql.compiler import Compiler
from tidings.testing.plain import read_row

NUMBERS = """
CREATE TABLE r (id INT PRIMARY KEY, b INT, c DOUBLE, x DOUBLE);
CREATE TABLE s (id INT PRIMARY KEY, b INT, c DOUBLE, x DOUBLE);
CREATE TABLE t (id INT PRIMARY KEY, b INT, c DOUBLE, x DOUBLE);
CREATE TABLE u (id INT PRIMARY KEY, b INT, c DOUBLE, x DOUBLE);
"""
TEXTS = """
CREATE TABLE r (id TEXT PRIMARY KEY, b TEXT, c INT, x TEXT);
CREATE TABLE s (id TEXT, k INT, b TEXT, c INT, x TEXT, PRIMARY KEY (k, id));
CREATE TABLE t (id TEXT, k INT, b TEXT, c INT, x TEXT, PRIMARY KEY (id, k));
CREATE TABLE u (id TEXT PRIMARY KEY, b TEXT, c INT, x TEXT);
"""
JOINS = (
    "r JOIN s USING (b)",
    "s JOIN r ON r.b = s.b",
    "r JOIN s ON r.b = s.b AND r.c = s.c",
    "r JOIN s ON r.b = s.b JOIN t ON t.c = s.c",
    "t JOIN r ON r.b = t.b JOIN s ON r.c = s.c",
    "r JOIN s ON r.b = s.b JOIN t ON t.c = s.c AND t.b = r.b",
    "r JOIN s ON r.b = s.b JOIN t ON t.b = s.b AND t.b = r.b",
)
LONG_JOINS = (
    "r JOIN s ON r.b = s.b JOIN t ON t.c = s.c",
    "r JOIN s ON r.b = s.b JOIN t ON t.c = s.c JOIN u ON u.b = t.b",
    "u JOIN r ON r.b = u.b JOIN s ON s.c = u.c JOIN t ON t.b = u.b",
    "r JOIN s ON r.b = s.b JOIN t ON t.c = s.c AND t.b = r.b JOIN u ON u.c = t.c",
)
PATTERNS = ("{} = {}", "{} IN ({}, {})", "{} IN ({}, {})", "{} >= {}", "{} < {}", "{} BETWEEN {} AND {}")
TEXT_VALUES = ("a long text", "a long texts", 'b"\\', "b", "")
Row = dict[str, Any]


@pytest.fixture(autouse=True, scope="module")
def room_runs_out() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator, "_ROOM_MIN", 2)
        patch.setattr(predicates, "BOXES_MAX", 3)
        yield


class World:
    """Random changes of few rows, and random subscriptions that come and go, all after sequence numbers of their own."""

    def __init__(self, random: Random, joins: Sequence[str] = JOINS) -> None:
        self.random = random
        self.catalog = parse_catalog(random.choice([NUMBERS, TEXTS]))
        self.joins = random.sample(joins, random.randrange(1, 4))
        self.tables: PlainTables = {table.name: {} for table in self.catalog.tables}
        self.values_max = random.choice([2, 3])
        self.keys = random.choice([2, 4])
        types = [self.catalog.table("r").column(name).type.value for name in "bcx"]
        self.rows = list(product(*map(self.values, types)))
        """All values that (b, c, x) of a row may have."""

    def values(self, type: str) -> list[Any]:
        if type == "TEXT":
            return [*TEXT_VALUES[: self.values_max], None]
        return [0.0, -0.0, 1.0, 2.0, None] if type == "DOUBLE" else [1, 2, -3, None][-self.values_max :]

    def constant(self, type: str) -> str:
        value = self.random.choice([value for value in self.values(type) if value is not None])
        return "'" + value + "'" if isinstance(value, str) else repr(value)

    def row(self, name: str) -> Row:
        table, number = self.catalog.table(name), self.random.randrange(self.keys)
        row = dict(zip("bcx", self.random.choice(self.rows), strict=True), k=number % 2)
        row["id"] = f"{number:04}" if table.column("id").type.value == "TEXT" else number
        return {column: row[column] for column in table.column_names}

    def change(self) -> Row:
        """A change that is accepted, applied to the plain tables."""
        name = self.random.choice([*self.tables])
        row = self.row(name)
        key = tuple(row[column] for column in self.catalog.table(name).key)
        known = self.tables[name]
        if key not in known:
            op = self.random.choice(["insert", "upsert"])
        else:
            op = self.random.choice(["update", "update", "update", "upsert", "delete"])
            column = self.random.choice(["b", "c", "x", "", "", ""]) if op == "update" else ""
            if column:
                row = {**known[key], column: row[column]}
        if op == "delete":
            del known[key]
            row = {column: row[column] for column in self.catalog.table(name).key}
        else:
            known[key] = read_row(self.catalog.table(name), row)
        return {"table": name, "op": op, "row": row}

    def query(self) -> str:
        source = self.random.choice(self.joins)
        names = [name for name in self.tables if name in source.split()]
        columns = [
            (f"{name}.{column.name}", column.type.value)
            for name in names
            for column in self.catalog.table(name).columns
        ]
        shown = "*"
        if self.random.randrange(10) >= 3:
            shown = ", ".join(name for name, _ in self.random.sample(columns, self.random.randrange(1, 4)))
        tests = []
        for name, type in self.random.sample(columns, self.random.choice([0, 1, 1, 2, 3])):
            one, two = self.constant(type), self.constant(type)
            pattern = self.random.choice(PATTERNS)
            tests.append(pattern.format(name, one, two))
        return f"SELECT {shown} FROM {source}" + (f" WHERE {' AND '.join(tests)}" if tests else "")


class Reader:
    """A subscriber: holds what it was told, and checks it against the reference after every event."""

    def __init__(self, world: World, sql: str) -> None:
        statement = Compiler(world.catalog).compile(sql)
        self.shape, self.constants = statement.shape, statement.constants
        self.catalog = world.catalog
        self.held: Counter[str] = Counter()
        self.is_started = False

    def expected(self, tables: PlainTables) -> Counter[str]:
        return Counter(_look(row) for row in answer(self.shape, self.constants, self.catalog, tables))

    def hear(self, changes: list[Row]) -> None:
        """Nothing is told that can be left out, and what goes was there."""
        gone = Counter(_look(change.get("old", change["row"])) for change in changes if change["op"] != "insert")
        come = Counter(_look(change["row"]) for change in changes if change["op"] != "delete")
        assert not gone & come
        assert gone <= self.held
        self.held = self.held - gone + come


def _look(row: Row) -> str:
    return json.dumps(row)


def play(random: Random, steps_max: int, *, is_placed: bool, joins: Sequence[str] = JOINS) -> None:
    world = World(random, joins)
    steps = random.randint(1, steps_max)
    engines: list[Engine | PlacedEngine] = [Engine(world.catalog)]
    if is_placed:
        engines.append(PlacedEngine(world.catalog, 3))
    readers: dict[str, Reader] = {}
    lives: list[tuple[int, str, bool]] = []
    """(after, id, whether it comes)."""
    states: list[PlainTables] = [{name: {} for name in world.tables}]
    lines: list[bytes] = []
    living: list[str] = []
    next_id = told = 0
    heard: list[Row] = []
    for seq in range(1, steps + 1):
        for _ in range(random.choice([0, 0, 1, 1, 2]) if readers else 1):
            if living and random.randrange(10) >= 7:
                id = living.pop(random.randrange(len(living)))
                for engine in engines:
                    engine.door.drop(id, seq - 1)
                lives.append((seq - 1, id, False))
            else:
                id = f"q{next_id}"
                next_id += 1
                sql = world.query()
                readers[id] = Reader(world, sql)
                for engine in engines:
                    engine.door.create(id, sql, seq - 1)
                living.append(id)
                lives.append((seq - 1, id, True))
        lines.append(json.dumps({"seq": seq, **world.change()}).encode())
        states.append({name: dict(rows) for name, rows in world.tables.items()})
        if random.randrange(10) >= 7 or seq == steps:
            results = [engine.feed(lines) for engine in engines]
            lines = []
            notifications = [result.notifications.lines() for result in results]
            assert all(result.refused == [] for result in results)
            assert notifications[1:] == notifications[:-1]
            heard += map(json.loads, notifications[0])
            told += len(notifications[0])
    for engine in engines:
        heard += map(json.loads, engine.finish().notifications.lines())
        break
    _check(heard, readers, lives, states)
    assert told


def _check(
    heard: list[Row], readers: dict[str, Reader], lives: list[tuple[int, str, bool]], states: list[PlainTables]
) -> None:
    by_seq: dict[int, list[Row]] = {}
    for line in heard:
        by_seq.setdefault(line["seq"], []).append(line)
    living: set[str] = set()
    for seq, tables in enumerate(states):
        own = by_seq.get(seq, [])
        changes = [line["subscription"] for line in own if not line["snapshot"]]
        assert len(set(changes)) == len(changes)
        for line in own:
            if not line["snapshot"]:
                assert line["subscription"] in living
                assert line["changes"]
                readers[line["subscription"]].hear(line["changes"])
        for id in living:
            assert readers[id].held == readers[id].expected(tables)
        snapshots = {line["subscription"]: line["changes"] for line in own if line["snapshot"]}
        for after, id, comes in lives:
            if after == seq and comes:
                readers[id].hear(snapshots.pop(id))
                assert readers[id].held == readers[id].expected(tables)
                living.add(id)
            elif after == seq:
                living.remove(id)
        assert not snapshots


RANDOMS = st.randoms(use_true_random=False, note_method_calls=True)


@settings(max_examples=12, deadline=None)
@given(RANDOMS)
def test_answers_are_those_of_the_reference_after_every_event(random: Random) -> None:
    play(random, 60, is_placed=False)


@settings(max_examples=5, deadline=None)
@given(RANDOMS)
def test_lines_are_those_of_gateways(random: Random) -> None:
    play(random, 40, is_placed=True)


@settings(max_examples=12, deadline=None)
@given(RANDOMS, st.sampled_from([0, 1, 5]), st.sampled_from([0, 1, 2, 32]))
def test_candidates_first_gives_the_answers_of_the_reference(random: Random, looks_max: int, asked_max: int) -> None:
    """Chains and stars whose few values join nearly all rows; limits so low that all ways are taken in one run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator.JoinEvaluator, "looks_max", looks_max)
        patch.setattr(evaluator.JoinEvaluator, "asked_max", asked_max)
        play(random, 60, is_placed=False, joins=(*LONG_JOINS, JOINS[0]))


@settings(max_examples=5, deadline=None)
@given(RANDOMS, st.sampled_from([0, 3]))
def test_candidates_first_gives_the_lines_of_gateways(random: Random, looks_max: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluator.JoinEvaluator, "looks_max", looks_max)
        play(random, 30, is_placed=True, joins=LONG_JOINS)


def test_a_cycle_is_closed_by_all_columns_that_lead_into_a_side() -> None:
    signature = Signature((0, 1, 2), ((0, (1,), 1, (1,)), (1, (2,), 2, (2,)), (2, (1,), 0, (1,))))
    first, second = signature.steps(0)
    assert (first.side, first.columns, first.is_direct) == (1, (1,), True)
    assert (second.side, second.columns, second.is_direct) == (2, (1, 2), False)
    assert (2, (1, 2)) in signature.relations()


def test_lists_that_nobody_needs_any_more_are_forgotten() -> None:
    """Rows and the lists of what they are joined by outlast the subscriptions that first needed them."""
    catalog = parse_catalog(NUMBERS)
    engine = Engine(catalog)
    for i in range(300):
        on = " AND ".join(f"r.{column} = s.{column}" for column in ("b", "c", "x", "bc", "bx", "cx", "bcx")[i % 7])
        engine.door.create(f"a{i}", f"SELECT * FROM r JOIN s ON {on} WHERE r.x >= {i} AND s.x = {i}", 0)
    rows = [{"id": i, "b": i % 7, "c": 0.0, "x": float(i)} for i in range(100)]
    lines = [
        json.dumps({"seq": i + 1, "table": "r", "op": "insert", "row": row}).encode() for i, row in enumerate(rows)
    ]
    engine.feed(lines)
    joins = engine._replica._evaluators["join"]
    assert isinstance(joins, evaluator.JoinEvaluator)
    known = len(joins._relations.numbers)
    for i in range(1, 300):
        engine.door.drop(f"a{i}", 100)
    engine.feed([json.dumps({"seq": 101, "table": "r", "op": "delete", "row": {"id": 0}}).encode()])
    engine.door.create("b", "SELECT t.id FROM r JOIN t USING (b) WHERE r.x = 3", 101)
    engine.door.create("c", "SELECT s.id FROM r JOIN s USING (b)", 101)
    new = [{"seq": 102 + i, "table": name, "op": "insert", "row": {**rows[0], "b": 3}} for i, name in enumerate("ts")]
    heard = [
        json.loads(line) for line in engine.feed([json.dumps(line).encode() for line in new]).notifications.lines()
    ]
    told = [(line["subscription"], line["seq"], len(line["changes"])) for line in heard]
    assert told == [("b", 101, 0), ("c", 101, 0), ("b", 102, 1), ("a0", 103, 14), ("c", 103, 14)]
    assert len(joins._relations.numbers) == 8 < known


def test_a_hot_value_opens_the_sides_of_rows_that_have_it() -> None:
    """With the limits as they are: 60 partners of 60 partners of one row, of which each subscription wants a few."""
    catalog = parse_catalog(NUMBERS)
    engine = Engine(catalog)
    source = "r JOIN s ON r.b = s.b JOIN t ON t.c = s.c"
    wanted = {f"a{i}": (10 * i, 10 * i + 1) for i in range(6)}
    for id, (lo, hi) in wanted.items():
        engine.door.create(
            id,
            f"SELECT r.id, s.id, t.id FROM {source} WHERE r.x = 1 AND s.x BETWEEN {lo} AND {hi} AND t.x BETWEEN {lo} AND {hi}",
            0,
        )
    engine.door.create("never", f"SELECT r.id FROM {source} WHERE r.x = 2", 0)
    rows = [(name, {"id": i, "b": 1, "c": 0.0, "x": float(i)}) for name in "st" for i in range(60)]
    rows.append(("r", {"id": 0, "b": 1, "c": 0.0, "x": 1.0}))
    lines = [
        json.dumps({"seq": i + 1, "table": name, "op": "insert", "row": row}).encode()
        for i, (name, row) in enumerate(rows)
    ]
    heard = [json.loads(line) for line in engine.feed(lines).notifications.lines()]
    told = {line["subscription"]: line["changes"] for line in heard if line["seq"] == len(rows)}
    pairs = {id: [tuple(change["row"].values())[1:] for change in changes] for id, changes in told.items()}
    assert pairs == {id: [(s, t) for s in ends for t in ends] for id, ends in wanted.items()}
    joins = engine._replica._evaluators["join"]
    assert isinstance(joins, evaluator.JoinEvaluator)
    # Rows of t had 60 partners in s as well; those of s came first, and had none.
    assert joins._side_index.sides(0) == {0, 2}
