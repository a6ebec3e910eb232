"""Generated WHERE clauses over a table with every comparable type, and rows that sit on and beside their bounds."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tidings.model.catalog import Catalog
from tidings.model.types import ColumnType
from tidings.sql import parse_catalog

CATALOG: Catalog = parse_catalog(
    "CREATE TABLE t (id BIGINT PRIMARY KEY, big BIGINT, small INT, real1 DOUBLE, name TEXT, flag BOOLEAN, day DATE,"
    " moment TIMESTAMP)"
)
TABLE = CATALOG.table("t")

BIGS = [-(2**63), -(2**63) + 1, -(2**53) - 1, -2, -1, 0, 1, 2, 3, 2**53 + 1, 2**63 - 2, 2**63 - 1]
SMALLS = [-(2**31), -1, 0, 1, 2, 2**31 - 1]
REALS = [-1.7976931348623157e308, -1.5, -5e-324, 0.0, 5e-324, 0.1, 1.0, 1.0000000000000002, 1.5, 1.7976931348623157e308]
PREFIX = "prefix--"
NAMES = [
    "",
    "a",
    "a'b",
    "B",
    PREFIX,
    PREFIX + "a",
    PREFIX + "ab",
    PREFIX + "b",
    PREFIX[:-1],
    "é",
    "日本語テキスト",
    "😀",
    "z",
]
DAYS = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
TIMES = [
    dt.datetime(1, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 2, 28, 23),
    dt.datetime(2024, 2, 29),
    dt.datetime(2024, 2, 29, 0, 0, 0, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
]
VALUES: dict[str, list[Any]] = {
    "big": BIGS,
    "small": SMALLS,
    "real1": [*REALS, -0.0],
    "name": NAMES,
    "flag": [False, True],
    "day": DAYS,
    "moment": TIMES,
}


def rows(count: int, seed: int) -> pa.Table:
    """Random rows of the pools above with ties and nulls; every pool value occurs."""
    pick = random.Random(seed)
    columns: dict[str, list[Any]] = {"id": list(range(count))}
    for name, pool in VALUES.items():
        values = [*pool, None] + [pick.choice([*pool, None]) for _ in range(count)]
        columns[name] = pick.sample(values[:count], count)
    return pa.table(columns, schema=TABLE.schema)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _integers(pool: list[int]) -> st.SearchStrategy[str]:
    plain = st.sampled_from(pool).map(str)
    beyond = st.sampled_from(["-9223372036854775809", "9223372036854775808", "99999999999999999999", "2147483648"])
    halves = st.sampled_from([value for value in pool if abs(value) < 2**53]).map(lambda value: f"{value}.5")
    # No exponents: the other engine would compare as doubles, where this one is exact (golden/accepted.txt has those).
    whole = st.sampled_from(["1.0", "2.00", "0.", ".5", "-.5"])
    return st.one_of(plain, plain, beyond, halves, whole)


def _doubles() -> st.SearchStrategy[str]:
    # With an exponent the other engine reads a double; without one a decimal, which it converts by its own rounding.
    exact = st.sampled_from(REALS).map(lambda value: f"{value!r}e0" if "e" not in repr(value) else repr(value))
    return st.one_of(
        exact, st.sampled_from(["0", "1", "-1", "+1", "-0.0", ".5", "1.", "1e999", "-1e999", "9007199254740993"])
    )


def _temporal(name: str) -> st.SearchStrategy[str]:
    day = st.sampled_from(DAYS).map(lambda value: value.isoformat())
    time = st.tuples(st.sampled_from(TIMES), st.sampled_from(" T")).map(lambda pair: pair[0].isoformat(pair[1]))
    # No offsets: the other engine drops them, where this one converts to UTC (golden/accepted.txt has those).
    zulu = st.just("2024-02-29 00:00:00Z")
    spelled = st.one_of(day.map(lambda text: f"DATE '{text}'"), time.map(lambda text: f"TIMESTAMP '{text}'"))
    return st.one_of(spelled, day.map(_quote) if name == "day" else st.one_of(day, time, zulu).map(_quote))


LITERALS: dict[str, st.SearchStrategy[str]] = {
    "big": _integers(BIGS),
    "small": _integers(SMALLS),
    "real1": _doubles(),
    "name": st.sampled_from(NAMES).map(_quote),
    "flag": st.sampled_from(["TRUE", "false"]),
    "day": _temporal("day"),
    "moment": _temporal("moment"),
}
PREFIXES = ["", "a", "pre", PREFIX, PREFIX + "a", "é", "日本", "B", "a'"]
PATTERNS = st.tuples(st.sampled_from(PREFIXES), st.sampled_from(["%", "%", "%%", ""])).map(
    lambda parts: _quote("".join(parts))
)
MIRRORED = {"=": "=", "<>": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@st.composite
def predicates(draw: st.DrawFn, names: tuple[str, ...] = tuple(VALUES)) -> str:
    """One predicate in one of its spellings."""
    name = draw(st.sampled_from(names))
    column = draw(st.sampled_from([name, name.upper(), f"t.{name}", f"({name})", f'"{name}"']))
    literal = LITERALS[name]
    form = draw(st.sampled_from(["compare", "compare", "flipped", "between", "in", "null", "own"]))
    negation = draw(st.sampled_from(["", "", "NOT "]))
    if form == "own" and name == "flag":
        return draw(st.sampled_from([column, f"NOT {column}"]))
    if form == "own" and name == "name":
        return f"{column} {negation}LIKE {draw(PATTERNS)}"
    if form == "null":
        return f"{column} IS {negation}NULL"
    if form == "between":
        return f"{column} {negation}BETWEEN {draw(literal)} AND {draw(literal)}"
    if form == "in":
        return f"{column} {negation}IN ({', '.join(draw(st.lists(literal, min_size=1, max_size=5)))})"
    sign = draw(st.sampled_from(list(MIRRORED)))
    if form == "flipped":
        return f"{draw(literal)} {MIRRORED[sign]} {column}"
    return f"{column} {sign} {draw(literal)}"


# Few columns, so that predicates meet on them.
conditions = st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=2).flatmap(
    lambda names: st.lists(predicates(tuple(names)), min_size=1, max_size=4)
)


def expressions(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Predicates on the columns, joined and nested by AND, OR and NOT, with the parentheses that take."""

    def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        several = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(
            several.map(lambda parts: f"({' AND '.join(parts)})"),
            several.map(lambda parts: f"({' or '.join(parts)})"),
            inner.map("NOT ({})".format),
            several.map(lambda parts: f"({parts[0]} OR {parts[1]} AND NOT {parts[-1]})"),
        )

    return st.recursive(predicates(names), joined, max_leaves=7)


# Mostly few columns; a deep expression of many may come to more disjuncts than are allowed.
boolean_expressions = st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3).flatmap(
    lambda names: expressions(tuple(names))
)


def type_of(column: str) -> ColumnType:
    return TABLE.column(column).type
