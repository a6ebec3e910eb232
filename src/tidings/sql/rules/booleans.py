"""`active` becomes `active = TRUE`, `NOT active` becomes `active = FALSE`; every other NOT is refused."""

from __future__ import annotations

from sqlglot import exp

from tidings.model.types import ColumnType
from tidings.sql.scope import Scope


def spell_out_booleans(node: exp.Expr, scope: Scope) -> list[exp.Expr]:
    truth = True
    inner = node
    while isinstance(inner, exp.Not | exp.Paren):
        if isinstance(inner, exp.Not):
            truth = not truth
        inner = inner.this
    if isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star):
        _, column = scope.resolve(inner)
        if column.type is not ColumnType.BOOLEAN:
            problem = f"column {column.name!r} is {column.type.value}, not a condition"
            raise scope.source.error(problem, node, "compare it with a constant")
        return [exp.EQ(this=inner, expression=exp.Boolean(this=truth))]
    if isinstance(node, exp.Not):
        hint = "write the opposite comparison, or two subscriptions"
        raise scope.source.error("NOT is supported on BOOLEAN columns only", node, hint)
    return [node]
