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
BOOLEANS = (
    """
lots = 1|sector = 'a'|per > 1.5|active|listed <> '2024-01-01'|sector LIKE 'a%'|sector NOT LIKE 'b'|lots NOT IN (1, 3)
lots IS NULL|per IS NOT NULL|risk NOT BETWEEN 1 AND 2|5 != rank|lots IN (1, NULL)|sector LIKE 'a_'|moved(price) >= 1|lots IS 5
""".strip()
    .replace("\n", "|")
    .split("|")
)
FRAGMENTS = [*WORDS.split(), "\n", "\0", "ORDER BY per LIMIT 3", *SILENCE]


WHERE = "SELECT * FROM stocks WHERE"


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
@settings(max_examples=120, deadline=None)
def test_any_text(text: str) -> None:
    check(text)
    check(f"SELECT * FROM stocks WHERE {text}")


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_token_soup(soup: str) -> None:
    check(soup)
    check(f"SELECT {soup}")
    check(f"SELECT * FROM stocks WHERE per > 1 {soup}")


@given(st.lists(st.sampled_from([*SILENCE, "OR", "AND", "(", ")", "NOT", "lots = 1", "'1'", "--\n"]), max_size=12))
@settings(max_examples=180, deadline=None)
def test_silence_soup(soup: list[str]) -> None:
    sql = f"SELECT * FROM stocks WHERE ({' '.join(soup)})"
    check(sql)
    check(sql.replace("'1", "'2"))


@given(st.lists(st.sampled_from([*BOOLEANS * 2, *["OR", "AND", "(", ")", "NOT", "NOT ("] * 3]), max_size=16))
@settings(max_examples=240, deadline=None)
def test_boolean_soup(soup: list[str]) -> None:
    text = " ".join(soup)
    check(f"SELECT * FROM stocks WHERE {text}")
    check(f"SELECT * FROM stocks WHERE {text}" + ")" * (text.count("(") - text.count(")")))


@given(
    st.sampled_from([sql for sql, _ in cases("accepted.txt")]),
    st.sampled_from(FRAGMENTS),
    st.integers(0, 100),
    st.booleans(),
)
@settings(max_examples=180, deadline=None)
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
        (f"{WHERE} {' OR '.join(f'lots = {i} AND rank > {i}' for i in range(2_000))}", "4,000 conditions"),
        (f"{WHERE} {' OR '.join(f'lots = {i} AND rank > {i}' for i in range(500))}", "more than 64 disjuncts"),
        (f"{WHERE} {' AND '.join(['(lots = 1 OR rank = 2 OR per = 3)'] * 300)}", "more than 64 disjuncts"),
        (f"{WHERE} {' AND '.join(f'(per < {i} OR per > {i}.5)' for i in range(499))}", "more than 64 disjuncts"),
        (f"{WHERE} {' AND '.join(f'per <> {i}' for i in range(1_000))}", "more than 64 disjuncts"),
        (f"{WHERE} per NOT IN ({','.join(map(str, range(1_000)))})", "more than 64 disjuncts"),
        (f"{WHERE} {'NOT (' * 59}lots = 1 OR per = 2{')' * 59} OR" * 20 + " lots", ""),
        (f"{WHERE} {'(lots = 1 OR (rank = 1 AND ' * 29}per > 1{'))' * 29}", ""),
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
    alternatives = " OR ".join(f"lots = {number}" for number in range(1_000))
    assert COMPILER.compile(f"{WHERE} {alternatives}").constants.equalities == (tuple(range(1_000)),)
    assert len(COMPILER.compile(f"{WHERE} lots NOT IN ({','.join(map(str, range(0, 126, 2)))})").shape.disjuncts) == 64
    gap = COMPILER.compile(f"{WHERE} lots NOT IN ({','.join(map(str, range(1_000)))})").constants.disjuncts
    assert [each.intervals[0][:2] for each in gap] == [(-(2**63), -1), (1_000, 2**63 - 1)]
    assert COMPILER.compile(f"SELECT * FROM stocks WHERE lots < {'9' * 5_000}").constants.intervals[0].hi is None
