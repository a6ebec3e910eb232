"""From literals to constants: the part of a template that runs for every subscription.

For each column of the shape a binder is made once, out of readers that already know the literal's place, type and
comparison. Binding a subscription is then one call per column. The usual columns (one `=`, one range) have binders of
their own; everything else goes through the general one, which intersects.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tidings.model.codes import code_of
from tidings.model.types import ColumnType
from tidings.sql.bounds import (
    NO_LOWER,
    NO_UPPER,
    Bound,
    BoundReader,
    ValueReader,
    equal,
    lower,
    prefix_lower,
    prefix_upper,
    upper,
)
from tidings.sql.constants import EMPTY_INTERVAL, FULL_INTERVAL, Interval
from tidings.sql.literals import LiteralError, reader
from tidings.sql.predicate import MovementPredicate, Operand, Predicate

_INFINITE = code_of(ColumnType.DOUBLE, float("inf"))

Literals = Sequence[str]
EqualityBinder = Callable[[Literals], tuple[Any, ...]]
IntervalBinder = Callable[[Literals], Interval]
MovementBinder = Callable[[Literals], tuple[float, ...]]
_T = TypeVar("_T")
Slots = dict[int, int] | range
"""Start offset of a literal in the text to its index among the literals; a range where operands have that index itself."""


def equality_binder(type: ColumnType, predicates: list[Predicate], slots: Slots) -> EqualityBinder:
    """Binder of a column with at least one `=` or IN among its predicates."""
    equalities = [predicate for predicate in predicates if predicate.comparison == "="]
    others = [predicate for predicate in predicates if predicate.comparison != "="]
    sets = [[_value(type, operand, slots) for operand in predicate.operands] for predicate in equalities]
    if others:
        bind_interval = interval_binder(type, others, slots)

        def bind_within(literals: Literals) -> tuple[Any, ...]:
            interval = bind_interval(literals)
            return tuple([value for value in _intersection(sets, literals) if satisfies(type, value, interval)])

        return bind_within
    if len(sets) > 1 or len(sets[0]) > 1:
        return lambda literals: _intersection(sets, literals)
    ((slot, read),) = sets[0]
    ((operand,),) = [predicate.operands for predicate in equalities]
    if operand.kind == "whole" and not operand.negative:
        return _whole_binder(slot, read)

    def bind(literals: Literals) -> tuple[Any, ...]:
        value = read(literals[slot])
        return () if value is None else (value,)

    return bind


def _whole_binder(slot: int, read: ValueReader) -> EqualityBinder:
    """`column = 5` in a constraint: most of them have several, so this one takes no further calls."""
    least, greatest = -(2**31), 2**31 - 1

    def bind(literals: Literals) -> tuple[Any, ...]:
        try:
            value = int(literals[slot])
        except ValueError:
            value = greatest + 1
        if least <= value <= greatest:
            return (value,)
        value = read(literals[slot])
        return () if value is None else (value,)

    return bind


def interval_binder(type: ColumnType, predicates: list[Predicate], slots: Slots) -> IntervalBinder:
    """Binder of a column that is only compared by order, by LIKE or with IS NOT NULL."""
    if any(predicate.comparison in ("span", "apart") for predicate in predicates):
        return _span_binder(predicates, slots)
    predicates = [predicate for predicate in predicates if predicate.comparison != "is not null"]
    lowers = [_bound(type, predicate, slots, True) for predicate in predicates if predicate.comparison[0] in ">l"]
    uppers = [_bound(type, predicate, slots, False) for predicate in predicates if predicate.comparison[0] in "<l"]
    if len(lowers) <= 1 and len(uppers) <= 1 and not type.is_lossy:
        low, high = lowers or [(0, _constant(NO_LOWER))], uppers or [(0, _constant(NO_UPPER))]
        usual = _usual_interval_binder(*low[0], *high[0])
        if (
            type is ColumnType.DOUBLE
            and lowers
            and uppers
            and not any(predicate.operands[0].negative for predicate in predicates)
        ):
            return _double_interval_binder(predicates, slots, usual)
        return usual
    lower_rank, upper_rank = _ranks(type)

    def bind(literals: Literals) -> Interval:
        lowest = max([read(literals[slot]) for slot, read in lowers], key=lower_rank) if lowers else NO_LOWER
        highest = min([read(literals[slot]) for slot, read in uppers], key=upper_rank) if uppers else NO_UPPER
        return interval_between(lowest, highest, type.is_lossy)

    return bind


def _usual_interval_binder(
    low_slot: int, read_low: BoundReader, high_slot: int, read_high: BoundReader
) -> IntervalBinder:
    """At most one lower and one upper bound on an exact type: what most subscriptions have."""
    new = tuple.__new__  # half the time of calling Interval

    def bind(literals: Literals) -> Interval:
        lo_code, lo, lo_closed = read_low(literals[low_slot])
        hi_code, hi, hi_closed = read_high(literals[high_slot])
        if lo_code > hi_code:
            return EMPTY_INTERVAL
        return new(Interval, (lo_code, hi_code, lo, hi, lo_closed, hi_closed))

    return bind


def _double_interval_binder(predicates: list[Predicate], slots: Slots, usual: IntervalBinder) -> IntervalBinder:
    """As `usual`, for two unsigned literals on a DOUBLE column: both codes are made at once. The most frequent case of all.

    The code of a non-negative double is its bits. Infinite values, which have the greatest codes, are left to `usual`.
    """
    low, high = sorted(predicates, key=lambda predicate: predicate.comparison, reverse=True)
    low_slot, high_slot = slots[low.operands[0].start], slots[high.operands[0].start]
    low_closed, high_closed = low.comparison == ">=", high.comparison == "<="
    low_step, high_step = 1 - low_closed, 1 - high_closed
    pack, unpack, new = struct.Struct("<2d").pack, struct.Struct("<2q").unpack, tuple.__new__

    def bind(literals: Literals) -> Interval:
        try:
            lo, hi = float(literals[low_slot]), float(literals[high_slot])
        except ValueError:
            raise LiteralError("a number is needed") from None
        lo_code, hi_code = unpack(pack(lo, hi))
        if lo_code >= _INFINITE or hi_code >= _INFINITE:
            return usual(literals)
        lo_code += low_step
        hi_code -= high_step
        if lo_code > hi_code:
            return EMPTY_INTERVAL
        return new(Interval, (lo_code, hi_code, lo, hi, low_closed, high_closed))

    return bind


def _span_binder(predicates: list[Predicate], slots: Slots) -> IntervalBinder:
    """Binder of a coordinate that lies between the sides of boxes (`span`), or of which these say nothing (`apart`)."""
    type = ColumnType.DOUBLE
    spans = []
    for predicate in predicates:
        low, high = predicate.operands
        ends = (
            bound_reader(type, low, slots, is_lower=True, closed=True),
            bound_reader(type, high, slots, is_lower=False, closed=True),
        )
        spans.append((*ends, predicate.comparison == "span"))

    def bind(literals: Literals) -> Interval:
        found = FULL_INTERVAL
        for (low_slot, read_low), (high_slot, read_high), is_span in spans:
            low, high = read_low(literals[low_slot]), read_high(literals[high_slot])
            if low[1] is None or high[1] is None or not low[1] < high[1]:
                raise LiteralError("a box needs finite x1 < x2 and y1 < y2")
            if is_span:
                lowest = max(low, (found.lo_code, found.lo, found.lo_closed), key=lambda bound: bound[0])
                highest = min(high, (found.hi_code, found.hi, found.hi_closed), key=lambda bound: bound[0])
                found = interval_between(lowest, highest, False)
        return found

    return bind


def movement_binder(movement: MovementPredicate, slots: Slots) -> MovementBinder:
    """Binder of the movement predicate's numbers, which must make sense for its kind."""
    least = 1.0 if movement.kind == "moved_ratio" else 0.0
    places = [(slots[operand.start], operand.negative) for operand in movement.operands]
    readers = [(slot, reader(ColumnType.DOUBLE, "number", negative)) for slot, negative in places]

    def bind(literals: Literals) -> tuple[float, ...]:
        numbers = tuple([read(literals[slot]) for slot, read in readers])
        for number in numbers:
            if not least < number < float("inf"):
                raise LiteralError(f"{movement.kind} needs a finite number greater than {least:g}")
        if numbers[0] > numbers[-1]:
            raise LiteralError("the first bound is greater than the second")
        return numbers

    return bind


