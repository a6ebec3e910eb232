"""The generated SQL, run by DuckDB, finds the pairs that the definition of matching gives, for every pair of operators."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_constraints import boxes, brute_force, catalog, constraints
from research.strategies.offers.relational import (
    KINDS,
    POSTGRES,
    PUBLICATIONS,
    SPARK,
    SUBSCRIPTIONS,
    Dialect,
    Pair,
    Reified,
    match_query,
    pair_queries,
    pair_query,
    pairs_in_use,
    reify,
    used_operators_query,
)
from tidings.families.offers.constraint import Box
from tidings.model.catalog import Table

CATALOG = catalog()
MARKET, CLASSIC = CATALOG.table("market"), CATALOG.table("classic")
PAIR_BY_PAIR = replace(SPARK, has_indexes=True)
_ARROW = {"integer": pa.int64(), "double": pa.float64(), "bytes": pa.binary()}


def _rows(names: Sequence[str], types: Sequence[pa.DataType], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table(
        [pa.array(column, type) for column, type in zip(columns, types, strict=True)],
        names=list(names),
    )


class Database:
    """The relational tables in DuckDB."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._connection = duckdb.connect()

    def fill(self, publications: dict[str, tuple[Box, ...]], subscriptions: dict[str, tuple[Box, ...]]) -> None:
        for side, given_boxes in ((PUBLICATIONS, publications), (SUBSCRIPTIONS, subscriptions)):
            rows = reify(given_boxes.items(), self._table)
            ids = [side.id, side.disjunct]
            self._create(side.master, _rows([*ids, "count"], [pa.string(), pa.int32(), pa.int32()], rows.masters))
            for kind in KINDS.values():
                types = [pa.string(), pa.int32(), pa.int32(), pa.string(), *[_ARROW[kind.storage]] * len(kind.columns)]
                found = _rows([*ids, "field", "op", *kind.columns], types, rows.predicates[kind.name])
                self._create(side.predicates(kind.name), found)

    def _create(self, name: str, rows: pa.Table) -> None:
        self._connection.register("given", rows)
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
        self._connection.unregister("given")

    def pairs_in_use(self) -> list[Pair]:
        used = (used_operators_query(side) for side in (PUBLICATIONS, SUBSCRIPTIONS))
        return pairs_in_use(*(self._connection.execute(query).fetchall() for query in used))

    def match(self, dialect: Dialect = SPARK) -> list[tuple[str, str]]:
        is_classic = self._table.constraints.is_classic
        query = match_query(self.pairs_in_use(), dialect, is_classic=is_classic)
        return self._connection.execute(query).fetchall()

    def met(self, dialect: Dialect) -> list[tuple[Any, ...]]:
        """Predicates that can both hold."""
        queries = pair_queries(self.pairs_in_use(), dialect)
        return [row for query in queries for row in self._connection.execute(query).fetchall()]


def matches(
    table: Table, publications: dict[str, tuple[Box, ...]], subscriptions: dict[str, tuple[Box, ...]]
) -> set[tuple[str, str]]:
    """The pairs that are found by queries for each pair of operators and by queries for several, which must agree."""
    database = Database(table)
    database.fill(publications, subscriptions)
    met = database.met(PAIR_BY_PAIR)
    # The counting query relies on it.
    assert len(met) == len(set(met))
    assert sorted(database.met(SPARK)) == sorted(met)
    found = database.match()
    assert sorted(database.match(PAIR_BY_PAIR)) == sorted(set(found)) == sorted(found)
    return set(found)


def compiled(wheres: Iterable[str], table: Table = MARKET) -> dict[str, tuple[Box, ...]]:
    return {where: boxes(where, table, CATALOG) for where in wheres}


