"""`NOT x < 5` becomes `x >= 5`, NOT of `x = 5` becomes `x <> 5`. IN, LIKE and IS NULL keep their NOT: it is part of them."""

from __future__ import annotations

from sqlglot import exp

from tidings.sql.movements.movement import is_movement
from tidings.sql.rules.signed import Signed, Tree
from tidings.sql.scope import Scope

_OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}


def absorb_negations(condition: Signed, scope: Scope) -> Tree:
    node, is_negated = condition
    opposite = _OPPOSITE.get(type(node)) if is_negated else None
    if opposite is None or is_movement(node):
        return condition
    return Signed(opposite(this=node.this, expression=node.expression))
