"""Constants in predicates: which literal of the text each is, and whether its kind fits the column's type."""

from __future__ import annotations

from sqlglot import exp

from tidings.model.catalog import Column
from tidings.model.types import ColumnType
from tidings.sql.predicate import Operand, OperandKind
from tidings.sql.refusals import NULL_HINT
from tidings.sql.scope import Scope

_TEMPORAL: dict[exp.DType, OperandKind] = {exp.DType.DATE: "date", exp.DType.TIMESTAMP: "timestamp"}

# What each type is compared with: the kinds of literal, and how to say so.
_FITTING: dict[ColumnType, tuple[tuple[OperandKind, ...], str]] = {
    ColumnType.BIGINT: (("number",), "compare it with a number"),
    ColumnType.INT: (("number",), "compare it with a number"),
    ColumnType.DOUBLE: (("number",), "compare it with a number"),
    ColumnType.TEXT: (("string",), "compare it with a text in single quotes"),
    ColumnType.BOOLEAN: (("boolean",), "compare it with TRUE or FALSE"),
    ColumnType.DATE: (("string", "date", "timestamp"), "compare it with a date such as '2024-12-31'"),
    ColumnType.TIMESTAMP: (("string", "date", "timestamp"), "compare it with a time such as '2024-12-31 23:59:59'"),
}


def read_operand(node: exp.Expr, column: Column, scope: Scope) -> Operand:
    """The constant that `column` is compared with; SqlError for anything but a fitting literal."""
    operand = _read(node, scope)
    kinds, hint = _FITTING[column.type]
    if operand.kind not in kinds:
        problem = f"column {column.name!r} is {column.type.value} and cannot be compared with a {operand.kind}"
        raise scope.source.error(problem, node, hint)
    if scope.has_constraints and column.type in (ColumnType.BIGINT, ColumnType.INT):
        return operand._replace(kind="whole")
    return operand


def _read(node: exp.Expr, scope: Scope) -> Operand:
    negative = signed = False
    inner = node
    while isinstance(inner, exp.Paren | exp.Neg):
        if isinstance(inner, exp.Neg):
            negative, signed = not negative, True
        inner = inner.this
    kind: OperandKind
    if isinstance(inner, exp.Boolean) and not signed:
        return Operand("boolean", -1, False, bool(inner.this), node)
    if isinstance(inner, exp.Cast) and not signed and inner.to.this in _TEMPORAL and not inner.to.expressions:
        kind, inner = _TEMPORAL[inner.to.this], inner.this
        if not isinstance(inner, exp.Literal) or not inner.is_string:
            raise scope.source.error("this is not a constant", node, "write DATE '2024-12-31'")
    elif isinstance(inner, exp.Literal):
        kind = "string" if inner.is_string else "number"
    else:
        raise _not_constant(inner, scope)
    start = inner._meta.get("start", -1) if inner._meta else -1
    if start not in scope.source.literal_spans or (signed and kind != "number"):
        raise scope.source.error("this is not a constant", node, "write a plain literal")
    return Operand(kind, start, negative, False, node)


def _not_constant(node: exp.Expr, scope: Scope) -> Exception:
    if isinstance(node, exp.Null):
        return scope.source.error("NULL cannot be compared", node.parent or node, NULL_HINT)
    if isinstance(node, exp.Column):
        if isinstance(node.this, exp.Identifier) and node.this.args.get("quoted"):
            return scope.source.error("double quotes name a column", node.this, "write text in single quotes")
        if node.name.lower() in ("nan", "inf", "infinity"):
            return scope.source.error("a number must be finite", node, "compare with numbers, or leave the end open")
        hint = "compare columns with each other in JOIN .. ON only"
        return scope.source.error("a column is compared with a column", node, hint)
    if isinstance(node, exp.Func):
        return scope.source.error("functions are not supported", node, "write the value itself")
    if isinstance(node, exp.Query | exp.Subquery):
        return scope.source.error("subqueries are not supported", node, "use a JOIN")
    if isinstance(node, exp.Binary):
        return scope.source.error("arithmetic is not supported", node, "write the value itself")
    return scope.source.error("this is not a constant", node, "write the value itself")
