"""`active` becomes `active = TRUE`, `NOT active` becomes `active = FALSE`."""

from __future__ import annotations

from sqlglot import exp

from tidings.model.types import ColumnType
from tidings.sql.rules.signed import Signed, Tree
from tidings.sql.scope import Scope


def spell_out_booleans(condition: Signed, scope: Scope) -> Tree:
    node, is_negated = condition
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return condition
    _, column = scope.resolve(node)
    if column.type is not ColumnType.BOOLEAN:
        problem = f"column {column.name!r} is {column.type.value}, not a condition"
        raise scope.source.error(problem, node, "compare it with a constant")
    return Signed(exp.EQ(this=node, expression=exp.Boolean(this=not is_negated)))
