"""Movement predicates: `moved(column) >= r` and its relatives, alone or as `(movement OR silent_for(column) >= T)`.

A movement is no condition on a row, so it may only be joined to other conditions by AND; an OR with a movement is read here.
"""

from __future__ import annotations

from typing import get_args

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tidings.model.errors import SqlError
from tidings.sql.movements.silence import is_silence, is_silent_for, read_silence
from tidings.sql.operands import read_operand
from tidings.sql.predicate import MovementPredicate
from tidings.sql.refusals import MOVEMENT_OR_SILENCE
from tidings.sql.rules.sides import column_first
from tidings.sql.scope import Scope
from tidings.sql.shape import MovementForm, MovementKind

_MOVEMENTS: dict[str, MovementKind] = {kind: kind for kind in get_args(MovementKind)}


def is_moved(node: object) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _MOVEMENTS


def names_movement(node: exp.Expr) -> bool:
    """Whether the node contains a call of a movement function or of silent_for."""
    return any(is_moved(call) or is_silent_for(call) for call in node.find_all(exp.Anonymous))


def is_movement(node: exp.Expr) -> bool:
    """Whether the node compares a movement function on its left, validly or not."""
    return is_moved(node.this)


def read_movement(node: exp.Expr, scope: Scope) -> MovementPredicate:
    """Reads a condition for which `is_movement` holds; SqlError if it is not valid."""
    call = node.this
    kind = _MOVEMENTS[call.name.lower()]
    usage = f"write {kind}(column) >= number or {kind}(column) BETWEEN low AND high"
    arguments = call.expressions
    if len(arguments) != 1 or not isinstance(arguments[0], exp.Column):
        raise scope.source.error(f"{kind} takes one column", call, usage)
    ref, column = scope.resolve(arguments[0])
    if column.type.value not in ("BIGINT", "INT", "DOUBLE"):
        problem = f"column {column.name!r} is {column.type.value} and cannot move"
        raise scope.source.error(problem, arguments[0], "use a column of numbers")
    form: MovementForm
    if isinstance(node, exp.GTE):
        form, bounds = "at_least", [node.expression]
    elif isinstance(node, exp.Between) and not node.args.get("symmetric"):
        form, bounds = "between", [node.args["low"], node.args["high"]]
    else:
        raise scope.source.error("this movement predicate is not supported", node, usage)
    operands = tuple(read_operand(bound, column, scope) for bound in bounds)
    for operand in operands:
        if operand.kind != "number":
            raise scope.source.error(f"{kind} is compared with a number", operand.node, usage)
    return MovementPredicate(ref, kind, form, operands, call)


def read_movement_or_silence(node: exp.Or, scope: Scope) -> MovementPredicate:
    """Reads `(movement OR silent_for)`; SqlError for any other disjunction."""
    if not any(is_silent_for(call) for call in node.find_all(exp.Anonymous)):
        hint = f"use several subscriptions; the only OR with a movement is {MOVEMENT_OR_SILENCE}"
        raise _error_at_or("OR is not supported beside a movement", node, scope, hint)
    sides = [node.this, node.expression]
    if any(isinstance(side.unnest(), exp.Or) for side in sides):
        raise _error_at_or("OR joins more than two conditions", node, scope)
    # AND binds tighter: without parentheses the OR is about everything that AND joins on its sides.
    if not isinstance(node.parent, exp.Paren) or any(isinstance(side, exp.And) for side in sides):
        hint = f"put parentheses around it: write .. AND {MOVEMENT_OR_SILENCE}"
        raise _error_at_or("the OR needs parentheses of its own", node, scope, hint)
    first, second = (column_first(side.unnest()) for side in sides)
    if is_silence(first) and is_silence(second):
        raise scope.source.error("there is more than one silent_for", second, f"write {MOVEMENT_OR_SILENCE}")
    if is_silence(first):
        first, second = second, first
    if not is_silence(second) or not is_movement(first):
        raise _error_at_or("OR joins something else than a movement and silent_for", node, scope)
    silence = read_silence(second, scope)
    return read_movement(first, scope)._replace(silence=silence, node=node)


def _error_at_or(problem: str, node: exp.Or, scope: Scope, hint: str = f"write {MOVEMENT_OR_SILENCE}") -> SqlError:
    return scope.source.error_between(problem, node.this, node.expression, TokenType.OR, hint)
