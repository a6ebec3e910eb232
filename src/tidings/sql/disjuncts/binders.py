"""From literals to value sets: for each column of a term a binder is made once, which runs for every subscription."""

from __future__ import annotations

from collections.abc import Callable

from tidings.model.types import ColumnType
from tidings.sql.bind import Literals, Slots, bound_reader, equality_binder, interval_between, interval_binder
from tidings.sql.bounds import NO_LOWER, NO_UPPER, Bound
from tidings.sql.constants import Interval
from tidings.sql.disjuncts.value_sets import NULL, ValueSet, intersection, merged, union
from tidings.sql.predicate import AllOf, AnyOf, Condition, Predicate

SetBinder = Callable[[Literals], ValueSet]


def set_binder(type: ColumnType, condition: Condition, slots: Slots) -> SetBinder:
    """Binder of a condition on a single column."""
    if isinstance(condition, Predicate):
        return _predicate_binder(type, condition, slots)
    # One sorted list of constants instead of as many sets.
    alike = "<>" if isinstance(condition, AllOf) else "="
    parts = [set_binder(type, part, slots) for part in _together(condition, alike)]
    if len(parts) == 1:
        return parts[0]
    if isinstance(condition, AnyOf):
        return lambda literals: union(type, [bind(literals) for bind in parts])
    first, *others = parts

    def bind_all(literals: Literals) -> ValueSet:
        found = first(literals)
        for bind in others:
            found = intersection(type, found, bind(literals))
        return found

    return bind_all


def _together(condition: AllOf | AnyOf, comparison: str) -> list[Condition]:
    """The parts of the condition, with all predicates of this comparison joined into one."""
    alike = [part for part in condition.parts if isinstance(part, Predicate) and part.comparison == comparison]
    if len(alike) < 2:
        return list(condition.parts)
    whole = alike[0]._replace(operands=tuple(operand for part in alike for operand in part.operands))
    return [whole, *(part for part in condition.parts if part not in alike)]


def _predicate_binder(type: ColumnType, predicate: Predicate, slots: Slots) -> SetBinder:
    if predicate.comparison == "is null":
        return lambda literals: NULL
    if predicate.comparison == "=":
        bind_values = equality_binder(type, [predicate], slots)
        return lambda literals: ValueSet(bind_values(literals))
    if predicate.comparison == "<>":
        return _complement_binder(type, predicate, slots)
    if predicate.comparison == "not like":
        bind_prefix = interval_binder(type, [predicate._replace(comparison="like")], slots)
        return lambda literals: _outside(type, bind_prefix(literals))
    bind_interval = interval_binder(type, [predicate], slots)

    def bind(literals: Literals) -> ValueSet:
        interval = bind_interval(literals)
        return ValueSet() if interval.is_empty else ValueSet(intervals=(interval,))

    return bind


def _complement_binder(type: ColumnType, predicate: Predicate, slots: Slots) -> SetBinder:
    """Binder of all values but some: the intervals between neighbouring ones."""
    if type is ColumnType.BOOLEAN:
        left = {False, True} - {operand.boolean for operand in predicate.operands}
        return lambda literals: ValueSet(tuple(sorted(left)))
    ends = [
        (
            bound_reader(type, operand, slots, is_lower=False, closed=False),
            bound_reader(type, operand, slots, is_lower=True, closed=False),
        )
        for operand in predicate.operands
    ]

    def bind(literals: Literals) -> ValueSet:
        bounds = [
            (read_upper(literals[slot]), read_lower(literals[slot])) for (slot, read_upper), (_, read_lower) in ends
        ]
        bounds.sort(key=_order)
        lowers = [NO_LOWER, *(above for _, above in bounds)]
        uppers = [*(below for below, _ in bounds), NO_UPPER]
        gaps = [interval_between(low, high, type.is_lossy) for low, high in zip(lowers, uppers, strict=True)]
        return ValueSet(intervals=merged(type, gaps))

    return bind


def _order(pair: tuple[Bound, Bound]) -> tuple[int, int, str]:
    """Orders values by the bounds just below and just above them; texts of equal codes by themselves."""
    (below, value, _), (above, _, _) = pair
    return below, above, value if value.__class__ is str else ""


def _outside(type: ColumnType, inside: Interval) -> ValueSet:
    """All values beyond both ends of an interval."""
    ends = []
    if inside.lo is not None:
        ends.append(interval_between(NO_LOWER, (inside.lo_code, inside.lo, not inside.lo_closed), type.is_lossy))
    if inside.hi is not None:
        ends.append(interval_between((inside.hi_code, inside.hi, not inside.hi_closed), NO_UPPER, type.is_lossy))
    return ValueSet(intervals=merged(type, ends))
