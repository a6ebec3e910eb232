"""Proves that compiled constants mean what the SQL says: DuckDB runs the original WHERE over the same rows.

The evaluator here uses nothing but the contract of `Constants`: sets of values, closed codes, bounds for ties of text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from sql_predicates import CATALOG, TABLE, conditions, rows, type_of

from tidings.model.codes import CODE_MAX, CODE_MIN, code_of
from tidings.sql import Compiler, Interval, Statement

ROWS = rows(150, seed=7)
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


@given(predicates=conditions)
@settings(max_examples=700, deadline=None)
def test_constants_select_what_duckdb_selects(engine: duckdb.DuckDBPyConnection, predicates: list[str]) -> None:
    sql = f"SELECT * FROM t WHERE {' AND '.join(predicates)}"
    expected = {row[0] for row in engine.execute(sql).fetchall()}
    statement = COMPILER.compile(sql)
    assert {row["id"] for row in ROWS.to_pylist() if matches(statement, row)} == expected


@given(predicates=conditions)
@settings(max_examples=300, deadline=None)
def test_constants_are_canonical(predicates: list[str]) -> None:
    statement = COMPILER.compile(f"SELECT * FROM t WHERE {' AND '.join(predicates)}")
    assert statement == COMPILER.compile(f"SELECT * FROM t WHERE {' and '.join(reversed(predicates))}")
    for values in statement.constants.equalities:
        assert list(values) == sorted(set(values))
    for interval in statement.constants.intervals:
        if interval.is_empty:
            assert interval == (CODE_MAX, CODE_MIN, None, None, False, False)
        assert CODE_MIN <= interval.lo_code <= CODE_MAX and CODE_MIN <= interval.hi_code <= CODE_MAX
        assert (interval.lo is None) <= (interval.lo_code == CODE_MIN or interval.is_empty)
        assert (interval.hi is None) <= (interval.hi_code == CODE_MAX or interval.is_empty)
