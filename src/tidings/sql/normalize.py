"""The WHERE clause as a normal condition, by a short sequence of rewriting rules.

Each rule takes one condition of the tree and returns its replacement. Rules run in the order of RULES, each over the whole
output of the one before. The result must consist of comparisons of a column with constants.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tidings.model.catalog import Column
from tidings.model.types import ColumnType
from tidings.sql.geometry import hint_for, read_geometry
from tidings.sql.movements.movement import is_movement, names_movement, read_movement, read_movement_or_silence
from tidings.sql.movements.silence import is_silence, lone_silence
from tidings.sql.operands import read_operand
from tidings.sql.predicate import AllOf, AnyOf, Comparison, Condition, MovementPredicate, Operand, Predicate
from tidings.sql.refusals import CONDITIONS, MOVEMENT_OR_SILENCE, NULL_HINT, PREFIX_HINT
from tidings.sql.rules.between import split_between
from tidings.sql.rules.booleans import spell_out_booleans
from tidings.sql.rules.connectives import split_connectives
from tidings.sql.rules.negations import absorb_negations
from tidings.sql.rules.sides import put_column_first
from tidings.sql.rules.signed import Junction, Rule, Signed, Tree, rewritten
from tidings.sql.scope import Scope, only
from tidings.sql.shape import ColumnRef

RULES: tuple[Rule, ...] = (split_connectives, spell_out_booleans, split_between, put_column_first, absorb_negations)

IN_VALUES_MAX = 1_000

_COMPARISONS: dict[type[exp.Expr], Comparison] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def normalize(condition: exp.Expr, scope: Scope) -> list[Tree]:
    """Applies the rules to a condition. Returns conditions that are joined by AND."""
    tree: Tree = Signed(condition)
    for rule in RULES:
        tree = rewritten(tree, rule, scope)
    return list(tree.parts) if isinstance(tree, Junction) and tree.is_conjunction else [tree]


def read_conditions(trees: list[Tree], scope: Scope) -> tuple[AllOf, MovementPredicate | None]:
    """Reads normal trees, joined by AND. Returns their condition, and apart from it the movement predicate, if there is one."""
    conditions: list[Condition] = []
    movement: MovementPredicate | None = None
    for tree in trees:
        found = _read_movement(tree, scope) if isinstance(tree, Signed) else None
        if found is None:
            condition = _read(tree, scope)
            conditions += condition.parts if isinstance(condition, AllOf) else (condition,)
            continue
        if movement is not None:
            hint = "use one of them in each subscription"
            raise scope.source.error("there is more than one movement predicate", found.node, hint)
        movement = found
    return AllOf(tuple(conditions)), movement


def _read_movement(condition: Signed, scope: Scope) -> MovementPredicate | None:
    node, is_negated = condition
    if not isinstance(node, exp.Or) and not is_movement(node):
        return None
    if is_negated:
        hint = f"a movement stands for itself: write {MOVEMENT_OR_SILENCE} or a part of it"
        raise scope.source.error("NOT is not supported on a movement", node, hint)
    return read_movement_or_silence(node, scope) if isinstance(node, exp.Or) else read_movement(node, scope)


def _read(tree: Tree, scope: Scope) -> Condition:
    if isinstance(tree, Junction):
        parts = tuple(_read(part, scope) for part in tree.parts)
        return AllOf(parts) if tree.is_conjunction else AnyOf(parts)
    return read_geometry(*tree, scope) or _read_predicate(tree, scope)


def _read_predicate(condition: Signed, scope: Scope) -> Predicate:
    node, is_negated = condition
    if is_silence(node):
        raise lone_silence(node, scope)
    if names_movement(node):
        hint = f"join it with other conditions by AND; the only OR is {MOVEMENT_OR_SILENCE}"
        raise scope.source.error("a movement stands where a condition on a row is needed", node, hint)
    if isinstance(node, exp.In):
        return _read_in(node, is_negated, scope)
    if isinstance(node, exp.Is):
        return _read_is(node, is_negated, scope)
    if isinstance(node, exp.Like):
        return _read_like(node, is_negated, scope)
    if isinstance(node, exp.Boolean):
        types = (TokenType.TRUE, TokenType.FALSE)
        raise scope.source.error_at_type("a constant is no condition", types, CONDITIONS)
    if isinstance(node, exp.Null):
        raise scope.source.error_at_type("NULL is no condition", (TokenType.NULL,), NULL_HINT)
    comparison = _COMPARISONS.get(type(node))
    if comparison is None or is_negated:
        raise scope.source.error("this condition is not supported", node, CONDITIONS)
    ref, column = _read_column(node.this, node, scope)
    operand = read_operand(node.expression, column, scope)
    if comparison == "<>" and column.type is ColumnType.BOOLEAN:
        comparison, operand = "=", operand._replace(boolean=not operand.boolean)
    return Predicate(ref, column, comparison, (operand,), node)


def _read_in(node: exp.In, is_negated: bool, scope: Scope) -> Predicate:
    if node.args.get("query") is not None:
        raise scope.source.error("subqueries are not supported", node, "give IN a list of constants, or use a JOIN")
    only(scope.source, node, {"this", "expressions"}, "give IN a list of constants")
    ref, column = _read_column(node.this, node, scope)
    values = node.expressions
    if not values or len(values) > IN_VALUES_MAX:
        raise scope.source.error(f"IN has {len(values):,} values", node.this, f"give it 1 to {IN_VALUES_MAX:,}")
    operands = tuple(read_operand(value, column, scope) for value in values)
    return Predicate(ref, column, "<>" if is_negated else "=", operands, node)


def _read_is(node: exp.Is, is_negated: bool, scope: Scope) -> Predicate:
    if not isinstance(node.expression, exp.Null):
        raise scope.source.error("IS is supported with NULL only", node, "write column = TRUE, or column IS NULL")
    ref, column = _read_column(node.this, node, scope)
    if scope.has_constraints:
        raise scope.source.error("constraints know no NULL", node, "leave out attributes that do not matter")
    return Predicate(ref, column, "is not null" if is_negated else "is null", (), node)


def _read_like(node: exp.Like, is_negated: bool, scope: Scope) -> Predicate:
    only(scope.source, node, {"this", "expression", "negate"}, PREFIX_HINT)
    ref, column = _read_column(node.this, node, scope)
    if column.type is not ColumnType.TEXT:
        problem = f"column {column.name!r} is {column.type.value} and has no pattern"
        raise scope.source.error(problem, node, "use LIKE on a TEXT column")
    operand: Operand = read_operand(node.expression, column, scope)
    is_negated ^= bool(node.args.get("negate"))
    return Predicate(ref, column, "not like" if is_negated else "like", (operand,), node)


def _read_column(node: exp.Expr, whole: exp.Expr, scope: Scope) -> tuple[ColumnRef, Column]:
    """The column on a predicate's left side, if it is one that can be compared."""
    inner = node.unnest()
    if isinstance(inner, exp.Func):
        known = "moved, moved_percent, moved_ratio and silent_for"
        if scope.has_constraints:
            known = "overlaps, contains and within, for columns of type BOX and POINT"
        hint = f"compare the column itself; the only functions are {known}"
        raise scope.source.error("functions are not supported", inner, hint)
    if isinstance(inner, exp.Predicate):
        raise scope.source.error("a condition is compared", inner, "join comparisons by AND and OR")
    if isinstance(inner, exp.Binary | exp.Neg):
        raise scope.source.error("arithmetic is not supported", inner, "compare the column itself with a constant")
    if isinstance(inner, exp.Query):
        raise scope.source.error("subqueries are not supported", inner, "use a JOIN")
    if not isinstance(inner, exp.Column):
        raise scope.source.error("this condition does not name a column", whole, CONDITIONS)
    ref, column = scope.resolve(inner)
    if not column.type.is_comparable:
        hint = hint_for(column) if column.type.is_geometric else "use columns of other types in predicates"
        raise scope.source.error(f"column {column.name!r} is {column.type.value} and cannot be compared", inner, hint)
    return ref, column
