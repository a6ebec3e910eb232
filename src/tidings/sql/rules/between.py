"""`x BETWEEN a AND b` becomes `x >= a`, `x <= b`; movement predicates keep theirs, whose bounds mean something else."""

from __future__ import annotations

from sqlglot import exp

from tidings.sql.scope import Scope


def split_between(node: exp.Expr, scope: Scope) -> list[exp.Expr]:
    if not isinstance(node, exp.Between) or isinstance(node.this, exp.Func):
        return [node]
    low, high = node.args["low"], node.args["high"]
    return [exp.GTE(this=node.this, expression=low), exp.LTE(this=node.this, expression=high)]