@settings(max_examples=7)
@given(st.integers(0, 2**32), st.sampled_from([MARKET, CLASSIC]), st.booleans())
def test_finds_what_the_definition_finds(seed: int, table: Table, has_few: bool) -> None:
    random = Random(seed)
    names = random.sample([column.name for column in table.attributes], 2) if has_few else None
    publications, subscriptions = (
        {id: boxes(where, table, CATALOG) for id, where in constraints(random, 12, table, CATALOG, names).items()}
        for _ in range(2)
    )
    expected = brute_force(publications, subscriptions, is_classic=table.constraints.is_classic)
    assert matches(table, publications, subscriptions) == expected


# Sets of values judged by themselves, apart from codes and boxes: constants, and for each the values next to it.
_DAY = dt.timedelta(days=1)
_VALUES: dict[str, tuple[list[Any], Callable[[Any], list[Any]], Callable[[Any], str]]] = {
    "lot": ([-1, 0, 1, 3], lambda value: [value - 1, value, value + 1], str),
    "grade": ([-(2**31), 0, 1, 2**31 - 1], lambda value: [value - 1, value, value + 1], str),
    "price": (
        [-5e-324, 0.0, 5e-324, 1.0, 1.5],
        lambda value: [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)],
        repr,
    ),
    "topic": (
        ["", "a", "a\0", "ab", "abcdefgh", "abcdefghi"],
        lambda value: [value, value + "\0", value + "\0\0"],
        lambda value: f"'{value}'",
    ),
    "fresh": ([False, True], lambda value: [value], str),
    "day": (
        [dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(2024, 3, 2)],
        lambda value: [value - _DAY, value, value + _DAY],
        lambda value: f"DATE '{value}'",
    ),
    "at": (
        [dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 0, 0, 0, 1), dt.datetime(2024, 2, 29, 1)],
        lambda value: [value + dt.timedelta(microseconds=step) for step in (-1, 0, 1)],
        lambda value: f"TIMESTAMP '{value}'",
    ),
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda value, constant: value == constant,
    "<>": lambda value, constant: value != constant,
    "<": lambda value, constant: value < constant,
    "<=": lambda value, constant: value <= constant,
    ">": lambda value, constant: value > constant,
    ">=": lambda value, constant: value >= constant,
}


def _in_range(name: str, value: Any) -> bool:
    return name != "grade" or -(2**31) <= value < 2**31


def _sets(name: str) -> dict[str, set[Any]]:
    """The candidates that satisfy each predicate that some value satisfies: comparisons and the four kinds of ranges."""
    constants, neighbours, written = _VALUES[name]
    candidates = {near for value in constants for near in neighbours(value) if _in_range(name, near)}
    found: dict[str, set[Any]] = {}
    for value in constants:
        for comparison, holds in _COMPARISONS.items():
            found[f"{name} {comparison} {written(value)}"] = {one for one in candidates if holds(one, value)}
        for other in constants:
            for lower in (">", ">="):
                for upper in ("<", "<="):
                    where = f"{name} {lower} {written(value)} AND {name} {upper} {written(other)}"
                    found[where] = {
                        one for one in candidates if _COMPARISONS[lower](one, value) and _COMPARISONS[upper](one, other)
                    }
    return {where: values for where, values in found.items() if values}


@pytest.mark.parametrize("name", _VALUES)
def test_every_pair_of_operators_is_judged_as_values_are(name: str) -> None:
    sets = _sets(name)
    constraint_boxes = compiled(sets)
    expected = {(a, b) for a in sets for b in sets if sets[a] & sets[b]}
    assert matches(MARKET, constraint_boxes, constraint_boxes) == expected


BOXES = {
    "area = box(0, 0, 2, 2)": "=",
    "within(area, box(0, 0, 2, 2))": "within",
    "overlaps(area, box(0, 0, 2, 2))": "overlaps",
    "contains(area, box(0, 0, 2, 2))": "contains",
    "overlaps(area, box(0, 0, 1, 1)) AND overlaps(area, box(2, 2, 3, 3))": "contains",
    "overlaps(area, box(0, 0, 1, 1)) AND overlaps(area, box(2, 0, 3, 1))": "sides",
    "within(area, box(0, 0, 9, 9)) AND contains(area, box(1, 1, 2, 2))": "sides",
    "within(area, box(0, 0, 9, 9)) AND overlaps(area, box(1, 1, 2, 2))": "sides",
    "within(area, box(0, 0, 9, 9)) AND within(area, box(1, 1, 10, 10))": "within",
    "area = box(0, 0, 2, 2) AND within(area, box(0, 0, 9, 9))": "=",
    "spot = point(1, 2)": "=",
    "within(spot, box(0, 0, 2, 2))": "within",
}


