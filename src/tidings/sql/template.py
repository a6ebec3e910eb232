"""A template: one parsed statement with its literals taken out, ready to bind the literals of others like it."""

from __future__ import annotations

from typing import NamedTuple

from tidings.model.catalog import Catalog, Column, Table, axes_of
from tidings.model.errors import SqlError
from tidings.sql.bind import (
    EqualityBinder,
    IntervalBinder,
    Literals,
    MovementBinder,
    Slots,
    equality_binder,
    interval_binder,
    movement_binder,
)
from tidings.sql.clauses import ALTERNATIVES
from tidings.sql.constants import Constants
from tidings.sql.disjuncts.binders import set_binder
from tidings.sql.disjuncts.conjunctions import Contradiction, DisjunctTemplate, TooManyDisjuncts
from tidings.sql.disjuncts.terms import DISJUNCTS_MAX, PREDICATES_MAX, TooMany, multiplied_out
from tidings.sql.disjuncts.value_sets import NOTHING
from tidings.sql.fingerprint import is_number
from tidings.sql.literals import LiteralError
from tidings.sql.predicate import AllOf, MovementPredicate, Predicate, predicates_of
from tidings.sql.query import Query, read_query
from tidings.sql.shape import ColumnRef, Movement, Shape
from tidings.sql.source import Source

# So that the binders of TRUE and FALSE, which read no literal, can always be given the first one.
_NONE = ("",)

_new = tuple.__new__  # half the time of calling Constants


_Place = tuple[int, int]
"""Of a column in a statement: the number of its table in FROM, and its own in the table."""
_ColumnPredicates = tuple[_Place, ColumnRef, Column, list[Predicate]]


class Template:
    """Shape of a statement and the binders that turn its literals, as source text in order, into constants."""

    __slots__ = ("_equalities", "_intervals", "_movement", "literal_count", "shape")

    def __init__(
        self,
        shape: Shape,
        literal_count: int,
        equalities: list[EqualityBinder],
        intervals: list[IntervalBinder],
        movement: MovementBinder | None,
    ) -> None:
        self.shape = shape
        self.literal_count = literal_count
        self._equalities = equalities
        self._intervals = intervals
        self._movement = movement

    def bind(self, literals: Literals) -> tuple[Shape, Constants]:
        """Shape and constants for these literals; LiteralError if one does not fit."""
        literals = literals or _NONE
        equalities = tuple([bind(literals) for bind in self._equalities])
        intervals = tuple([bind(literals) for bind in self._intervals])
        movement = self._movement(literals) if self._movement is not None else ()
        return self.shape, _new(Constants, (equalities, intervals, movement, ()))


class ConstraintTemplate(Template):
    """The template of a constraint: what nothing satisfies is refused."""

    __slots__ = ()

    def bind(self, literals: Literals) -> tuple[Shape, Constants]:
        shape, constants = super().bind(literals)
        if not all(constants.equalities) or any(interval.is_empty for interval in constants.intervals):
            raise Contradiction
        return shape, constants


class TooManyPredicates(TooMany):
    """The condition is no plain conjunction and has more than PREDICATES_MAX comparisons."""


class Outline(NamedTuple):
    """What a statement says besides its conditions. shape: without columns. tables: in the order of FROM."""

    shape: Shape
    tables: tuple[Table, ...]
    is_constraint: bool


def outline_of(query: Query) -> Outline:
    tables = tuple(query.scope.tables.values())
    shape = Shape(
        tables=tuple(table.name for table in tables),
        joins=query.joins,
        projection=query.projection,
        order=query.order,
        movement=_movement(query.movement) if query.movement is not None else None,
    )
    return Outline(shape, tables, query.scope.has_constraints)


class BoundColumn(NamedTuple):
    """A column of a plain conjunction, with the one binder of all its predicates: of values, or of an interval.

    Without a binder the column must be null. The order of these is that of columns in a shape.
    """

    place: _Place
    ref: ColumnRef
    column: Column
    predicates: list[Predicate]
    equality: EqualityBinder | None
    interval: IntervalBinder | None


def make_template(
    outline: Outline, condition: AllOf, literal_count: int, slots: Slots, movement: MovementBinder | None = None
) -> Template | DisjunctTemplate:
    """The template of a statement with this condition. Raises TooMany if there is more in it than is allowed."""
    columns = bound_columns(condition, outline.tables, slots)
    if columns is None:
        return _disjunct_template(outline, condition, literal_count, slots, movement)
    return plain_template(outline, columns, literal_count, movement)


