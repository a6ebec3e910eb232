"""What the constraints of generated offers mean, by brute force: disjuncts of sets by column, and whether two of them meet.

Strict: a literal of another type than its column's, a column twice in a disjunct (ranges excepted), an empty set or box
corners in the wrong order are assertion errors.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Tokenizer, TokenType

Columns = dict[str, str]
"""Column -> type."""
LOW, HIGH = (0, 0), (2, 0)
"""Ends of half-lines; other ends are (1, value)."""


class _Geometric(Dialect):
    """Reads `overlaps(..)` as a function, which is an operator without parentheses elsewhere."""

    class Tokenizer(Tokenizer):
        KEYWORDS = {word: kind for word, kind in Tokenizer.KEYWORDS.items() if kind is not TokenType.OVERLAPS}  # noqa: RUF012


@dataclass(frozen=True)
class Ordered:
    """A union of half-open intervals."""

    intervals: tuple[tuple[Any, Any], ...]

    def meets(self, other: Ordered) -> bool:
        return any(max(a[0], b[0]) < min(a[1], b[1]) for a in self.intervals for b in other.intervals)

    def both(self, other: Ordered) -> Ordered:
        pairs = product(self.intervals, other.intervals)
        return Ordered(tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in pairs if max(a[0], b[0]) < min(a[1], b[1])))


@dataclass(frozen=True)
class Geometric:
    """`op` is =, overlaps, contains or within. A point is a box without extent."""

    op: str
    box: tuple[float, float, float, float]

    def meets(self, other: Geometric) -> bool:
        """For areas `self` is a publication `area = box(..)`."""
        a, b = self.box, other.box
        if other.op == "contains":
            return a[0] <= b[0] and a[1] <= b[1] and a[2] >= b[2] and a[3] >= b[3]
        if other.op == "within" and self.op == "=":
            return b[0] <= a[0] and b[1] <= a[1] and b[2] >= a[2] and b[3] >= a[3]
        return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


Disjunct = dict[str, Any]


def columns_of(catalog_sql: str) -> Columns:
    inside = catalog_sql[catalog_sql.index("(") + 1 : catalog_sql.index(")")]
    return dict(column.split(" ") for column in inside.split(", "))  # type: ignore[misc]


def condition_of(sql: str) -> str:
    """The condition of a subscription, without its ranking."""
    return sql.partition(" WHERE ")[2].partition(" ORDER BY ")[0]


def disjuncts(where: str, columns: Columns) -> list[Disjunct]:
    found = _disjuncts(sqlglot.parse_one(where, read=_Geometric), columns)
    for disjunct in found:
        assert all(one.intervals for one in disjunct.values() if isinstance(one, Ordered)), where
    return found


def matches(publication: list[Disjunct], subscription: list[Disjunct]) -> bool:
    """Every column of the publication is constrained by the subscription, and the sets meet."""
    return any(
        all(column in s and own.meets(s[column]) for column, own in p.items())
        for p in publication
        for s in subscription
    )


def _disjuncts(tree: Any, columns: Columns) -> list[Disjunct]:
    if isinstance(tree, exp.Paren):
        return _disjuncts(tree.this, columns)
    if isinstance(tree, exp.Or):
        return _disjuncts(tree.this, columns) + _disjuncts(tree.expression, columns)
    if isinstance(tree, exp.And):
        pairs = product(_disjuncts(tree.this, columns), _disjuncts(tree.expression, columns))
        return [_joined(a, b) for a, b in pairs]
    if isinstance(tree, exp.Anonymous | exp.Contains) or columns[tree.this.name] in ("POINT", "BOX"):
        return [_geometric(tree, columns)]
    column = tree.this.name
    return [{column: _ordered(tree, columns[column])}]


def _joined(a: Disjunct, b: Disjunct) -> Disjunct:
    """Only `>= ..` and `< ..` come twice for a column."""
    both = a.keys() & b.keys()
    assert all(len(one[name].intervals) == 1 for name in both for one in (a, b))
    return {**a, **b, **{name: a[name].both(b[name]) for name in both}}


def _ordered(tree: Any, kind: str) -> Ordered:
    if isinstance(tree, exp.Between):
        return Ordered(((_end(tree.args["low"], kind), _after(tree.args["high"], kind)),))
    if isinstance(tree, exp.In):
        values = tree.expressions
        assert len({value.sql() for value in values}) == len(values)
        return Ordered(tuple((_end(value, kind), _after(value, kind)) for value in values))
    end, after = _end(tree.expression, kind), _after(tree.expression, kind)
    if isinstance(tree, exp.Like):
        prefix = tree.expression.name
        assert kind == "TEXT" and len(prefix) > 1 and prefix.find("%") == len(prefix) - 1
        return Ordered((((1, prefix[:-1]), (1, prefix[:-1] + "\U0010ffff")),))
    by_operator = {
        exp.EQ: ((end, after),),
        exp.NEQ: ((LOW, end), (after, HIGH)),
        exp.LT: ((LOW, end),),
        exp.LTE: ((LOW, after),),
        exp.GT: ((after, HIGH),),
        exp.GTE: ((end, HIGH),),
    }
    return Ordered(by_operator[type(tree)])


def _end(literal: Any, kind: str) -> Any:
    return 1, _value(literal.sql(), kind)


def _after(literal: Any, kind: str) -> Any:
    value = _value(literal.sql(), kind)
    if kind == "TEXT":
        return 1, value + "\0"
    return 1, math.nextafter(value, math.inf) if kind == "DOUBLE" else value + 1


@cache
def _value(literal: str, kind: str) -> Any:
    """The value of a literal as a number or text; an error where it is of another type."""
    if kind == "BOOLEAN":
        return ("FALSE", "TRUE").index(literal)
    is_quoted = literal.startswith("'")
    assert is_quoted == (kind in ("TEXT", "DATE")), (literal, kind)
    if kind == "TEXT":
        return literal[1:-1]
    if kind == "DATE":
        return dt.date.fromisoformat(literal[1:-1]).toordinal()
    assert ("." in literal) == (kind == "DOUBLE") and "e" not in literal.lower(), (literal, kind)
    return float(literal) if kind == "DOUBLE" else int(literal)


def _geometric(tree: Any, columns: Columns) -> Disjunct:
    if isinstance(tree, exp.EQ):
        op, column, shape = "=", tree.this, tree.expression
    elif isinstance(tree, exp.Contains):
        op, column, shape = "contains", tree.this, tree.expression
    else:
        op, (column, shape) = tree.this, tree.expressions
    numbers = [_value(number.sql(), "DOUBLE") for number in shape.expressions]
    is_point = columns[column.name] == "POINT"
    assert op in (("=", "within") if is_point else ("=", "overlaps", "contains", "within"))
    if is_point and op == "=":
        assert shape.this == "point" and len(numbers) == 2
        numbers *= 2
    else:
        x1, y1, x2, y2 = numbers
        assert shape.this == "box" and x1 < x2 and y1 < y2
    return {column.name: Geometric(op, tuple(numbers))}  # type: ignore[arg-type]
