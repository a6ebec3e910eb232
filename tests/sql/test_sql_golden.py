"""Proves that statements compile to the shapes and constants, or fail with the errors, written down in `golden/`.

Every statement is compiled twice with one compiler (the second time from the template cache where there is one) and
once more without a cache: the three must agree.
"""

from __future__ import annotations

import pytest
from sql_golden import CATALOG, cases, outcome

from tidings.sql import Compiler

SHARED = Compiler(CATALOG)


@pytest.mark.parametrize(("sql", "expected"), cases("accepted.txt") + cases("refused.txt"))
def test_outcome_is_as_written_down(sql: str, expected: str) -> None:
    assert outcome(SHARED, sql) == expected
    assert outcome(SHARED, sql) == expected
    assert outcome(Compiler(CATALOG, templates_max=0), sql) == expected


@pytest.mark.parametrize(("sql", "expected"), cases("refused.txt"))
def test_refusals_point_into_the_text_and_advise(sql: str, expected: str) -> None:
    place, construct = expected.split("\n")[0].split(" ", 1)
    line, column = (int(number) for number in place.split(":"))
    assert sql.split("\n")[line - 1][column - 1 :].startswith(construct)
    assert "; " in expected.split("\n")[1]


def test_where_points_at_clauses() -> None:
    sql = (
        "SELECT *\nFROM stocks s\n JOIN reviews USING (symbol)\nWHERE moved(price) >= 1 AND rating > 2\n"
        "ORDER BY price\nLIMIT 3"
    )
    statement = SHARED.compile(sql)
    assert statement.where("from") == (2, 1, "FROM stocks s")
    assert statement.where("join") == (3, 2, "JOIN reviews USING (symbol)")
    assert statement.where("movement") == (4, 7, "moved(price) >= 1")
    assert statement.where("order") == (5, 1, "ORDER BY price\nLIMIT 3")
    assert SHARED.compile("SELECT * FROM stocks").where("join") == (1, 10, "FROM stocks")


def test_limit_belongs_to_the_shape_and_literals_do_not() -> None:
    ten = SHARED.compile("SELECT * FROM stocks WHERE per > 1 ORDER BY per LIMIT 10")
    other = SHARED.compile("SELECT * FROM stocks WHERE per > 2 ORDER BY per LIMIT 10")
    twenty = SHARED.compile("SELECT * FROM stocks WHERE per > 1 ORDER BY per LIMIT 20")
    wide = SHARED.compile("SELECT * FROM stocks WHERE per > 1 ORDER BY per LIMIT     20")
    assert ten.shape is other.shape and ten.constants != other.constants
    assert ten.shape != twenty.shape and hash(ten.shape) == hash(other.shape)
    assert wide == twenty
