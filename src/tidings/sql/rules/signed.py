"""What rules rewrite: conditions of the syntax tree with the NOT before them, joined by AND and OR."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from sqlglot import exp

from tidings.sql.scope import Scope


class Signed(NamedTuple):
    """A condition as the parser left it, negated or not."""

    node: exp.Expr
    is_negated: bool = False


class Junction(NamedTuple):
    """Conditions joined by AND (`is_conjunction`) or by OR."""

    is_conjunction: bool
    parts: tuple[Tree, ...]


Tree: TypeAlias = Signed | Junction
Rule: TypeAlias = Callable[[Signed, Scope], Tree]


def rewritten(tree: Tree, rule: Rule, scope: Scope) -> Tree:
    """The tree with every condition replaced by what the rule makes of it; junctions within equal ones are dissolved."""
    if isinstance(tree, Signed):
        return rule(tree, scope)
    parts: list[Tree] = []
    for part in tree.parts:
        new = rewritten(part, rule, scope)
        if isinstance(new, Junction) and new.is_conjunction == tree.is_conjunction:
            parts += new.parts
        else:
            parts.append(new)
    return Junction(tree.is_conjunction, tuple(parts))
