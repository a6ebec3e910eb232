"""Predicates after normalization: a column, one of five comparisons, and constants given by their place in the text."""

from __future__ import annotations

from typing import Literal, NamedTuple

from sqlglot import exp

from tidings.model.catalog import Column
from tidings.sql.shape import ColumnRef, MovementForm, MovementKind
from tidings.sql.silence import SilencePredicate

Comparison = Literal["=", "<", "<=", ">", ">="]
OperandKind = Literal["number", "string", "date", "timestamp", "boolean"]


class Operand(NamedTuple):
    """A constant of the query: the literal that starts at `start` with its sign, or a TRUE or FALSE (no literal)."""

    kind: OperandKind
    start: int
    negative: bool
    boolean: bool
    node: exp.Expr


class Predicate(NamedTuple):
    """`column comparison operand`; IN is an `=` with several operands, of which one must hold."""

    ref: ColumnRef
    column: Column
    comparison: Comparison
    operands: tuple[Operand, ...]


class MovementPredicate(NamedTuple):
    """`node` is what stands in the text for the whole of it; `silence` its other side where it has one."""

    ref: ColumnRef
    kind: MovementKind
    form: MovementForm
    operands: tuple[Operand, ...]
    node: exp.Expr
    silence: SilencePredicate | None = None