@pytest.mark.parametrize("where", BOXES)
def test_conditions_on_places_keep_their_operators(where: str) -> None:
    rows = reify(compiled([where]).items(), MARKET)
    kind = "box" if "area" in where else "point"
    assert [row[3] for row in rows.predicates[kind]] == [BOXES[where]]


@pytest.mark.parametrize(
    ("where", "kind", "rows"),
    [
        ("lot = 5", "integer", [("=", 5, None)]),
        ("lot <> 5", "integer", [("<=", 4, None), (">=", 6, None)]),
        ("lot BETWEEN 1 AND 5", "integer", [("[]", 1, 5)]),
        ("lot >= -9223372036854775808", "integer", [("any", None, None)]),
        ("fresh <> TRUE", "integer", [("=", 0, None)]),
        ("price < 0", "double", [("<=", -5e-324, None)]),
        ("price > 1", "double", [(">=", 1.0000000000000002, None)]),
        ("topic = 'é'", "text", [("=", "é".encode(), None)]),
        ("topic <= 'a'", "text", [("<", b"a\0", None)]),
        ("topic LIKE 'ab%'", "text", [("[)", b"ab", b"ac")]),
        ("topic LIKE '%'", "text", [("any", None, None)]),
    ],
)
def test_rows_of_a_constraint(where: str, kind: str, rows: list[tuple[Any, ...]]) -> None:
    found = reify(compiled([where]).items(), MARKET)
    assert [row[3:] for row in found.predicates[kind]] == rows
    assert found.masters == [(where, disjunct, 1) for disjunct in range(len(rows))]
    assert sum(len(rows) for rows in found.predicates.values()) == len(rows)


def test_a_place_counts_as_one_attribute() -> None:
    where = "within(area, box(0, 0, 1, 1)) AND spot = point(0, 0) AND lot = 1"
    found: Reified = reify(compiled([where]).items(), MARKET)
    assert found.masters == [(where, 0, 3)]
    assert {kind: [row[2] for row in rows] for kind, rows in found.predicates.items() if rows} == {
        "integer": [1],
        "point": [7],
        "box": [8],
    }


def test_only_pairs_in_use_are_queried() -> None:
    database = Database(MARKET)
    database.fill(compiled(["lot = 1 AND price < 5"]), compiled(["lot = 1 AND price > 2", "lot >= 7", "fresh = TRUE"]))
    assert database.pairs_in_use() == [
        Pair("double", "<=", ">="),
        Pair("integer", "=", "="),
        Pair("integer", "=", ">="),
    ]
    assert database.match() == [("lot = 1 AND price < 5", "lot = 1 AND price > 2")]


def test_nothing_matches_where_no_operators_meet() -> None:
    assert matches(MARKET, compiled(["lot = 1"]), compiled(["price = 1"])) == set()
    assert matches(MARKET, {}, compiled(["price = 1"])) == set()


def test_the_published_example() -> None:
    publications = compiled(["lot < 5 AND grade = 1"])
    subscriptions = compiled(["lot < 6 AND grade = 3", "lot < 4 AND grade < 2"])
    assert matches(MARKET, publications, subscriptions) == {("lot < 5 AND grade = 1", "lot < 4 AND grade < 2")}


def test_boxes_of_postgres_are_compared_exactly_after_its_operator() -> None:
    query = pair_query(Pair("box", "=", "overlaps"), POSTGRES)
    assert "p.val && s.val AND (p.val[1])[0] <= (s.val[0])[0]" in query
