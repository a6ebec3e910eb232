"""`x BETWEEN a AND b` becomes `x >= a AND x <= b`, NOT BETWEEN `x < a OR x > b`.

Movement predicates keep theirs, whose bounds mean something else.
"""

from __future__ import annotations

from sqlglot import exp

from tidings.sql.rules.signed import Junction, Signed, Tree
from tidings.sql.scope import Scope, only


def split_between(condition: Signed, scope: Scope) -> Tree:
    node, is_negated = condition
    if not isinstance(node, exp.Between) or isinstance(node.this, exp.Func):
        return condition
    only(scope.source, node, {"this", "low", "high"}, "write column BETWEEN low AND high")
    low, high = node.args["low"], node.args["high"]
    ends: tuple[exp.Expr, ...]
    if is_negated:
        ends = (exp.LT(this=node.this, expression=low), exp.GT(this=node.this, expression=high))
    else:
        ends = (exp.GTE(this=node.this, expression=low), exp.LTE(this=node.this, expression=high))
    return Junction(not is_negated, tuple(Signed(end) for end in ends))
