"""Proves that any text whatsoever gives a Statement or a SqlError, within the limits that are promised."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sql_golden import CATALOG, cases

from tidings.model.errors import SqlError
from tidings.sql import Compiler, Statement

COMPILER = Compiler(CATALOG)

WORDS = """
SELECT FROM WHERE AND OR NOT IN BETWEEN IS NULL LIKE JOIN LEFT CROSS USING ON AS ORDER BY LIMIT OFFSET GROUP HAVING
UNION
ALL DISTINCT WITH CASE WHEN THEN END EXISTS CAST DATE TIMESTAMP INTERVAL TRUE FALSE LATERAL UNNEST VALUES PIVOT
TABLESAMPLE QUALIFY WINDOW OVER PARTITION ROWS FETCH FOR UPDATE SET SHOW
stocks reviews s symbol sector per lots active listed traded logo market moved moved_percent silent_for count lower HOUR
( ) , ; . * + - / % = < > <= >= <> ! ? : :: @ # $ $1 [ ] { } {{ }} {% %} | || & ^ ~ \\ ` ' " -- /* */
1 0 -1 1.5 .5 5. 1e5 1e 1e999 99999999999999999999 'a' '' '2024-01-01' 'it''s' n'x' x'41' "per" é 😀
"""
SILENCE = ["moved(per) >= 1", "silent_for(lots) >= 5", "silent_for(traded) >=", "INTERVAL '1 hour'", "INTERVAL 2 DAY"]
FRAGMENTS = [*WORDS.split(), "\n", "\0", "ORDER BY per LIMIT 3", *SILENCE]


def check(sql: str) -> None:
    try:
        assert isinstance(COMPILER.compile(sql), Statement)
    except SqlError as error:
        assert str(error)
        assert error.hint


@given(st.text(st.characters(), max_size=60))
@example("\ud800")
@example("SELECT * FROM stocks WHERE sector = '\ud800'")
@example("SELECT * FROM stocks WHERE sector = '\0' AND per > 1")
@settings(max_examples=400, deadline=None)
def test_any_text(text: str) -> None:
    check(text)
    check(f"SELECT * FROM stocks WHERE {text}")


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map(" ".join))
@settings(max_examples=1000, deadline=None)
def test_token_soup(soup: str) -> None:
    check(soup)
    check(f"SELECT {soup}")
    check(f"SELECT * FROM stocks WHERE per > 1 {soup}")


@given(st.lists(st.sampled_from([*SILENCE, "OR", "AND", "(", ")", "NOT", "lots = 1", "'1'", "--\n"]), max_size=12))
@settings(max_examples=600, deadline=None)
def test_silence_soup(soup: list[str]) -> None:
    sql = f"SELECT * FROM stocks WHERE ({' '.join(soup)})"
    check(sql)
    check(sql.replace("'1", "'2"))


@given(
    st.sampled_from([sql for sql, _ in cases("accepted.txt")]),
    st.sampled_from(FRAGMENTS),
    st.integers(0, 100),
    st.booleans(),
)
@settings(max_examples=600, deadline=None)
def test_one_fragment_too_many_or_one_word_too_few(sql: str, fragment: str, at: int, insert: bool) -> None:
    words = sql.split(" ")
    at %= len(words)
    check(" ".join([*words[:at], fragment, *words[at:]] if insert else words[:at] + words[at + 1 :]))


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT * FROM stocks WHERE per > 1" + " " * 70_000, "characters"),
        ("SELECT * FROM stocks WHERE " + "(" * 5_000 + "per" + ")" * 5_000 + " > 1", "nested too deep"),
        ("SELECT * FROM stocks WHERE " + "NOT " * 10_000 + "active", ""),
        ("SELECT * FROM stocks WHERE per > " + "- " * 20_000 + "1", ""),
        ("SELECT * FROM stocks WHERE lots IN (" + ",".join(map(str, range(1_001))) + ")", "IN has 1,001 values"),
        ("SELECT * FROM stocks WHERE " + "CASE WHEN " * 5_000, ""),
        ("SELECT " * 9_000, ""),
        ("SELECT * FROM stocks WHERE " + "[" * 5_000, ""),
        ("SELECT * FROM stocks " + "JOIN reviews " * 3_000, ""),
    ],
)
def test_oversized_statements_are_refused_in_time(sql: str, problem: str) -> None:
    started = time.perf_counter()
    with pytest.raises(SqlError, match=problem or "."):
        COMPILER.compile(sql)
    assert time.perf_counter() - started < 5


def test_large_statements_within_the_limits_work() -> None:
    values = COMPILER.compile(f"SELECT * FROM stocks WHERE lots IN ({','.join(map(str, range(1_000)))})")
    assert values.constants.equalities == (tuple(range(1_000)),)
    conjunction = " AND ".join(f"per > {number}" for number in range(3_000))
    assert COMPILER.compile(f"SELECT * FROM stocks WHERE {conjunction}").constants.intervals[0].lo == 2_999.0
    assert COMPILER.compile(f"SELECT * FROM stocks WHERE lots < {'9' * 5_000}").constants.intervals[0].hi is None
