"""What constraints mean, checked by trying out values: a pair matches iff some value satisfies both sides on every attribute.

The values that are tried include every constant of both sides and its neighbours, so that an interval which is not empty has
one of them. Conditions are evaluated here, from the lists that their texts were made of.
"""

import datetime as dt
import math
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.families.offers.constraint import boxes_of, pack, packed, unpack
from tidings.families.offers.matching import attained, matching_disjuncts
from tidings.model.codes import code_of
from tidings.model.errors import SqlError
from tidings.sql import parse_catalog
from tidings.sql.conditions import compile_condition

CATALOG = parse_catalog(
    "CREATE TABLE market (n BIGINT, x DOUBLE, t TEXT, d DATE, b BOOLEAN, area BOX, spot POINT) WITH (rows = 'constraints');"
)
TABLE = CATALOG.table("market")
DAYS = [dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
CONSTANTS = {
    "n": [0, 1, 2, 3],
    "x": [0.0, 1.0, math.nextafter(1.0, 2.0), 2.5],
    "t": ["", "a", "ab", "b", "abcdefgh", "abcdefghi"],
    "d": DAYS,
    "b": [False, True],
}
CORNERS = [0.0, 1.0, 2.0, 3.0]


def _tried(column):
    values = CONSTANTS[column]
    if column == "n":
        return range(-2, 6)
    if column == "x":
        return [y for x in values for y in (math.nextafter(x, -9.0), x, math.nextafter(x, 9.0), x - 1, x + 1)]
    if column == "t":
        return [*values, *(t + "\0" for t in values), *(t + "\0\0" for t in values), "aa", "abcdefg", "c"]
    if column == "d":
        return [day + dt.timedelta(days=step) for day in values for step in (-1, 0, 1)]
    return values


GRID = [i / 2 for i in range(-1, 9)]
BOXES = [
    (x1, y1, x2, y2) for (x1, x2), (y1, y2) in product([(a, b) for a, b in product(GRID, GRID) if a <= b], repeat=2)
]
POINTS = list(product(GRID, GRID))


def _literal(value):
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return f"'{value}'" if isinstance(value, str | dt.date) else repr(value)


OPERATORS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@st.composite
def predicates(draw, column):
    """(text, function from a value to whether it satisfies it, is a range), on one column."""
    if column in ("area", "spot"):
        pair = st.lists(st.sampled_from(CORNERS), min_size=2, max_size=2, unique=True)
        (x1, x2), (y1, y2) = (sorted(draw(pair)) for _ in "xy")
        box = f"box({x1}, {y1}, {x2}, {y2})"
        if column == "spot":
            if draw(st.booleans()):
                return f"spot = point({x1}, {y1})", lambda p: p == (x1, y1)
            return f"within(spot, {box})", lambda p: x1 <= p[0] <= x2 and y1 <= p[1] <= y2
        relation = draw(st.sampled_from(["=", "overlaps", "contains", "within"]))
        test = {
            "=": lambda b: b == (x1, y1, x2, y2),
            "overlaps": lambda b: b[0] <= x2 and b[2] >= x1 and b[1] <= y2 and b[3] >= y1,
            "contains": lambda b: b[0] <= x1 and b[2] >= x2 and b[1] <= y1 and b[3] >= y2,
            "within": lambda b: b[0] >= x1 and b[2] <= x2 and b[1] >= y1 and b[3] <= y2,
        }[relation]
        return (f"area = {box}" if relation == "=" else f"{relation}(area, {box})"), test
    value = draw(st.sampled_from(CONSTANTS[column]))
    kind = draw(st.sampled_from([*OPERATORS, "between", "in", "like"]))
    if column == "b":
        kind = draw(st.sampled_from(["=", "<>"]))
    if kind == "between":
        low, high = sorted((value, draw(st.sampled_from(CONSTANTS[column]))))
        return f"{column} BETWEEN {_literal(low)} AND {_literal(high)}", lambda v: low <= v <= high
    if kind == "in":
        values = draw(st.lists(st.sampled_from(CONSTANTS[column]), min_size=1, max_size=3))
        return f"{column} IN ({', '.join(map(_literal, values))})", lambda v: v in values
    if kind == "like":
        if column == "t":
            return f"t LIKE '{value}%'", lambda v: v.startswith(value)
        kind = "="
    return f"{column} {kind} {_literal(value)}", lambda v: OPERATORS[kind](v, value)


@st.composite
def conditions(draw):
    """(text, disjuncts as column -> list of tests)."""
    texts, disjuncts = [], []
    for _ in range(draw(st.integers(1, 2))):
        columns = draw(st.lists(st.sampled_from([*CONSTANTS, "area", "spot"]), min_size=1, max_size=2, unique=True))
        parts, tests = [], {}
        for column in columns:
            for text, test in draw(st.lists(predicates(column), min_size=1, max_size=2)):
                parts.append(text)
                tests.setdefault(column, []).append(test)
        texts.append(" AND ".join(parts))
        disjuncts.append(tests)
    return " OR ".join(f"({text})" for text in texts), disjuncts


def tried(column):
    return BOXES if column == "area" else POINTS if column == "spot" else _tried(column)


def is_possible(disjunct, column):
    return any(all(test(value) for test in disjunct[column]) for value in tried(column))


def meets(publication, subscription):
    return all(
        column in subscription
        and any(all(test(value) for test in (*tests, *subscription[column])) for value in tried(column))
        for column, tests in publication.items()
    )


def compiled(text):
    statement = compile_condition(CATALOG, TABLE, text)
    return boxes_of(statement.shape, statement.constants, TABLE)


@settings(max_examples=80, deadline=None)
@given(publication=conditions(), subscription=conditions())
def test_constraints_match_iff_values_can_be_found(publication, subscription):
    sides = []
    for text, disjuncts in (publication, subscription):
        left = [each for each in disjuncts if all(is_possible(each, column) for column in each)]
        try:
            boxes = compiled(text)
        except SqlError as error:
            assert not left, f"{text} is refused: {error}"
            return
        assert left, f"{text} is accepted, though nothing satisfies it"
        sides.append((boxes, left))
    (ours, left), (theirs, right) = sides
    assert any(True for _ in matching_disjuncts(ours, theirs)) == any(meets(a, b) for a in left for b in right)
    is_classic_match = any(meets(b, a) for a in left for b in right)
    assert any(True for _ in matching_disjuncts(ours, theirs, is_classic=True)) == is_classic_match
    assert unpack(pack(ours)) == ours
    statement = compile_condition(CATALOG, TABLE, publication[0])
    assert packed(statement.shape, statement.constants, TABLE) == (pack(ours), len(ours))


@settings(max_examples=40, deadline=None)
@given(publication=conditions(), subscription=conditions(), is_highest=st.booleans())
def test_the_best_value_is_one_that_both_allow(publication, subscription, is_highest):
    try:
        ours, theirs = compiled(publication[0]), compiled(subscription[0])
    except SqlError:
        return
    best = attained(ours, theirs, TABLE.axis_numbers["n"], is_highest=is_highest)
    allowed = [
        value
        for a in publication[1]
        for b in subscription[1]
        if all(is_possible(each, column) for each in (a, b) for column in each) and meets(a, b)
        for value in (_tried("n") if "n" in a or "n" in b else [None])
        if value is None or all(test(value) for test in (*a.get("n", ()), *b.get("n", ())))
    ]
    if not allowed:
        assert best is None
    elif None not in allowed:
        found = max(allowed) if is_highest else min(allowed)
        # Beyond the values that were tried there is no constant: the set has no end there.
        assert best == found or (best < -2 or best > 5)


def test_dates_are_apart_by_days():
    boxes = compiled("d > '2024-02-28'")
    assert boxes[0].lo == (code_of(TABLE.axis("d").type, dt.date(2024, 2, 29)),)
