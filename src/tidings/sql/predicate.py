"""Conditions after normalization: comparisons of a column with constants, joined by AND and OR; NOT is gone.

NOT moves to the comparisons (`NOT (a < 5 OR b IS NULL)` is `a >= 5 AND b IS NOT NULL`). In three-valued logic this changes
nothing: a comparison and its opposite are both unknown where the column is null, and unknown selects no row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from sqlglot import exp

from tidings.model.catalog import Column
from tidings.sql.movements.silence import SilencePredicate
from tidings.sql.shape import ColumnRef, MovementForm, MovementKind

Comparison = Literal["=", "<", "<=", ">", ">=", "<>", "like", "not like", "is null", "is not null", "span", "apart"]
OperandKind = Literal["number", "whole", "string", "date", "timestamp", "boolean"]


class Operand(NamedTuple):
    """A constant of the query: the literal that starts at `start` with its sign, or a TRUE or FALSE (no literal)."""

    kind: OperandKind
    start: int
    negative: bool
    boolean: bool
    node: exp.Expr


class Predicate(NamedTuple):
    """`column comparison operand`; IN is an `=` with several operands, NOT IN a `<>` with several, IS NULL has none.

    Of a coordinate, `span` means from the first operand to the second, which must be greater; `apart` any value, but the
    operands must differ so, too.
    """

    ref: ColumnRef
    column: Column
    comparison: Comparison
    operands: tuple[Operand, ...]
    node: exp.Expr


class AllOf(NamedTuple):
    """Conditions joined by AND."""

    parts: tuple[Condition, ...]


class AnyOf(NamedTuple):
    """Conditions joined by OR."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Predicate | AllOf | AnyOf


def predicates_of(condition: Condition) -> Iterator[Predicate]:
    """The comparisons of a condition, from left to right."""
    if isinstance(condition, Predicate):
        yield condition
    else:
        for part in condition.parts:
            yield from predicates_of(part)


class MovementPredicate(NamedTuple):
    """A movement predicate. node: the syntax tree of all of it; silence: its `silent_for` alternative, if it has one."""

    ref: ColumnRef
    kind: MovementKind
    form: MovementForm
    operands: tuple[Operand, ...]
    node: exp.Expr
    silence: SilencePredicate | None = None
