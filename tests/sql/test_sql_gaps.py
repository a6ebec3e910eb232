"""Neighbouring values with nothing between them: no interval ends there, and one that would lie there is empty.

0.0 and -0.0 are one number. The least text above another is that with a NUL behind it.
"""

import pytest

from tidings.model.errors import SqlError
from tidings.sql import parse_catalog
from tidings.sql.compiler import Compiler
from tidings.sql.conditions import compile_condition

CATALOG = parse_catalog(
    "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, per DOUBLE);"
    "CREATE TABLE market (topic TEXT, price DOUBLE) WITH (rows = 'constraints')"
)
LEAST = "5e-324"


@pytest.mark.parametrize(
    ("condition", "ends"),
    [
        ("per < 0", [(None, -2)]),
        ("per < -0.0", [(None, -2)]),
        (f"per > -{LEAST}", [(0, None)]),
        (f"per <= -{LEAST}", [(None, -2)]),
        ("per >= 0", [(0, None)]),
        ("per > 0", [(1, None)]),
        ("per <> 0", [(None, -2), (1, None)]),
        ("per < 0 OR per >= 0", [(None, None)]),
    ],
)
def test_ends_beside_zero(condition, ends):
    constants = Compiler(CATALOG).compile(f"SELECT * FROM stocks WHERE {condition}").constants
    found = [interval for one in constants.disjuncts or (constants,) for interval in one.intervals]
    limits = (-(2**63), 2**63 - 1)
    assert [(each.lo_code, each.hi_code) for each in found] == [
        tuple(limit if end is None else end for end, limit in zip(pair, limits, strict=True)) for pair in ends
    ]


@pytest.mark.parametrize(
    "condition", [f"price > -{LEAST} AND price < 0", "topic > 'a' AND topic < 'a\0'", "topic > 'a' AND topic <= 'a'"]
)
def test_nothing_lies_between_neighbours(condition):
    with pytest.raises(SqlError, match="no value"):
        compile_condition(CATALOG, CATALOG.table("market"), condition)


@pytest.mark.parametrize("condition", ["topic > 'a' AND topic <= 'a\0'", "topic >= 'a' AND topic < 'a\0'"])
def test_a_text_between_its_neighbours_is_found(condition):
    assert compile_condition(CATALOG, CATALOG.table("market"), condition).constants.intervals
