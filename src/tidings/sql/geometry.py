"""Conditions on geometric attributes, taken apart into comparisons of coordinates: two sets of boxes meet iff all of these do.

    area = box(a, b, c, d)             the box itself            x1 = a, x2 = c, extent a .. c
    within(area, box(a, b, c, d))      boxes inside              x1 >= a, x2 <= c, extent a .. c
    overlaps(area, box(a, b, c, d))    boxes with a common point x1 <= c, x2 >= a, any extent
    contains(area, box(a, b, c, d))    boxes around              x1 <= a, x2 >= c, any extent

and likewise y with b and d. Boxes are closed: those that touch overlap. A point has x and y: `spot = point(a, b)` and
`within(spot, box(a, b, c, d))`.
"""

from __future__ import annotations

from sqlglot import exp

from tidings.model.catalog import Column, axes_of
from tidings.model.types import ColumnType
from tidings.sql.operands import read_operand
from tidings.sql.predicate import AllOf, Comparison, Operand, Predicate
from tidings.sql.scope import Scope
from tidings.sql.shape import ColumnRef

BOX_HINT = "write column = box(x1, y1, x2, y2), overlaps(column, box(..)), contains(column, box(..)) or within(column, box(..))"
POINT_HINT = "write column = point(x, y) or within(column, box(x1, y1, x2, y2))"

_FUNCTIONS = ("overlaps", "contains", "within")

# Relation -> comparisons of the lower side, of the upper side and of the extent. Each with the ends of the constant's box
# that it is compared with: 0 is the lower one, 1 the upper.
_SIDES: dict[str, tuple[tuple[Comparison, int], tuple[Comparison, int], Comparison]] = {
    "=": (("=", 0), ("=", 1), "span"),
    "within": ((">=", 0), ("<=", 1), "span"),
    "overlaps": (("<=", 1), (">=", 0), "apart"),
    "contains": (("<=", 0), (">=", 1), "apart"),
}


def hint_for(column: Column) -> str:
    """What can be said of a geometric column."""
    return POINT_HINT if column.type is ColumnType.POINT else BOX_HINT


def read_geometry(node: exp.Expr, is_negated: bool, scope: Scope) -> AllOf | None:
    """The comparisons that a condition on a geometric column stands for; None for any other condition."""
    if isinstance(node, exp.Func):
        relation = _name(node)
        if relation not in _FUNCTIONS:
            return None
        arguments = _arguments(node)
        usage = f"write {relation}(column, box(x1, y1, x2, y2))"
        if len(arguments) != 2 or not isinstance(arguments[0].unnest(), exp.Column):
            raise scope.source.error(f"{relation} takes a column and a box", node, usage)
        column_node, constant = arguments
    elif isinstance(node, exp.EQ | exp.NEQ) and any(
        isinstance(s.unnest(), exp.Func) for s in (node.this, node.expression)
    ):
        relation, column_node, constant = "=", node.this, node.expression
        if isinstance(constant.unnest(), exp.Column):
            column_node, constant = constant, column_node
        is_negated ^= isinstance(node, exp.NEQ)
    else:
        return None
    inner = column_node.unnest()
    if not isinstance(inner, exp.Column):
        return None
    ref, column = scope.resolve(inner)
    if not column.type.is_geometric:
        if relation == "=":
            return None
        problem = f"column {column.name!r} is {column.type.value} and has no place in the plane"
        raise scope.source.error(problem, node, f"{relation} is for columns of type BOX and POINT")
    if is_negated:
        raise scope.source.error("NOT is not supported on geometric conditions", node, "say where it is instead")
    is_point = column.type is ColumnType.POINT
    if is_point and relation not in ("=", "within"):
        raise scope.source.error(f"{relation} is not for points", node, POINT_HINT)
    wanted = "point" if is_point and relation == "=" else "box"
    ends = _constant(constant, wanted, column, scope)
    axes = axes_of(column)
    parts: list[Predicate] = []
    for direction in range(2):
        own = axes[direction::2] if is_point else axes[3 * direction : 3 * direction + 3]
        refs = [ColumnRef(ref.table, axis.name) for axis in own]
        if wanted == "point":
            parts.append(Predicate(refs[0], own[0], "=", (ends[direction],), node))
            continue
        pair = (ends[direction], ends[direction + 2])
        if is_point:
            parts.append(Predicate(refs[0], own[0], "span", pair, node))
            continue
        (lower, lower_end), (upper, upper_end), extent = _SIDES[relation]
        parts.append(Predicate(refs[0], own[0], lower, (pair[lower_end],), node))
        parts.append(Predicate(refs[1], own[1], upper, (pair[upper_end],), node))
        parts.append(Predicate(refs[2], own[2], extent, pair, node))
    return AllOf(tuple(parts))


def _constant(node: exp.Expr, wanted: str, column: Column, scope: Scope) -> list[Operand]:
    """The numbers of `box(x1, y1, x2, y2)` or `point(x, y)`."""
    call = node.unnest()
    count = 2 if wanted == "point" else 4
    numbers = _arguments(call) if isinstance(call, exp.Func) else []
    if not isinstance(call, exp.Func) or _name(call) != wanted or len(numbers) != count:
        raise scope.source.error(f"a {wanted} of {count} numbers is expected", node, hint_for(column))
    axis = Column(column.name, ColumnType.DOUBLE)
    return [read_operand(number, axis, scope) for number in numbers]


def _name(node: exp.Func) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()


def _arguments(node: exp.Func) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
