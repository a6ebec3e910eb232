"""A SELECT taken apart into tables, joins, predicates, projection and order: what a shape is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from tidings.model.catalog import Catalog
from tidings.sql.joins import read_join
from tidings.sql.normalize import normalize, read_conditions
from tidings.sql.parse import parse_select
from tidings.sql.predicate import AllOf, MovementPredicate, Predicate, predicates_of
from tidings.sql.refusals import FORM
from tidings.sql.rules.signed import Tree
from tidings.sql.scope import Scope, find_name, only
from tidings.sql.shape import ColumnRef, JoinEdge, Order

LIMIT_MAX = 10_000

_HONOURED = {"expressions", "from_", "joins", "where", "order", "limit"}
_LIST_HINT = "list columns by name, or write *"


@dataclass
class Query:
    scope: Scope
    tree: exp.Select
    joins: tuple[JoinEdge, ...]
    condition: AllOf
    movement: MovementPredicate | None
    projection: tuple[ColumnRef, ...] | None
    order: Order | None
    limit_start: int
    """Offset of LIMIT's number; -1 without one."""
    has_on_conditions: bool
    """Whether a part of the condition comes from JOIN .. ON instead of WHERE."""

    @cached_property
    def predicates(self) -> list[Predicate]:
        """All comparisons of the condition."""
        return list(predicates_of(self.condition))

    @property
    def structural_starts(self) -> set[int]:
        """Offsets of the literals that belong to the shape and are no constants: those of LIMIT and silent_for."""
        silence = self.movement.silence if self.movement is not None else None
        return {self.limit_start} if silence is None else {self.limit_start, silence.start}


def read_query(sql: str, catalog: Catalog) -> Query:
    """Parse and check one subscription's SQL."""
    source, tree = parse_select(sql)
    scope = Scope(source, catalog)
    if tree.args.get("offset") is not None:
        hint = "use a larger LIMIT and skip the first rows on your side"
        raise source.error("OFFSET is not supported", tree.args["offset"], hint)
    only(source, tree, _HONOURED, FORM)
    clause = tree.args.get("from_")
    if clause is None:
        raise source.error("there is no FROM", tree, FORM)
    scope.add(clause.this)
    only(source, clause, {"this"}, FORM)
    if clause.this.args.get("joins"):
        raise source.error("this join is not supported", clause.this, FORM)
    joins: list[JoinEdge] = []
    conditions: list[Tree] = []
    for join in tree.args.get("joins") or []:
        edges, rest = read_join(join, scope)
        joins += edges
        conditions += rest
    has_on_conditions = bool(conditions)
    where = tree.args.get("where")
    if where is not None:
        conditions += normalize(where.this, scope)
    condition, movement = read_conditions(conditions, scope)
    if scope.has_constraints:
        _check_constraint(tree, scope, condition, movement)
    projection = _read_projection(tree, scope)
    order, limit_start = _read_order(tree, scope)
    return Query(scope, tree, tuple(joins), condition, movement, projection, order, limit_start, has_on_conditions)


def _check_constraint(tree: exp.Select, scope: Scope, condition: AllOf, movement: MovementPredicate | None) -> None:
    """SqlError for what cannot be asked of a table of constraints."""
    clause = tree.args["from_"].this
    if len(scope.tables) > 1:
        raise scope.source.error("a table of constraints cannot be joined", clause, "subscribe to each table")
    if movement is not None:
        raise scope.source.error("constraints do not move", movement.node, "leave it out")
    if not condition.parts:
        raise scope.source.error("the constraint is empty", clause, "add WHERE with at least one condition")


def _read_projection(tree: exp.Select, scope: Scope) -> tuple[ColumnRef, ...] | None:
    items = tree.expressions
    if not items:
        raise scope.source.error("no columns are selected", tree, _LIST_HINT)
    if len(items) == 1 and _is_everything(items[0], scope):
        return None
    refs: dict[ColumnRef, None] = {}
    for item in items:
        for ref in _read_item(item, scope):
            if ref in refs:
                raise scope.source.error(f"column {ref.column!r} is selected twice", item, "name each column once")
            refs[ref] = None
    return tuple(refs)


def _is_everything(item: exp.Expr, scope: Scope) -> bool:
    """True for `*`, and for `table.*` of the only table."""
    if isinstance(item, exp.Star):
        only(scope.source, item, set(), _LIST_HINT)
        return True
    if len(scope.tables) == 1 and isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return len(_read_item(item, scope)) > 0
    return False


def _read_item(item: exp.Expr, scope: Scope) -> list[ColumnRef]:
    if isinstance(item, exp.Star):
        raise scope.source.error("* stands beside other columns", item, _LIST_HINT)
    if isinstance(item, exp.Alias):
        raise scope.source.error("columns cannot be renamed", item, "leave out the alias")
    if not isinstance(item, exp.Column):
        raise scope.source.error("expressions cannot be selected", item, _LIST_HINT)
    if not isinstance(item.this, exp.Star):
        return [_read_shown(item, scope) if scope.has_constraints else scope.resolve(item)[0]]
    only(scope.source, item.this, set(), _LIST_HINT)
    only(scope.source, item, {"this", "table"}, _LIST_HINT)
    table = scope.table_named(item.args["table"])
    return [ColumnRef(table.name, column.name) for column in table.shown]


def _read_shown(item: exp.Column, scope: Scope) -> ColumnRef:
    """A column that a row of constraints shows: these are not the attributes that conditions are about."""
    (table,) = scope.tables.values()
    shown = {column.name: column for column in table.shown}
    found = find_name(shown, item.this)
    if found is None:
        problem = f"rows of {table.name!r} are constraints and show no {item.name!r}"
        raise scope.source.error(problem, item, 'select *, id or "where"')
    return ColumnRef(table.name, found.name)


def _read_order(tree: exp.Select, scope: Scope) -> tuple[Order | None, int]:
    order, limit = tree.args.get("order"), tree.args.get("limit")
    both = "write ORDER BY column LIMIT k"
    if order is None:
        if limit is None:
            return None, -1
        raise scope.source.error("LIMIT without ORDER BY has no meaning", limit, both)
    if limit is None:
        raise scope.source.error("ORDER BY without LIMIT is not supported", order, both)
    only(scope.source, order, {"expressions"}, both)
    only(scope.source, limit, {"expression"}, both)
    if len(order.expressions) != 1:
        hint = "order by one column; ties go by primary key"
        raise scope.source.error("only one column can be ordered by", order.expressions[1], hint)
    (ordered,) = order.expressions
    if not isinstance(ordered, exp.Ordered) or not isinstance(ordered.this, exp.Column):
        raise scope.source.error("only a column can be ordered by", ordered, both)
    only(scope.source, ordered, {"this", "desc", "nulls_first"}, both)
    ref, column = scope.resolve(ordered.this)
    if not column.type.is_comparable:
        problem = f"column {column.name!r} is {column.type.value} and has no order"
        raise scope.source.error(problem, ordered, "order by a column of another type")
    number = limit.expression
    text = number.name if isinstance(number, exp.Literal) and not number.is_string else ""
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= LIMIT_MAX):
        raise scope.source.error("LIMIT is not a number in range", number, f"use 1 to {LIMIT_MAX:,}")
    return Order(ref, bool(ordered.args.get("desc")), int(text)), number._meta["start"] if number._meta else -1