def bound_columns(condition: AllOf, tables: tuple[Table, ...], slots: Slots) -> list[BoundColumn] | None:
    """The columns of a condition in order; None if it is no plain conjunction.

    In a plain one every column has one set of values, one interval, or must be null.
    """
    for part in condition.parts:
        if not isinstance(part, Predicate) or part.comparison in ("<>", "not like"):
            return None
    columns = [bound_column(*entry, slots) for entry in _by_column(condition, tables)]
    found = [column for column in columns if column is not None]
    return found if len(found) == len(columns) else None


def bound_column(
    place: _Place, ref: ColumnRef, column: Column, predicates: list[Predicate], slots: Slots
) -> BoundColumn | None:
    """The column with its predicates, which are none of `<>` and NOT LIKE; None if it must be null, and something else."""
    comparisons = {predicate.comparison for predicate in predicates}
    equality, interval = None, None
    if "is null" in comparisons:
        if len(comparisons) > 1:
            return None
    elif "=" in comparisons:
        equality = equality_binder(column.type, predicates, slots)
    else:
        interval = interval_binder(column.type, predicates, slots)
    return BoundColumn(place, ref, column, predicates, equality, interval)


def plain_template(
    outline: Outline, columns: list[BoundColumn], literal_count: int, movement: MovementBinder | None = None
) -> Template:
    """The template of a plain conjunction. columns: in order."""
    shape = outline.shape
    pinned = [(each.ref, each.equality) for each in columns if each.equality is not None]
    ranged = [(each.ref, each.interval) for each in columns if each.interval is not None]
    nulls = [each.ref for each in columns if each.equality is None and each.interval is None]
    return (ConstraintTemplate if outline.is_constraint else Template)(
        Shape(
            shape.tables,
            shape.joins,
            tuple([ref for ref, _ in pinned]),
            tuple([ref for ref, _ in ranged]),
            shape.projection,
            shape.order,
            shape.movement,
            tuple(nulls),
        ),
        literal_count,
        [equality for _, equality in pinned],
        [interval for _, interval in ranged],
        movement,
    )


def _disjunct_template(
    outline: Outline,
    condition: AllOf,
    literal_count: int,
    slots: Slots,
    movement: MovementBinder | None,
) -> DisjunctTemplate:
    by_column = _by_column(condition, outline.tables)
    if sum([len(predicates) for _, _, _, predicates in by_column]) > PREDICATES_MAX:
        raise TooManyPredicates
    columns = {ref: column.type for _, ref, column, _ in by_column}
    binders = [
        [(ref, set_binder(columns[ref], part, slots)) for ref, part in term.items()]
        for term in multiplied_out(condition)
    ]
    is_constraint = outline.is_constraint
    return DisjunctTemplate(outline.shape, literal_count, columns, binders, movement, is_constraint=is_constraint)


