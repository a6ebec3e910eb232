"""`5 < x` becomes `x > 5`: the column (or movement function) stands on the left."""

from __future__ import annotations

from sqlglot import exp

from tidings.sql.rules.signed import Signed, Tree
from tidings.sql.scope import Scope

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def put_column_first(condition: Signed, scope: Scope) -> Tree:
    return Signed(column_first(condition.node), condition.is_negated)


def column_first(node: exp.Expr) -> exp.Expr:
    mirrored = _MIRRORED.get(type(node))
    if mirrored is None or _names_column(node.this) or not _names_column(node.expression):
        return node
    return mirrored(this=node.expression, expression=node.this)


def _names_column(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Column | exp.Anonymous)
