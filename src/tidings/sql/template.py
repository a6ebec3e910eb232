"""A template: one parsed statement with its literals taken out, ready to bind the literals of others like it."""

from __future__ import annotations

from dataclasses import replace

from tidings.model.catalog import Catalog, Column
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
from tidings.sql.predicate import AllOf, MovementPredicate, Predicate
from tidings.sql.query import Query, read_query
from tidings.sql.scope import Scope
from tidings.sql.shape import ColumnRef, Movement, Shape
from tidings.sql.source import Source

# So that the binders of TRUE and FALSE, which read no literal, can always be given the first one.
_NONE = ("",)

_new = tuple.__new__  # half the time of calling Constants


_ColumnPredicates = tuple[ColumnRef, Column, list[Predicate]]


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
        query = self.query
        by_column = _by_column(query.predicates, query.scope)
        movement = query.movement
        shape = Shape(
            tables=tuple(table.name for table in query.scope.tables.values()),
            joins=query.joins,
            projection=query.projection,
            order=query.order,
            movement=_movement(movement) if movement is not None else None,
        )
        bind_movement = movement_binder(movement, self.slots) if movement is not None else None
        if not _is_plain(query.condition, by_column):
            return self._disjunct_template(shape, by_column, bind_movement)
        nulls = [entry for entry in by_column if any(each.comparison == "is null" for each in entry[2])]
        pinned = [entry for entry in by_column if any(each.comparison == "=" for each in entry[2])]
        ranged = [entry for entry in by_column if entry not in pinned and entry not in nulls]
        kind = ConstraintTemplate if query.scope.has_constraints else Template
        return kind(
            replace(
                shape,
                equalities=tuple(ref for ref, _, _ in pinned),
                ranges=tuple(ref for ref, _, _ in ranged),
                nulls=tuple(ref for ref, _, _ in nulls),
            ),
            len(self.spans),
            [equality_binder(column.type, predicates, self.slots) for _, column, predicates in pinned],
            [interval_binder(column.type, predicates, self.slots) for _, column, predicates in ranged],
            bind_movement,
        )

    def _disjunct_template(
        self, shape: Shape, by_column: list[_ColumnPredicates], movement: MovementBinder | None
    ) -> DisjunctTemplate:
        if len(self.query.predicates) > PREDICATES_MAX:
            problem = f"there are {len(self.query.predicates):,} conditions"
            raise self._error_at_alternative(problem, f"with OR, NOT or <> the limit is {PREDICATES_MAX:,}")
        columns = {ref: column.type for ref, column, _ in by_column}
        try:
            terms = multiplied_out(self.query.condition)
        except TooMany:
            raise self._too_many() from None
        binders = [
            [(ref, set_binder(columns[ref], condition, self.slots)) for ref, condition in term.items()]
            for term in terms
        ]
        is_constraint = self.query.scope.has_constraints
        return DisjunctTemplate(shape, len(self.spans), columns, binders, movement, is_constraint=is_constraint)

    def _too_many(self) -> SqlError:
        hint = "use IN for many values of a column, fewer OR, <> and NOT IN, or several subscriptions"
        return self._error_at_alternative(f"the condition comes to more than {DISJUNCTS_MAX} disjuncts", hint)

    def _contradiction(self) -> SqlError:
        """The error for a constraint that nothing satisfies; it points at the column to blame, if there is one."""
        hint = "offer and ask for something that can exist"
        for ref, column, predicates in _by_column(self.query.predicates, self.query.scope):
            if all(isinstance(part, Predicate) for part in self.query.condition.parts):
                binder = set_binder(column.type, AllOf(tuple(predicates)), self.slots)
                if binder(self.literals or _NONE) == NOTHING:
                    problem = f"no value of column {ref.column!r} satisfies this"
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


def _is_plain(condition: AllOf, by_column: list[_ColumnPredicates]) -> bool:
    """True for a conjunction in which every column has one set of values, one interval, or must be null."""
    if not all(isinstance(part, Predicate) and part.comparison not in ("<>", "not like") for part in condition.parts):
        return False
    kinds = [{each.comparison == "is null" for each in predicates} for _, _, predicates in by_column]
    return all(len(kind) == 1 for kind in kinds)


def _by_column(predicates: list[Predicate], scope: Scope) -> list[_ColumnPredicates]:
    """Predicates grouped by column, in the order of FROM and then of the table's columns."""
    grouped: dict[ColumnRef, list[Predicate]] = {}
    for predicate in predicates:
        grouped.setdefault(predicate.ref, []).append(predicate)
    return [
        (ref, column, grouped[ref])
        for table in scope.tables.values()
        for column in table.axes
        if (ref := ColumnRef(table.name, column.name)) in grouped
    ]
