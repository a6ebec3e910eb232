"""`NOT (a OR (b AND c))` becomes NOT a AND (NOT b OR NOT c): the rest of the compiler sees single conditions.

An OR of a movement predicate stays whole: it means something else (`tidings.sql.movements.movement`).
"""

from __future__ import annotations

from sqlglot import exp

from tidings.sql.movements.movement import names_movement
from tidings.sql.rules.signed import Junction, Signed, Tree
from tidings.sql.scope import Scope


def split_connectives(condition: Signed, scope: Scope) -> Tree:
    node, is_negated = condition
    while isinstance(node, exp.Paren | exp.Not):
        is_negated ^= isinstance(node, exp.Not)
        node = node.this
    if not isinstance(node, exp.And | exp.Or) or (isinstance(node, exp.Or) and names_movement(node)):
        return Signed(node, is_negated)
    connective = type(node)
    is_conjunction = (connective is exp.And) != is_negated
    parts: list[Tree] = []
    # Long chains lean to the left, so they are walked and not recursed into.
    pending: list[exp.Expr] = [node]
    while pending:
        part = pending.pop()
        if type(part) is connective:
            pending += [part.expression, part.this]
            continue
        new = split_connectives(Signed(part, is_negated), scope)
        if isinstance(new, Junction) and new.is_conjunction == is_conjunction:
            parts += new.parts
        else:
            parts.append(new)
    return Junction(is_conjunction, tuple(parts))