class Draft:
    """A template in the making, with the source it came from: still knows where everything stands."""

    def __init__(self, sql: str, catalog: Catalog) -> None:
        self.query: Query = read_query(sql, catalog)
        self.source: Source = self.query.scope.source
        structural = self.query.structural_starts
        spans = [span for start, span in self.source.literal_spans.items() if start not in structural]
        self.spans = sorted(spans)
        self.literals = [sql[start:end] for start, end in self.spans]
        self.slots: Slots = {start: index for index, (start, _) in enumerate(self.spans)}
        self._check_literals()
        self.template = self._template()

    def bind(self) -> tuple[Shape, Constants]:
        """Shape and constants of the drafted statement itself; SqlError that points at the literal which does not fit."""
        try:
            return self.template.bind(self.literals)
        except TooManyDisjuncts:
            raise self._too_many() from None
        except Contradiction:
            raise self._contradiction() from None
        except LiteralError:
            raise self._explanation() from None

    def _check_literals(self) -> None:
        """Checks that every literal is an operand of a predicate, and that every number is well-formed."""
        used = {operand.start for predicate in self.query.predicates for operand in predicate.operands}
        if self.query.movement is not None:
            used |= {operand.start for operand in self.query.movement.operands}
        for start, end in self.spans:
            if start not in used:
                raise self.source.error_at("a literal stands where none is expected", start, end, "remove it")
            text = self.source.text[start:end]
            if text[0] != "'" and not is_number(text):
                raise self.source.error_at("the number is malformed", start, end, "write 12, 1.5 or 1e6")

    def _template(self) -> Template | DisjunctTemplate:
        query, movement = self.query, self.query.movement
        bind_movement = movement_binder(movement, self.slots) if movement is not None else None
        try:
            return make_template(outline_of(query), query.condition, len(self.spans), self.slots, bind_movement)
        except TooManyPredicates:
            problem = f"there are {len(query.predicates):,} conditions"
            hint = f"with OR, NOT or <> the limit is {PREDICATES_MAX:,}"
            raise self._error_at_alternative(problem, hint) from None
        except TooMany:
            raise self._too_many() from None

    def _too_many(self) -> SqlError:
        hint = "use IN for many values of a column, fewer OR, <> and NOT IN, or several subscriptions"
        return self._error_at_alternative(f"the condition comes to more than {DISJUNCTS_MAX} disjuncts", hint)

    def _contradiction(self) -> SqlError:
        """The error for a constraint that nothing satisfies; it points at the column to blame, if there is one."""
        hint = "offer and ask for something that can exist"
        for _, ref, column, predicates in _by_column(self.query.condition, tuple(self.query.scope.tables.values())):
            if all(isinstance(part, Predicate) for part in self.query.condition.parts):
                binder = set_binder(column.type, AllOf(tuple(predicates)), self.slots)
                if binder(self.literals or _NONE) == NOTHING:
                    attributes = self.query.scope.catalog.table(ref.table).attributes
                    name = next(each.name for each in attributes if column in axes_of(each))
                    problem = f"no value of column {name!r} satisfies this"
                    return self.source.error(problem, predicates[-1].node, hint)
        return self.source.error("nothing satisfies this constraint", self.query.tree.args["where"].this, hint)

    def _error_at_alternative(self, problem: str, hint: str) -> SqlError:
        return self.source.error_at_type(problem, ALTERNATIVES, hint)

    def _explanation(self) -> SqlError:
        """The error for the literal that does not fit, found by binding every operand on its own."""
        for predicate in self.query.predicates:
            if predicate.comparison in ("span", "apart"):
                try:
                    interval_binder(predicate.column.type, [predicate], self.slots)(self.literals)
                except LiteralError as error:
                    return self.source.error("this is no box", predicate.node, str(error))
            for operand in predicate.operands:
                is_pattern = predicate.comparison in ("like", "not like")
                alone = predicate._replace(operands=(operand,), comparison="like" if is_pattern else "=")
                binder = interval_binder if is_pattern else equality_binder
                try:
                    binder(predicate.column.type, [alone], self.slots)(self.literals)
                except LiteralError as error:
                    column = predicate.column
                    start, end = self.source.literal_spans[operand.start]
                    problem = f"column {column.name!r} is {column.type.value}: the literal does not fit"
                    return self.source.error_at(problem, start, end, str(error))
        return self._movement_explanation(self.query.movement)

    def _movement_explanation(self, movement: MovementPredicate | None) -> SqlError:
        if movement is not None:
            try:
                movement_binder(movement, self.slots)(self.literals)
            except LiteralError as error:
                start, end = self.source.literal_spans[movement.operands[0].start]
                return self.source.error_at("this movement can never be meant", start, end, str(error))
        return SqlError("a literal does not fit its column")


def _movement(predicate: MovementPredicate) -> Movement:
    silence = predicate.silence.silence if predicate.silence is not None else None
    return Movement(predicate.ref, predicate.kind, predicate.form, silence)


def _by_column(condition: AllOf, tables: tuple[Table, ...]) -> list[_ColumnPredicates]:
    """Predicates grouped by column, in the order of FROM and then of the table's columns."""
    grouped: dict[ColumnRef, list[Predicate]] = {}
    for predicate in predicates_of(condition):
        grouped.setdefault(predicate.ref, []).append(predicate)
    found: list[_ColumnPredicates] = []
    for number, table in enumerate(tables):
        numbers = table.axis_numbers
        own = [((number, numbers[ref.column]), ref) for ref in grouped if ref.table == table.name]
        found += [(place, ref, table.axes[place[1]], grouped[ref]) for place, ref in sorted(own)]
    return found
