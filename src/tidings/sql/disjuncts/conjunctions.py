"""The template of a statement with OR, `<>` and the like. Its number of disjuncts depends on its constants.

For each subscription every column of every term becomes a set of values. Terms that nothing satisfies are removed, terms that
differ in one column are united, terms contained in others are removed; the rest is split into conjunctions.

In a constraint, which is matched with other constraints, it matters which columns a term compares, even where it allows every
value: terms keep their columns, and only terms of the same columns are united.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, NamedTuple

from tidings.model.types import ColumnType
from tidings.sql.bind import Literals, MovementBinder
from tidings.sql.constants import Constants, Interval
from tidings.sql.disjuncts.binders import SetBinder
from tidings.sql.disjuncts.terms import DISJUNCTS_MAX
from tidings.sql.disjuncts.value_sets import EVERYTHING, NOTHING, ValueSet, is_subset, union
from tidings.sql.literals import LiteralError
from tidings.sql.shape import ColumnRef, Shape

Term = dict[ColumnRef, ValueSet]

_CONJUNCTIONS_KEPT_MAX = 1_000
"""A template keeps shapes it has made, with so many conjunctions in all."""
# So that binders which read no literal can always be given the first one.
_NONE = ("",)


class TooManyDisjuncts(LiteralError):
    """The condition has more than DISJUNCTS_MAX conjunctions with these constants."""


class Contradiction(LiteralError):
    """Nothing satisfies the constraint with these constants."""


class _Columns(NamedTuple):
    """The columns of a conjunction."""

    equalities: tuple[ColumnRef, ...]
    ranges: tuple[ColumnRef, ...]
    nulls: tuple[ColumnRef, ...]


_Conjunction = tuple[_Columns, tuple[tuple[Any, ...], ...], tuple[Interval, ...]]
"""Columns, values of those that are pinned, intervals of those that are bounded."""


class DisjunctTemplate:
    """As `tidings.sql.template.Template`, for conditions that are no plain conjunction."""

    __slots__ = ("_columns", "_is_constraint", "_kept", "_movement", "_shapes", "_terms", "literal_count", "shape")

    def __init__(
        self,
        shape: Shape,
        literal_count: int,
        columns: dict[ColumnRef, ColumnType],
        terms: list[list[tuple[ColumnRef, SetBinder]]],
        movement: MovementBinder | None,
        *,
        is_constraint: bool = False,
    ) -> None:
        """`shape` is without columns; `columns` are those compared, in the order of FROM, then of the table's columns."""
        self.shape = shape
        self.literal_count = literal_count
        self._columns = columns
        self._terms = terms
        self._movement = movement
        self._is_constraint = is_constraint
        self._shapes: dict[tuple[_Columns, ...], Shape] = {}
        self._kept = 0

    def bind(self, literals: Literals) -> tuple[Shape, Constants]:
        """Shape and constants for these literals; LiteralError if one does not fit."""
        literals = literals or _NONE
        bound = [self._bound(term, literals) for term in self._terms]
        terms = self._simplified([term for term in bound if term is not None])
        if sum(prod([found.alternatives for found in term.values()]) for term in terms) > DISJUNCTS_MAX:
            raise TooManyDisjuncts
        movement = self._movement(literals) if self._movement is not None else ()
        found = sorted([each for term in terms for each in self._taken_apart(term)], key=_order)
        if not found:
            if self._is_constraint:
                raise Contradiction
            found = [(_Columns((next(iter(self._columns)),), (), ()), ((),), ())]
        shape = self._shape(tuple([columns for columns, _, _ in found]))
        constants = tuple([Constants(values, intervals, movement) for _, values, intervals in found])
        return shape, constants[0] if len(constants) == 1 else Constants(disjuncts=constants)

    def _bound(self, term: list[tuple[ColumnRef, SetBinder]], literals: Literals) -> Term | None:
        """The value sets of a term's columns, without columns that allow everything; None if a set is empty."""
        bound: Term = {}
        is_possible = True
        for ref, bind in term:
            found = bind(literals)  # Always bound: a literal that does not fit is refused anywhere.
            is_possible &= found != NOTHING
            if found != EVERYTHING or self._is_constraint:
                bound[ref] = found
        return bound if is_possible else None

    def _simplified(self, terms: list[Term]) -> list[Term]:
        if len(terms) < 2:
            return terms
        is_changed = True
        while is_changed and len(terms) > 1:
            is_changed = False
            for ref in self._columns:
                count = len(terms)
                terms = self._united(terms, ref)
                is_changed |= len(terms) < count
        kept = sorted(terms, key=repr)
        for term in list(kept):
            if any(other is not term and self._is_within(term, other) for other in kept):
                kept.remove(term)
        return kept

    def _united(self, terms: list[Term], ref: ColumnRef) -> list[Term]:
        """Terms that differ in nothing but this column become one."""
        alike: dict[tuple[frozenset[tuple[ColumnRef, ValueSet]], bool], list[Term]] = {}
        for term in terms:
            rest = frozenset([entry for entry in term.items() if entry[0] != ref])
            alike.setdefault((rest, self._is_constraint and ref in term), []).append(term)
        united = []
        for (rest, _), group in alike.items():
            if len(group) == 1:
                united += group
                continue
            found = union(self._columns[ref], [term.get(ref, EVERYTHING) for term in group])
            term = dict(rest)
            if found != EVERYTHING or self._is_constraint:
                term[ref] = found
            united.append(term)
        return united

    def _is_within(self, term: Term, other: Term) -> bool:
        if self._is_constraint and term.keys() != other.keys():
            return False
        return all(ref in term and is_subset(self._columns[ref], term[ref], found) for ref, found in other.items())

    def _taken_apart(self, term: Term) -> Iterator[_Conjunction]:
        """The conjunctions of a term: one for each choice of values, an interval or null for each column."""
        refs = [ref for ref in self._columns if ref in term]
        for choice in product(*(_choices(term[ref]) for ref in refs)):
            chosen = list(zip(refs, choice, strict=True))
            equalities = [(ref, one) for ref, one in chosen if one.__class__ is tuple]
            ranges = [(ref, one) for ref, one in chosen if one.__class__ is Interval]
            columns = _Columns(
                tuple([ref for ref, _ in equalities]),
                tuple([ref for ref, _ in ranges]),
                tuple([ref for ref, one in chosen if one is None]),
            )
            yield columns, tuple([one for _, one in equalities]), tuple([one for _, one in ranges])

    def _shape(self, conjunctions: tuple[_Columns, ...]) -> Shape:
        known = self._shapes.get(conjunctions)
        if known is None:
            shapes = tuple([replace(self.shape, **columns._asdict()) for columns in conjunctions])
            known = shapes[0] if len(shapes) == 1 else replace(self.shape, disjuncts=shapes)
            self._kept += len(conjunctions)
            if self._kept > _CONJUNCTIONS_KEPT_MAX:
                self._shapes.clear()
                self._kept = len(conjunctions)
            self._shapes[conjunctions] = known
        return known


def _choices(found: ValueSet) -> list[Any]:
    """Values as a plain tuple, each interval, None for null."""
    choices: list[Any] = [found.values] if found.values else []
    choices += found.intervals
    return [*choices, None] if found.has_null else choices


def _order(conjunction: _Conjunction) -> tuple[Any, ...]:
    """Sort key of disjuncts, which makes their order independent of how the condition is written."""
    columns, values, intervals = conjunction
    ends = [
        (each.lo_code, each.hi_code, str(each.lo), str(each.hi), each.lo_closed, each.hi_closed) for each in intervals
    ]
    return columns, values, ends
