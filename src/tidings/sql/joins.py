"""JOIN .. USING and JOIN .. ON as join edges between catalog tables."""

from __future__ import annotations

from sqlglot import exp

from tidings.model.catalog import Column, Table
from tidings.model.types import ColumnType
from tidings.sql.normalize import normalize
from tidings.sql.rules.signed import Signed, Tree
from tidings.sql.scope import Scope, only
from tidings.sql.shape import ColumnRef, JoinEdge

_HINT = "use an inner JOIN with USING (column) or ON a.x = b.y"
_INTEGERS = (ColumnType.BIGINT, ColumnType.INT)

Pair = tuple[ColumnRef, ColumnRef]


def read_join(join: exp.Expr, scope: Scope) -> tuple[list[JoinEdge], list[Tree]]:
    """Edges of one JOIN to the tables before it, and the conditions of its ON that belong into WHERE."""
    source = scope.source
    only(source, join, {"this", "kind", "on", "using"}, _HINT)
    earlier = list(scope.tables.values())
    table = scope.add(join.this)
    on, using = join.args.get("on"), join.args.get("using")
    if str(join.args.get("kind") or "INNER").upper() != "INNER" or join.this.args.get("joins"):
        raise source.error("this join is not supported", join, _HINT)
    if using:
        return _edges(_using_pairs(using, earlier, table, scope), table, True), []
    if on is None and source.follows_comma(join.this):
        raise source.error("tables separated by commas are not supported", join, _HINT)
    if on is None:
        raise source.error("the join has no condition", join, _HINT)
    pairs, rest = _on_pairs(on, table, scope)
    if not pairs:
        raise source.error(
            "ON does not join the table by equality", join.this, f"write ON other.column = {table.name}.column"
        )
    return _edges(pairs, table, False), rest


def _using_pairs(using: list[exp.Expr], earlier: list[Table], table: Table, scope: Scope) -> list[Pair]:
    pairs: list[Pair] = []
    for node in using:
        identifier = node.this if isinstance(node, exp.Column) else node
        if not isinstance(identifier, exp.Identifier):
            raise scope.source.error("USING takes columns", node, _HINT)
        right, right_column = scope.lookup(identifier, [table])
        left, left_column = scope.lookup(identifier, earlier)
        if any(right == other for _, other in pairs):
            raise scope.source.error("the column is named twice", node, "name each column once")
        _check_types(left_column, right_column, node, scope)
        pairs.append((left, right))
    for left, right in pairs:
        scope.merged[right] = left
    return pairs


def _on_pairs(on: exp.Expr, table: Table, scope: Scope) -> tuple[list[Pair], list[Tree]]:
    pairs: list[Pair] = []
    rest: list[Tree] = []
    for tree in normalize(on, scope):
        node = tree.node if isinstance(tree, Signed) else None
        if node is None or not (_is_column(node.this) and _is_column(node.expression)):
            rest.append(tree)
            continue
        if not isinstance(node, exp.EQ):
            raise scope.source.error("columns can only be joined by equality", node, _HINT)
        (first, first_column), (second, second_column) = (
            scope.resolve(node.this.unnest()),
            scope.resolve(node.expression.unnest()),
        )
        if (first.table == table.name) == (second.table == table.name):
            hint = f"compare a column of {table.name} with a column of a table before it"
            raise scope.source.error("the condition does not join this table", node, hint)
        _check_types(first_column, second_column, node, scope)
        pair = (first, second) if second.table == table.name else (second, first)
        if pair not in pairs:
            pairs.append(pair)
    return pairs, rest


def _is_column(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Expr) and isinstance(node.unnest(), exp.Column)


def _check_types(left: Column, right: Column, node: exp.Expr, scope: Scope) -> None:
    same = left.type is right.type or (left.type in _INTEGERS and right.type in _INTEGERS)
    if not same or not left.type.is_comparable:
        problem = f"{left.name!r} is {left.type.value} and {right.name!r} is {right.type.value}: they cannot be joined"
        raise scope.source.error(problem, node, "join columns of the same comparable type")


def _edges(pairs: list[Pair], table: Table, using: bool) -> list[JoinEdge]:
    """One edge for each table that the pairs lead to."""
    by_left: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_left.setdefault(pair[0].table, []).append(pair)
    return [
        JoinEdge(
            name,
            tuple(left.column for left, _ in group),
            table.name,
            tuple(right.column for _, right in group),
            using,
        )
        for name, group in by_left.items()
    ]
