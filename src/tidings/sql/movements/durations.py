"""Intervals of fixed length, such as '90 minutes' or '1 day 2 hours', as microseconds."""

from __future__ import annotations

import re
from fractions import Fraction

from tidings.sql.literals import LiteralError

MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
DAYS_MAX = 36_500

_OF_VARYING_LENGTH = frozenset({"month", "quarter", "year", "decade"})
_PART = re.compile(r"(-?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]+)(?:\s+|$)")
_TOO_LONG = f"the longest interval is {DAYS_MAX:,} days"
# Longer numbers are beyond the limit or finer than a microsecond, and would only cost time.
_NUMBER_LENGTH_MAX = 40


def read_duration(text: str) -> int:
    """The length in microseconds of one or more numbers with units; LiteralError where it is none or not exact."""
    text = text.strip()
    total = Fraction(0)
    at = 0
    while at < len(text) or not text:
        part = _PART.match(text, at)
        if part is None:
            raise LiteralError("an interval is written INTERVAL '1 hour' or INTERVAL '1 day 2 hours'")
        sign, number, unit = part.groups()
        if sign:
            raise LiteralError("the interval must be positive")
        if len(number) > _NUMBER_LENGTH_MAX:
            raise LiteralError(_TOO_LONG)
        total += Fraction(number) * _length_of(unit)
        at = part.end()
    if total.denominator != 1:
        raise LiteralError("the interval must be a whole number of microseconds")
    if total == 0:
        raise LiteralError("the interval must be positive")
    if total > DAYS_MAX * MICROSECONDS["day"]:
        raise LiteralError(_TOO_LONG)
    return int(total)


def _length_of(unit: str) -> int:
    name = unit.lower().removesuffix("s")
    if name in _OF_VARYING_LENGTH:
        raise LiteralError(f"a {name} has no fixed length: use days, such as INTERVAL '30 days'")
    if name not in MICROSECONDS:
        raise LiteralError(f"there is no unit {unit[:40]!r}: use {', '.join(MICROSECONDS)}")
    return MICROSECONDS[name]
