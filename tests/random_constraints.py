"""Random constraints over attributes of all types, with few constants, so that many of them touch or meet at their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from tidings.families.offers.constraint import Box, boxes_of
from tidings.families.offers.matching import matching_disjuncts
from tidings.model.catalog import Catalog, Table
from tidings.model.errors import SqlError
from tidings.sql import parse_catalog
from tidings.sql.conditions import compile_condition

ATTRIBUTES = (
    "topic TEXT, lot BIGINT, grade INT, price DOUBLE, fresh BOOLEAN, day DATE, at TIMESTAMP, spot POINT, area BOX"
)
CATALOG_SQL = (
    f"CREATE TABLE market ({ATTRIBUTES}) WITH (rows = 'constraints');"
    f"CREATE TABLE classic ({ATTRIBUTES}) WITH (rows = 'constraints', matching = 'classic');"
)

CONSTANTS = {
    "topic": ["''", "'a'", "'a\0'", "'ab'", "'abcdefghi'", "'abcdefghij'", "'b'", "'é'", "'\U0001f600'", "'o''k'"],
    "lot": ["-9223372036854775808", "-1", "0", "1", "2", "9007199254740993", "9223372036854775807"],
    "grade": ["-2147483648", "0", "1", "2", "2147483647"],
    "price": ["-1e308", "-5e-324", "-0.0", "0", "5e-324", "0.1", "1", "1.0000000000000002", "1.7976931348623157e308"],
    "fresh": ["TRUE", "FALSE"],
    "day": ["DATE '1969-12-31'", "DATE '2024-02-28'", "DATE '2024-02-29'"],
    "at": ["TIMESTAMP '2024-02-29 00:00:00'", "TIMESTAMP '2024-02-29 00:00:00.000001'", "TIMESTAMP '1969-12-31 23:00'"],
}
# Some differ by less than PostgreSQL's operators tell apart.
COORDINATES = ["-1", "0", "0.0000001", "0.5", "1", "1.0000001", "2"]


def catalog() -> Catalog:
    return parse_catalog(CATALOG_SQL)


def _ordered(random: Random, name: str) -> str:
    constants = CONSTANTS[name]
    first, second = random.choice(constants), random.choice(constants)
    forms = [
        *(f"{name} {comparison} {first}" for comparison in ("=", "=", "<>", "<", "<=", ">", ">=")),
        f"{name} BETWEEN {first} AND {second}",
        *(
            f"{name} {lower} {first} AND {name} {upper} {second}"
            for lower, upper in ((">", "<"), (">", "<="), (">=", "<"))
        ),
        f"{name} IN ({first}, {second})",
        f"{name} NOT IN ({first}, {second})",
    ]
    if name == "topic":
        forms += [f"topic LIKE '{prefix}%'" for prefix in ("", "a", "ab", "abcdefghi")] + ["topic NOT LIKE 'ab%'"]
    return random.choice(forms)


def _box(random: Random) -> str:
    x1, x2, y1, y2 = (random.randrange(len(COORDINATES)) for _ in range(4))
    ends = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    return f"box({', '.join(COORDINATES[end] for end in ends)})"


def _point(random: Random, name: str) -> str:
    if random.random() < 0.5:
        return f"{name} = point({random.choice(COORDINATES)}, {random.choice(COORDINATES)})"
    return f"within({name}, {_box(random)})"


def _area(random: Random, name: str) -> str:
    relation = random.choice(("=", "within", "overlaps", "contains"))
    return f"{name} = {_box(random)}" if relation == "=" else f"{relation}({name}, {_box(random)})"


_GEOMETRIC: dict[str, Callable[[Random, str], str]] = {"spot": _point, "area": _area}


def predicate(random: Random, name: str) -> str:
    """A condition on one attribute."""
    draw = _GEOMETRIC.get(name)
    if draw is None:
        return _ordered(random, name)
    parts = [draw(random, name) for _ in range(random.choice((1, 1, 1, 2, 3)))]
    return " AND ".join(parts)


def conjunction(random: Random, names: list[str]) -> str:
    parts = []
    for name in names:
        part = predicate(random, name)
        is_negated = name not in _GEOMETRIC and random.random() < 0.1
        parts.append(f"NOT ({part})" if is_negated else part)
    return " AND ".join(parts)


def constraint(random: Random, names: list[str] | None = None) -> str:
    """A condition on a few attributes of those named; nothing may satisfy it."""
    names = names or [*CONSTANTS, *_GEOMETRIC]
    parts = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        parts.append(conjunction(random, random.sample(names, min(len(names), random.choice((1, 1, 2, 3))))))
    return parts[0] if len(parts) == 1 else " OR ".join(f"({part})" for part in parts)


def boxes(where: str, table: Table, catalog: Catalog) -> tuple[Box, ...]:
    statement = compile_condition(catalog, table, where)
    return boxes_of(statement.shape, statement.constants, table)


def constraints(
    random: Random, count: int, table: Table, catalog: Catalog, names: list[str] | None = None
) -> dict[str, str]:
    """Conditions that something satisfies, by id."""
    found: dict[str, str] = {}
    while len(found) < count:
        where = constraint(random, names)
        try:
            boxes(where, table, catalog)
        except SqlError:
            continue
        found[f"c{len(found)}"] = where
    return found


def brute_force(
    publications: dict[str, tuple[Box, ...]], subscriptions: dict[str, tuple[Box, ...]], *, is_classic: bool
) -> set[tuple[str, str]]:
    """The matching pairs by their definition."""
    return set(_pairs(publications, subscriptions, is_classic))


def _pairs(
    publications: dict[str, tuple[Box, ...]], subscriptions: dict[str, tuple[Box, ...]], is_classic: bool
) -> Iterator[tuple[str, str]]:
    for p_id, ours in publications.items():
        for s_id, theirs in subscriptions.items():
            if any(True for _ in matching_disjuncts(ours, theirs, is_classic=is_classic)):
                yield p_id, s_id
