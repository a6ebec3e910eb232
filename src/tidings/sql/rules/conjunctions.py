"""`(a AND (b AND c))` becomes a, b, c: the rest of the compiler sees single predicates."""

from __future__ import annotations

from sqlglot import exp

from tidings.sql.scope import Scope


def split_conjunctions(node: exp.Expr, scope: Scope) -> list[exp.Expr]:
    pending = [node]
    predicates: list[exp.Expr] = []
    while pending:
        part = pending.pop()
        if isinstance(part, exp.Paren):
            pending.append(part.this)
        elif isinstance(part, exp.And):
            pending += [part.expression, part.this]
        else:
            predicates.append(part)
    return predicates
