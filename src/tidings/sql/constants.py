"""The constants of a subscription: the values that make it a point in its family's parameter space."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.model.codes import CODE_MAX, CODE_MIN


class Interval(NamedTuple):
    """The values a range column may take, as closed int64 codes and as the typed bounds they came from.

    `lo` and `hi` are None where unbounded. For exact types the codes alone decide (open ends are already moved by one).
    For text, whose codes are lossy, the codes are those of the bounds themselves, a superset: a row whose code equals
    an end must be checked against `lo`/`hi` and their closedness. Nothing satisfies EMPTY_INTERVAL.
    """

    lo_code: int
    hi_code: int
    lo: Any | None
    hi: Any | None
    lo_closed: bool
    hi_closed: bool

    @property
    def is_empty(self) -> bool:
        return self.lo_code > self.hi_code

    def holds(self, value: Any) -> bool:
        """Whether a value lies within, by the typed bounds; null lies nowhere. For references: one value at a time."""
        if value is None or self.is_empty:
            return False
        if self.lo is not None and (value < self.lo or (value == self.lo and not self.lo_closed)):
            return False
        return not (self.hi is not None and (value > self.hi or (value == self.hi and not self.hi_closed)))


EMPTY_INTERVAL = Interval(CODE_MAX, CODE_MIN, None, None, False, False)
FULL_INTERVAL = Interval(CODE_MIN, CODE_MAX, None, None, False, False)


class Constants(NamedTuple):
    """Values for a shape's slots, in the order of the shape's columns.

    `equalities`: per column its distinct values, ascending; no values means that nothing can match. `intervals`: per
    range column. `movement`: the numbers of the movement predicate, one or two. `disjuncts`: for a shape of several
    disjuncts the constants of each, and nothing else.
    """

    equalities: tuple[tuple[Any, ...], ...] = ()
    intervals: tuple[Interval, ...] = ()
    movement: tuple[float, ...] = ()
    disjuncts: tuple[Constants, ...] = ()

    @property
    def is_single(self) -> bool:
        """True when every equality column has exactly one value."""
        for values in self.equalities:  # noqa: SIM110 - asked for every subscription, and twice as fast as all()
            if len(values) != 1:
                return False
        return True
