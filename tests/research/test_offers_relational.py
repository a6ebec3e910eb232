"""PostgreSQL finds the pairs that the definition of matching gives, by its indexes; and `compare` tells who finds others."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from random_constraints import CATALOG_SQL, boxes, catalog, constraints
from research.bench.offers.agreement import WAYS, by_definition, compare
from research.bench.offers.relational_postgres import RelationalPostgres, relational_postgres
from tidings.families.offers.constraint import Box
from tidings.sql import parse_catalog

pytestmark = pytest.mark.extended

CATALOG = catalog()


@pytest.mark.parametrize(("table", "names"), [("market", None), ("classic", None), ("market", ["area", "spot"])])
def test_postgres_finds_what_the_definition_finds(table: str, names: list[str] | None) -> None:
    random = Random(11)
    sides = [constraints(random, count, CATALOG.table(table), CATALOG, names) for count in (120, 200)]
    ways = {name: WAYS[name] for name in ("definition", "postgres")}
    found = compare(*sides, catalog_sql=CATALOG_SQL, table=table, ways=ways)
    assert len(found.pairs) > 1_000
    assert found.differences() == []


def test_differences_are_told() -> None:
    conditions = {"a": "lot = 1", "b": "lot = 2"}
    said: list[str] = []
    found = compare(
        conditions,
        conditions,
        catalog_sql=CATALOG_SQL,
        table="market",
        ways={"definition": by_definition, "wrong": lambda _: {("a", "a"), ("a", "b")}},
        say=said.append,
    )
    assert found.pairs == {("a", "a"), ("b", "b")}
    assert found.differences() == ["wrong misses 1 pairs of definition and has 1 more, as ('a', 'b'), ('b', 'b')"]
    assert said[0] == "compiling 2 publications, 2 subscriptions"


PAPER = parse_catalog("CREATE TABLE paper (x BIGINT, b BOX) WITH (rows = 'constraints')")


def _constraint(id: str, where: str) -> tuple[str, tuple[Box, ...]]:
    return id, boxes(where, PAPER.table("paper"), PAPER)


@pytest.fixture(scope="module")
def database() -> Iterator[RelationalPostgres]:
    """Subscriptions like those of the paper's fixed and geometric workloads."""
    random = Random(5)
    wheres = [f"x = {number}" for number in range(5_000)]
    for _ in range(5_000):
        x, y = random.random(), random.random()
        wheres.append(f"overlaps(b, box({x}, {y}, {x + 1e-9}, {y + 1e-9}))")
    with relational_postgres(PAPER.table("paper")) as postgres:
        postgres.subscribe(_constraint(f"s{at}", where) for at, where in enumerate(wheres))
        postgres.index()
        yield postgres


@pytest.mark.parametrize(
    ("where", "index"), [("x = 17", "integer_subs_values"), ("b = box(0.5, 0.5, 0.51, 0.51)", "box_subs_boxes")]
)
def test_an_index_serves_the_workloads_of_the_paper(database: RelationalPostgres, where: str, index: str) -> None:
    database.publish([_constraint("p", where)])
    assert index in database.explain()


def test_a_batch_takes_the_place_of_the_one_before(database: RelationalPostgres) -> None:
    database.publish([_constraint("p1", "x = 17"), _constraint("p2", "x BETWEEN 4998 AND 9000")])
    assert sorted(database.match()) == [("p1", "s17"), ("p2", "s4998"), ("p2", "s4999")]
    database.publish([_constraint("p3", "x < 1")])
    assert database.match() == [("p3", "s0")]
    database.publish([])
    assert database.match() == []
