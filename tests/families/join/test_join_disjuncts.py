"""Joins with OR, NOT, <>, NOT IN and IS NULL, within one table and across tables, against recomputation to the byte."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tidings.engine import Engine
from tidings.families.join.evaluator import JoinEvaluator
from tidings.families.join.reference import JoinReference
from tidings.model.errors import SqlError
from tidings.pipeline.door import Door
from tidings.plain import PlainEngine
from tidings.sql import Compiler, parse_catalog
from tidings.testing.join_inputs import CHAIN, PAIR, POOLS
from tidings.testing.select_inputs import literal, workload_strategy
from tidings.testing.workload import Workload, chunks

SOURCES = {PAIR: "stocks JOIN reviews USING (symbol)", CHAIN: "r JOIN s USING (b) JOIN t USING (d)"}
CATALOG = parse_catalog(PAIR)


@st.composite
def queries(draw: DrawFn, catalog_sql: str) -> str:
    columns = [
        (f"{table.name}.{column.name}", column.type)
        for table in parse_catalog(catalog_sql).tables
        for column in table.columns
    ]

    @st.composite
    def comparisons(draw: DrawFn) -> str:
        name, type = draw(st.sampled_from(columns))
        values = [literal(type, draw(st.sampled_from(POOLS[type]))) for _ in range(2)]
        forms = ["{0} = {1}", "{0} <> {1}", "{0} > {1}", "{0} BETWEEN {1} AND {2}", "{0} IN ({1}, {2})"]
        return draw(st.sampled_from([*forms, "{0} NOT IN ({1}, {2})", "{0} IS NULL"])).format(name, *values)

    condition = st.recursive(
        comparisons(),
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' OR '.join(parts)})"),
            st.lists(inner, min_size=2, max_size=2).map(lambda parts: f"({' AND '.join(parts)})"),
            inner.map("NOT {}".format),
        ),
        max_leaves=4,
    )
    shown = draw(st.sampled_from(["*", columns[1][0], f"{columns[0][0]}, {columns[-1][0]}"]))
    return f"SELECT {shown} FROM {SOURCES[catalog_sql]} WHERE {draw(condition)}"


def lines_of(engine: Engine | PlainEngine, workload: Workload, size: int) -> list[str]:
    assert engine.door.read(workload.subscription_lines()) == []
    results = [engine.feed(batch) for batch in chunks(workload.change_lines(), [size])]
    return [line for result in [*results, engine.finish()] for line in result.notifications.lines()]


def test_lines_are_those_of_recomputation(monkeypatch: pytest.MonkeyPatch) -> None:
    workloads = st.sampled_from([PAIR, CHAIN]).flatmap(
        lambda sql: workload_strategy(sql, queries(sql), changes_max=40, keys=4, pools=POOLS)
    )

    @settings(max_examples=25)
    @given(workloads, st.sampled_from([1, 3, 100]), st.sampled_from([0, 32]))
    def check(workload: Workload, size: int, looks_max: int) -> None:
        # With 0 candidates are always found first.
        monkeypatch.setattr(JoinEvaluator, "looks_max", looks_max)
        plain = PlainEngine(workload.catalog, Door(workload.catalog, keeps_queries=True))
        assert lines_of(Engine(workload.catalog), workload, size) == lines_of(plain, workload, 100)

    check()


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[tuple[Any, ...], dict[str, Any]]]:
    """Rows of both tables of PAIR, some values null."""
    rng = random.Random(3)
    found: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
    for table in CATALOG.tables:
        found[table.name] = {}
        for number in range(12):
            row = {column.name: rng.choice([*POOLS[column.type], None]) for column in table.columns}
            key = table.key[0]
            row[key] = (
                number if table.name == "reviews" else ["prefix08", "prefix08a", "prefix08b", "a", "b"][number % 5]
            )
            found[table.name][row[key],] = row
    return found


def test_the_reference_selects_what_duckdb_selects(rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]]) -> None:
    connection = duckdb.connect()
    for table in CATALOG.tables:
        types = ", ".join(f"{column.name} {column.type.value}" for column in table.columns)
        connection.execute(f"CREATE TABLE {table.name} ({types})")
        places = ", ".join("?" for _ in table.columns)
        for row in rows[table.name].values():
            connection.execute(f"INSERT INTO {table.name} VALUES ({places})", list(row.values()))

    @settings(max_examples=80)
    @given(queries(PAIR))
    def check(sql: str) -> None:
        statement = Compiler(CATALOG).compile(sql)
        found = JoinReference().answer(statement.shape, statement.constants, CATALOG, rows, None)
        assert Counter(tuple(row.values()) for row in found) == Counter(connection.execute(sql).fetchall())

    check()
    connection.close()


def test_a_joined_row_is_told_once_however_many_alternatives_hold() -> None:
    engine = Engine(CATALOG)
    sql = "SELECT per, rating FROM stocks JOIN reviews USING (symbol) WHERE per > 1 OR rating = 5"

    def told(seq: int, per: int | None = None, rating: int | None = None, price: float = 1.0) -> list[object]:
        """What is told of a stock with this per, or of a review with this rating."""
        row = {"id": 1, "symbol": "a", "sector": 1, "rating": rating, "author": "x"}
        if rating is None:
            row = {"symbol": "a", "sector": 1, "per": per, "price": price}
        record = {"seq": seq, "table": "stocks" if rating is None else "reviews", "op": "upsert", "row": row}
        result = engine.feed([json.dumps(record).encode()])
        assert result.refused == []
        return [json.loads(line)["changes"] for line in result.notifications.lines()]

    engine.door.create("s", sql, 0)
    assert told(1, per=2) == [[]]
    assert told(2, rating=5) == [[{"op": "insert", "row": {"per": 2, "rating": 5}}]]
    assert told(3, per=0) == [[{"op": "update", "old": {"per": 2, "rating": 5}, "row": {"per": 0, "rating": 5}}]]
    assert told(4, per=0, price=2.0) == []
    assert told(5, rating=4) == [[{"op": "delete", "row": {"per": 0, "rating": 5}}]]
    assert told(6, per=3) == [[{"op": "insert", "row": {"per": 3, "rating": 4}}]]
    assert told(7, rating=5) == [[{"op": "update", "old": {"per": 3, "rating": 4}, "row": {"per": 3, "rating": 5}}]]
    # One who comes now starts with a row that both alternatives select, once.
    engine.door.create("t", sql, 7)
    assert [json.loads(line)["changes"] for line in engine.finish().notifications.lines()] == [
        [{"op": "insert", "row": {"per": 3, "rating": 5}}]
    ]


def test_the_number_of_alternatives_has_a_bound() -> None:
    clauses = " AND ".join(f"(per = {i} OR rating = {i})" for i in range(8))
    with pytest.raises(SqlError, match="more than 64 disjuncts"):
        Door(CATALOG).create("t", f"SELECT * FROM stocks JOIN reviews USING (symbol) WHERE {clauses}", 0)