def satisfies(type: ColumnType, value: Any, interval: Interval) -> bool:
    """Whether a value of the column lies in the interval; equal lossy codes are decided by the values."""
    code = code_of(type, value)
    if not interval.lo_code <= code <= interval.hi_code:
        return False
    if not type.is_lossy:
        return True
    lo, hi = interval.lo, interval.hi
    above = lo is None or value > lo or (value == lo and interval.lo_closed)
    return above and (hi is None or value < hi or (value == hi and interval.hi_closed))


def _intersection(sets: list[list[tuple[int, ValueReader]]], literals: Literals) -> tuple[Any, ...]:
    common = {read(literals[slot]) for slot, read in sets[0]}
    for values in sets[1:]:
        common &= {read(literals[slot]) for slot, read in values}
    common.discard(None)
    return tuple(sorted(common))


def _value(type: ColumnType, operand: Operand, slots: Slots) -> tuple[int, ValueReader]:
    """(index of the literal, its reader). TRUE and FALSE are no literals: their reader ignores its argument."""
    if operand.kind == "boolean":
        return 0, _constant(operand.boolean)
    return slots[operand.start], equal(type, reader(type, operand.kind, operand.negative))


def _bound(type: ColumnType, predicate: Predicate, slots: Slots, is_lower: bool) -> tuple[int, BoundReader]:
    (operand,) = predicate.operands
    if predicate.comparison == "like":
        prefix = prefix_lower if is_lower else prefix_upper
        return slots[operand.start], prefix(reader(type, operand.kind, False))
    return bound_reader(type, operand, slots, is_lower=is_lower, closed=predicate.comparison[-1] == "=")


