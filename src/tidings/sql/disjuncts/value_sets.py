"""Sets of values of a column: single values, intervals, and null. Union and intersection are exact.

Values that were written with = or IN stay apart from intervals: they become channels, intervals become coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tidings.model.codes import DAY_US, code_of
from tidings.model.types import ColumnType
from tidings.sql.bind import interval_between, satisfies
from tidings.sql.bounds import BELOW_ZERO
from tidings.sql.constants import FULL_INTERVAL, Interval


class ValueSet(NamedTuple):
    """`values` are ascending, `intervals` ascending, apart from each other, never empty, and hold none of the values."""

    values: tuple[Any, ...] = ()
    intervals: tuple[Interval, ...] = ()
    has_null: bool = False

    @property
    def alternatives(self) -> int:
        """Number of conjunctions that the set needs: one for all values, one for each interval, one for null."""
        return bool(self.values) + len(self.intervals) + self.has_null


NOTHING = ValueSet()
NULL = ValueSet(has_null=True)
EVERYTHING = ValueSet(intervals=(FULL_INTERVAL,), has_null=True)


def union(type: ColumnType, sets: Iterable[ValueSet]) -> ValueSet:
    sets = list(sets)
    intervals = merged(type, [interval for each in sets for interval in each.intervals])
    values = {value for each in sets for value in each.values}
    if values and intervals:
        intervals = _extended(type, intervals, values)
        values = {value for value in values if not _is_in(type, value, intervals)}
    return ValueSet(tuple(sorted(values)), intervals, any(each.has_null for each in sets))


def _extended(type: ColumnType, intervals: tuple[Interval, ...], values: set[Any]) -> tuple[Interval, ...]:
    """The intervals with the values that lie at their ends."""
    coded = [(code_of(type, value), value) for value in values]
    points = [Interval(code, code, value, value, True, True) for code, value in coded]
    together = merged(type, [*intervals, *points])
    return tuple([each for each in together if _overlaps(type, (each,), intervals)])


def intersection(type: ColumnType, a: ValueSet, b: ValueSet) -> ValueSet:
    return ValueSet(_common(type, a, b), _overlaps(type, a.intervals, b.intervals), a.has_null and b.has_null)


def _common(type: ColumnType, a: ValueSet, b: ValueSet) -> tuple[Any, ...]:
    """The single values of an intersection, ascending."""
    if a.values == b.values:
        return a.values
    common = set(a.values).intersection(b.values)
    if b.intervals:
        common.update(value for value in a.values if _is_in(type, value, b.intervals))
    if a.intervals:
        common.update(value for value in b.values if _is_in(type, value, a.intervals))
    return tuple(sorted(common))


def is_subset(type: ColumnType, a: ValueSet, b: ValueSet) -> bool:
    """Whether b contains a. May be False for equal intervals that are written differently."""
    return intersection(type, a, b) == a


def merged(type: ColumnType, intervals: list[Interval]) -> tuple[Interval, ...]:
    """The intervals as few, ascending and apart; empty ones are left out."""
    found: list[Interval] = []
    for interval in sorted([each for each in intervals if not each.is_empty], key=_lower_key):
        if found and _touches(type, found[-1], interval):
            if _upper_key(found[-1]) < _upper_key(interval):
                found[-1] = found[-1]._replace(hi_code=interval.hi_code, hi=interval.hi, hi_closed=interval.hi_closed)
        else:
            found.append(interval)
    return tuple(found)


def _is_in(type: ColumnType, value: Any, intervals: tuple[Interval, ...]) -> bool:
    return any(satisfies(type, value, interval) for interval in intervals)


def _overlaps(type: ColumnType, a: tuple[Interval, ...], b: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """The intersections of two ascending lists of intervals, by walking both side by side."""
    found: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low = max(a[i], b[j], key=_lower_key)
        high = min(a[i], b[j], key=_upper_key)
        common = interval_between(
            (low.lo_code, low.lo, low.lo_closed), (high.hi_code, high.hi, high.hi_closed), type.is_lossy
        )
        if not common.is_empty:
            found.append(common)
        if high is a[i]:
            i += 1
        else:
            j += 1
    return tuple(found)


def _lower_key(interval: Interval) -> tuple[Any, ...]:
    """Orders by the lower end. Codes decide, but for texts: at equal codes these are compared, none being the least."""
    lo = interval.lo
    is_text = lo.__class__ is str
    return (interval.lo_code, is_text, lo if is_text else "", not interval.lo_closed)


def _upper_key(interval: Interval) -> tuple[Any, ...]:
    hi = interval.hi
    return (interval.hi_code, hi if hi.__class__ is str else "", interval.hi_closed)


def _touches(type: ColumnType, a: Interval, b: Interval) -> bool:
    """Whether there is no value between two intervals of which the second begins no earlier."""
    if type is ColumnType.DOUBLE and a.hi_code == BELOW_ZERO:
        return b.lo_code <= 0
    if not type.is_lossy:
        return b.lo_code <= a.hi_code + (DAY_US if type is ColumnType.DATE else 1)
    if a.hi is None or b.lo is None:
        return True
    return bool(b.lo < a.hi or (b.lo == a.hi and (b.lo_closed or a.hi_closed)))
