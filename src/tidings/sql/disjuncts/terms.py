"""A condition multiplied out: a list of terms, joined by OR, each with one condition for each of its columns, joined by AND.

Conditions on a single column are kept whole, with any AND and OR in them (`value_sets` make one set of them), so that only
conditions on different columns multiply.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from tidings.sql.predicate import AllOf, AnyOf, Condition, Predicate, predicates_of
from tidings.sql.shape import ColumnRef

DISJUNCTS_MAX = 64
PREDICATES_MAX = 1_000

Term = dict[ColumnRef, Condition]


class TooMany(Exception):
    """The condition has more disjuncts than are allowed."""


def multiplied_out(condition: Condition) -> list[Term]:
    """The terms of a condition. Raises TooMany if there are more than DISJUNCTS_MAX."""
    refs = {predicate.ref for predicate in predicates_of(condition)}
    if len(refs) == 1:
        return [{refs.pop(): condition}]
    assert not isinstance(condition, Predicate)
    parts = [multiplied_out(part) for part in condition.parts]
    if isinstance(condition, AnyOf):
        terms = _gathered(term for alternatives in parts for term in alternatives)
        if len(terms) > DISJUNCTS_MAX:
            raise TooMany
        return terms
    terms = [{}]
    for alternatives in parts:
        if len(terms) * len(alternatives) > DISJUNCTS_MAX:
            raise TooMany
        terms = [_joined(one, other) for one, other in product(terms, alternatives)]
    return terms


def _joined(one: Term, other: Term) -> Term:
    joined = dict(one)
    for ref, condition in other.items():
        joined[ref] = _combined(AllOf, joined[ref], condition) if ref in joined else condition
    return joined


def _gathered(terms: Iterable[Term]) -> list[Term]:
    """Terms joined by OR; terms that have only the same single column are joined into one."""
    single: Term = {}
    others: list[Term] = []
    for term in terms:
        if len(term) == 1:
            ((ref, condition),) = term.items()
            single[ref] = _combined(AnyOf, single[ref], condition) if ref in single else condition
        else:
            others.append(term)
    return [*({ref: condition} for ref, condition in single.items()), *others]


def _combined(junction: type[AllOf] | type[AnyOf], one: Condition, other: Condition) -> Condition:
    parts = one.parts if isinstance(one, junction) else (one,)
    return junction((*parts, *(other.parts if isinstance(other, junction) else (other,))))