def bound_reader(
    type: ColumnType, operand: Operand, slots: Slots, *, is_lower: bool, closed: bool
) -> tuple[int, BoundReader]:
    """The literal's index and how to read it as a bound."""
    side = lower if is_lower else upper
    if operand.kind == "boolean":
        return 0, _constant(side(type, _constant(operand.boolean), closed)(""))
    return slots[operand.start], side(type, reader(type, operand.kind, operand.negative), closed)


def _constant(value: _T) -> Callable[[str], _T]:
    return lambda text: value


def _ranks(type: ColumnType) -> tuple[Callable[[Bound], Any], Callable[[Bound], Any]]:
    """Keys by which the tightest lower bound is the greatest, and the tightest upper bound the least."""
    if type.is_lossy:
        # The code of the empty text is the least there is, that of no bound.
        return (
            (lambda low: (low[0], low[1] is not None, low[1] or "", not low[2])),
            (lambda high: (high[0], high[1] or "", high[2])),
        )
    # Equal codes of an exact type are the same bound; preferring the closed one makes the result independent of the order.
    return (lambda low: (low[0], low[2])), (lambda high: (high[0], not high[2]))


def interval_between(low: Bound, high: Bound, lossy: bool) -> Interval:
    """The interval from a lower to an upper bound; lossy: of a type with lossy codes."""
    lo_code, lo, lo_closed = low
    hi_code, hi, hi_closed = high
    if lo_code > hi_code:
        return EMPTY_INTERVAL
    if lossy and lo is not None and hi is not None:
        # The least text above another is that with a NUL behind it.
        least, above = (lo if lo_closed else lo + "\0"), (hi + "\0" if hi_closed else hi)
        if least >= above:
            return EMPTY_INTERVAL
    return Interval(lo_code, hi_code, lo, hi, lo_closed, hi_closed)
