"""The WHERE clause as a list of normal predicates, by a short sequence of rewriting rules.

Each rule takes one condition and gives the conditions that replace it; rules run in the order of RULES, each over the
whole output of the one before. What is left after them must be a comparison of a column with constants.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tidings.model.catalog import Column
from tidings.sql.movement import is_movement, read_movement, read_movement_or_silence
from tidings.sql.operands import read_operand
from tidings.sql.predicate import Comparison, MovementPredicate, Predicate
from tidings.sql.refusals import CONJUNCTION
from tidings.sql.rules.between import split_between
from tidings.sql.rules.booleans import spell_out_booleans
from tidings.sql.rules.conjunctions import split_conjunctions
from tidings.sql.rules.sides import put_column_first
from tidings.sql.scope import Scope, only
from tidings.sql.shape import ColumnRef
from tidings.sql.silence import is_silence, lone_silence

Rule = Callable[[exp.Expr, Scope], list[exp.Expr]]

RULES: tuple[Rule, ...] = (split_conjunctions, spell_out_booleans, split_between, put_column_first)

IN_VALUES_MAX = 1_000

_COMPARISONS: dict[type[exp.Expr], Comparison] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def normalize(condition: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """Apply the rules to a condition."""
    nodes = [condition]
    for rule in RULES:
        nodes = [result for node in nodes for result in rule(node, scope)]
    return nodes


def read_predicates(nodes: list[exp.Expr], scope: Scope) -> tuple[list[Predicate], MovementPredicate | None]:
    """Normal conditions as predicates, with the movement predicate, of which there is at most one, apart."""
    predicates: list[Predicate] = []
    movement: MovementPredicate | None = None
    for node in nodes:
        if isinstance(node, exp.Or):
            found = read_movement_or_silence(node, scope)
        elif is_movement(node):
            found = read_movement(node, scope)
        else:
            predicates.append(_read_predicate(node, scope))
            continue
        if movement is not None:
            hint = "use one of them in each subscription"
            raise scope.source.error("there is more than one movement predicate", node, hint)
        movement = found
    return predicates, movement


def _read_predicate(node: exp.Expr, scope: Scope) -> Predicate:
    if is_silence(node):
        raise lone_silence(node, scope)
    if isinstance(node, exp.In):
        if node.args.get("query") is not None:
            raise scope.source.error("subqueries are not supported", node, "give IN a list of constants, or use a JOIN")
        only(scope.source, node, {"this", "expressions"}, "give IN a list of constants")
        ref, column = _read_column(node.this, node, scope)
        values = node.expressions
        if not values or len(values) > IN_VALUES_MAX:
            raise scope.source.error(f"IN has {len(values):,} values", node.this, f"give it 1 to {IN_VALUES_MAX:,}")
        return Predicate(ref, column, "=", tuple(read_operand(value, column, scope) for value in values))
    if isinstance(node, exp.Boolean):
        types = (TokenType.TRUE, TokenType.FALSE)
        raise scope.source.error_at_type("a constant is no condition", types, CONJUNCTION)
    comparison = _COMPARISONS.get(type(node))
    if comparison is None:
        raise scope.source.error("this condition is not supported", node, CONJUNCTION)
    ref, column = _read_column(node.this, node, scope)
    return Predicate(ref, column, comparison, (read_operand(node.expression, column, scope),))


def _read_column(node: exp.Expr, whole: exp.Expr, scope: Scope) -> tuple[ColumnRef, Column]:
    """The column on a predicate's left side, if it is one that can be compared."""
    inner = node.unnest()
    if isinstance(inner, exp.Func):
        hint = "compare the column itself; the only functions are moved, moved_percent, moved_ratio and silent_for"
        raise scope.source.error("functions are not supported", inner, hint)
    if isinstance(inner, exp.Predicate):
        raise scope.source.error("a condition is compared", inner, "join comparisons by AND")
    if isinstance(inner, exp.Binary | exp.Neg):
        raise scope.source.error("arithmetic is not supported", inner, "compare the column itself with a constant")
    if isinstance(inner, exp.Query):
        raise scope.source.error("subqueries are not supported", inner, "use a JOIN")
    if not isinstance(inner, exp.Column):
        raise scope.source.error("this condition does not name a column", whole, CONJUNCTION)
    ref, column = scope.resolve(inner)
    if not column.type.is_comparable:
        hint = "use columns of other types in predicates"
        raise scope.source.error(f"column {column.name!r} is {column.type.value} and cannot be compared", inner, hint)
    return ref, column
