"""Proves that compiled constants mean what the SQL says: DuckDB runs the original WHERE over the same rows.

The evaluator here uses nothing but the contract of `Constants`: disjuncts, sets of values, closed codes, bounds for ties of
text. The reference of select, which uses typed bounds, must find the same.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from sql_golden import CATALOG as GOLDEN_CATALOG
from sql_golden import cases
from sql_predicates import CATALOG, TABLE, boolean_expressions, conditions, rows, type_of

from tidings.families.select.reference import answer
from tidings.model.codes import CODE_MAX, CODE_MIN, code_of
from tidings.model.errors import SqlError
from tidings.model.types import ColumnType
from tidings.sql import Compiler, Constants, Interval, Shape, Statement

ROWS = rows(150, seed=7)
ROW_LIST = ROWS.to_pylist()
COMPILER = Compiler(CATALOG)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("arrow_rows", ROWS)
    types = ", ".join(f"{column.name} {column.type.value}" for column in TABLE.columns)
    connection.execute(f"CREATE TABLE t ({types})")
    connection.execute("INSERT INTO t SELECT * FROM arrow_rows")
    yield connection
    connection.close()


def matches(statement: Statement, row: dict[str, Any]) -> bool:
    shape, constants = statement.shape, statement.constants
    disjuncts = zip(shape.conjunctions, constants.disjuncts or (constants,), strict=True)
    return any(satisfies(disjunct, own, row) for disjunct, own in disjuncts)


def satisfies(shape: Shape, constants: Constants, row: dict[str, Any]) -> bool:
    if any(row[ref.column] is not None for ref in shape.nulls):
        return False
    pinned = zip(shape.equalities, constants.equalities, strict=True)
    ranged = zip(shape.ranges, constants.intervals, strict=True)
    return all(row[ref.column] in values for ref, values in pinned) and all(
        within(ref.column, row[ref.column], interval) for ref, interval in ranged
    )


def within(column: str, value: Any, interval: Interval) -> bool:
    if value is None:
        return False
    code = code_of(type_of(column), value)
    if not interval.lo_code <= code <= interval.hi_code:
        return False
    if not type_of(column).is_lossy:
        return True
    if code == interval.lo_code and interval.lo is not None:
        tie = value.encode(), interval.lo.encode()
        if tie[0] < tie[1] or (tie[0] == tie[1] and not interval.lo_closed):
            return False
    if code == interval.hi_code and interval.hi is not None:
        tie = value.encode(), interval.hi.encode()
        return tie[0] < tie[1] or (tie[0] == tie[1] and interval.hi_closed)
    return True


def check(engine: duckdb.DuckDBPyConnection, sql: str) -> Statement:
    expected = {row[0] for row in engine.execute(sql).fetchall()}
    statement = COMPILER.compile(sql)
    assert {row["id"] for row in ROW_LIST if matches(statement, row)} == expected
    referred = answer(statement.shape, statement.constants, ROW_LIST)
    assert {row["id"] for row in referred} == expected and len(referred) == len(expected)
    return statement


@given(predicates=conditions)
@settings(max_examples=210, deadline=None)
def test_constants_select_what_duckdb_selects(engine: duckdb.DuckDBPyConnection, predicates: list[str]) -> None:
    check(engine, f"SELECT * FROM t WHERE {' AND '.join(predicates)}")


@given(expression=boolean_expressions)
@example("NOT (big < 5 OR NOT name LIKE 'pre%')")
@example("real1 <> 1e0 AND (flag IS NULL OR NOT flag)")
@example("big NOT IN (1, 2, 1.5, 99999999999999999999, -1)")
@example("name NOT IN ('', 'prefix--a', 'prefix--ab', 'prefix--')")
@settings(max_examples=180, deadline=None)
def test_boolean_expressions_select_what_duckdb_selects(engine: duckdb.DuckDBPyConnection, expression: str) -> None:
    try:
        statement = check(engine, f"SELECT * FROM t WHERE {expression}")
    except SqlError as error:
        assert "more than 64 disjuncts" in error.problem
        return
    # What is left of each disjunct can hold a row, and none is there twice.
    disjuncts = statement.constants.disjuncts
    assert len({*zip(statement.shape.disjuncts, disjuncts, strict=True)}) == len(disjuncts) != 1
    for own in disjuncts:
        assert all(own.equalities) and not any(interval.is_empty for interval in own.intervals)


# Not those of other families, and not those with the offset of a time, which DuckDB drops.
_OTHERWISE = ("order by", "moved", "23:30-01", "+0530")
GOLDEN = [
    sql
    for sql, _ in cases("accepted.txt")
    if "FROM stocks WHERE" in sql and not any(word in sql.lower() for word in _OTHERWISE)
]


@pytest.fixture(scope="module")
def stocks() -> Iterator[tuple[duckdb.DuckDBPyConnection, list[dict[str, Any]]]]:
    """The table that golden statements are about, with values that they compare with, values beside these, and nulls."""
    pick = random.Random(11)
    texts = ["tech", "tec", "te", "tf", "team", "oil", "gas", "a", "b", "", "it's", "it'sy", "z", None]
    numbers = [0, 1, 2, 3, 4, 5, 9, 10, 50, 51, -1, None]
    pools: dict[ColumnType, list[Any]] = {
        ColumnType.TEXT: texts,
        ColumnType.BIGINT: numbers,
        ColumnType.INT: numbers,
        ColumnType.DOUBLE: [
            None if number is None else float(number) for number in [*numbers, 4.5, 1.0000000000000002]
        ],
        ColumnType.BOOLEAN: [False, True, None],
        ColumnType.DATE: [dt.date(2024, 2, 29), dt.date(2024, 2, 28), dt.date(2024, 1, 1), dt.date(2023, 12, 31), None],
        ColumnType.TIMESTAMP: [dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 0, 0, 0, 1), None],
        ColumnType.BINARY: [b"", None],
    }
    table = GOLDEN_CATALOG.table("stocks")
    columns = {column.name: [pick.choice(pools[column.type]) for _ in range(400)] for column in table.columns}
    columns["symbol"] = [f"S{i}" for i in range(400)]
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("arrow_rows", rows := pa.table(columns, schema=table.schema))
    types = ", ".join(f"{column.name} {column.type.value}" for column in table.columns)
    connection.execute(f"CREATE TABLE stocks ({types})")
    connection.execute("INSERT INTO stocks SELECT * FROM arrow_rows")
    yield connection, rows.to_pylist()
    connection.close()


@pytest.mark.parametrize("sql", GOLDEN)
def test_golden_statements_answer_as_in_duckdb(
    stocks: tuple[duckdb.DuckDBPyConnection, list[dict[str, Any]]], sql: str
) -> None:
    connection, plain = stocks
    cursor = connection.execute(sql)
    names = [column[0].lower() for column in cursor.description]
    expected = Counter(repr(dict(zip(names, row, strict=True))) for row in cursor.fetchall())
    statement = Compiler(GOLDEN_CATALOG).compile(sql)
    found = answer(statement.shape, statement.constants, plain)
    assert Counter(repr(row) for row in found) == expected


@given(first=boolean_expressions, second=boolean_expressions)
@settings(max_examples=40, deadline=None)
def test_the_order_of_operands_does_not_matter(first: str, second: str) -> None:
    for word in ("AND", "OR"):
        texts = [f"SELECT * FROM t WHERE ({one}) {word} ({other})" for one, other in ((first, second), (second, first))]
        assert outcome(texts[0]) == outcome(texts[1])


def outcome(sql: str) -> Statement | str:
    try:
        return COMPILER.compile(sql)
    except SqlError as error:
        return error.problem


@given(predicates=conditions)
@settings(max_examples=90, deadline=None)
def test_constants_are_canonical(predicates: list[str]) -> None:
    statement = COMPILER.compile(f"SELECT * FROM t WHERE {' AND '.join(predicates)}")
    assert statement == COMPILER.compile(f"SELECT * FROM t WHERE {' and '.join(reversed(predicates))}")
    for constants in statement.constants.disjuncts or (statement.constants,):
        check_canonical(constants)


def check_canonical(constants: Constants) -> None:
    for values in constants.equalities:
        assert list(values) == sorted(set(values))
    for interval in constants.intervals:
        if interval.is_empty:
            assert interval == (CODE_MAX, CODE_MIN, None, None, False, False)
        assert CODE_MIN <= interval.lo_code <= CODE_MAX and CODE_MIN <= interval.hi_code <= CODE_MAX
        assert (interval.lo is None) <= (interval.lo_code == CODE_MIN or interval.is_empty)
        assert (interval.hi is None) <= (interval.hi_code == CODE_MAX or interval.is_empty)
