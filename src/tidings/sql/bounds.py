"""Comparisons with a constant as typed bounds: `x > 1.5` on an integer column is the closed lower bound 2, and so on.

A bound is (code, value, closed): the closed int64 code, and the typed value with its closedness as written. Bounds that
exclude everything get a code just outside int64, so that the interval they end comes out empty with no further test.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tidings.model.codes import CODE_MAX, CODE_MIN, DAY_US, code_of
from tidings.model.types import ColumnType
from tidings.sql.literals import LiteralError, Reader

Bound = tuple[int, Any, bool]
BoundReader = Callable[[str], Bound]
ValueReader = Callable[[str], Any]

NO_LOWER: Bound = (CODE_MIN, None, False)
NO_UPPER: Bound = (CODE_MAX, None, False)
NOTHING_ABOVE: Bound = (CODE_MAX + 1, None, False)
NOTHING_BELOW: Bound = (CODE_MIN - 1, None, False)

_LIMITS = {ColumnType.BIGINT: (-(2**63), 2**63 - 1), ColumnType.INT: (-(2**31), 2**31 - 1)}
_DAY = dt.timedelta(days=1)
_pack = struct.Struct("<d").pack
_unpack = struct.Struct("<q").unpack
_MIRROR = 2**63 - 1
_MINUS_ZERO, BELOW_ZERO = -1, -2
"""Codes of -0.0, which no value has (it is the same number as 0.0) and so no interval may end with, and of the double below."""
_INFINITE, _MINUS_INFINITE = (code_of(ColumnType.DOUBLE, value) for value in (math.inf, -math.inf))
_CODE_POINT_MAX, _FIRST_SURROGATE, _AFTER_SURROGATES = 0x10FFFF, 0xD800, 0xE000


def lower(type: ColumnType, read: Reader, closed: bool) -> BoundReader:
    """Reader of the bound of `>=` (closed) and `>`."""
    if type in _LIMITS:
        return _integer_lower(read, closed, *_LIMITS[type])
    if type is ColumnType.DOUBLE:
        return _double_lower(read, closed)
    if type is ColumnType.TEXT:
        return lambda text: (code_of(type, value := read(text)), value, closed)
    if type is ColumnType.DATE:
        return _date_lower(read, closed)
    if type is ColumnType.BOOLEAN:
        return _boolean_lower(read, closed)
    step = 0 if closed else 1
    return lambda text: (code_of(type, value := read(text)) + step, value, closed)


def upper(type: ColumnType, read: Reader, closed: bool) -> BoundReader:
    """Reader of the bound of `<=` (closed) and `<`."""
    if type in _LIMITS:
        return _integer_upper(read, closed, *_LIMITS[type])
    if type is ColumnType.DOUBLE:
        return _double_upper(read, closed)
    if type is ColumnType.TEXT:
        return _text_upper(read, closed)
    if type is ColumnType.DATE:
        return _date_upper(read, closed)
    if type is ColumnType.BOOLEAN:
        return _boolean_upper(read, closed)
    step = 0 if closed else 1
    return lambda text: (code_of(type, value := read(text)) - step, value, closed)


def equal(type: ColumnType, read: Reader) -> ValueReader:
    """Reader of the value of `=`: None where no value of the column's type equals the constant."""
    if type in _LIMITS:
        low, high = _LIMITS[type]

        def integer(text: str) -> Any:
            value = read(text)
            return value if value.__class__ is int and low <= value <= high else None

        return integer
    if type is ColumnType.DOUBLE:

        def double(text: str) -> Any:
            value = read(text) + 0.0  # -0.0 and 0.0 are the same constant
            return value if math.isfinite(value) else None

        return double
    if type is ColumnType.DATE:

        def date(text: str) -> Any:
            value = read(text)
            if value.__class__ is dt.datetime:
                return value.date() if value.time() == dt.time() else None
            return value

        return date
    return read


def prefix_lower(read: Reader) -> BoundReader:
    """Reader of the lower bound of LIKE, from its pattern."""

    def bound(text: str) -> Bound:
        prefix, _ = _prefix(read(text))
        return (code_of(ColumnType.TEXT, prefix), prefix, True) if prefix else NO_LOWER

    return bound


def prefix_upper(read: Reader) -> BoundReader:
    """Reader of the upper bound of LIKE: the least text above all with the prefix; the pattern itself if it has no %."""

    def bound(text: str) -> Bound:
        prefix, is_open = _prefix(read(text))
        end = _after(prefix) if is_open else prefix
        return NO_UPPER if end is None else (code_of(ColumnType.TEXT, end), end, not is_open)

    return bound


def _prefix(pattern: str) -> tuple[str, bool]:
    """The text before a pattern's final %, and whether there is one."""
    prefix = pattern.rstrip("%")
    if "%" in prefix or "_" in prefix or "\\" in prefix:
        raise LiteralError("a pattern is a prefix and a final %, as in LIKE 'ab%', without other wildcards and escapes")
    return prefix, prefix != pattern


def _after(prefix: str) -> str | None:
    """The least text that is greater than every text with the prefix; None: there is none."""
    for last in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[last])
        if code < _CODE_POINT_MAX:
            return prefix[:last] + chr(_AFTER_SURROGATES if code + 1 == _FIRST_SURROGATE else code + 1)
    return None


def _integer_lower(read: Reader, closed: bool, low: int, high: int) -> BoundReader:
    step = 0 if closed else 1

    def bound(text: str) -> Bound:
        value = read(text)
        if value > high:
            return NOTHING_ABOVE
        if value < low:
            return NO_LOWER
        if value.__class__ is Decimal:
            value = math.ceil(value)
            return value, value, True
        return (value + step, value, closed) if value + step <= high else NOTHING_ABOVE

    return bound


def _integer_upper(read: Reader, closed: bool, low: int, high: int) -> BoundReader:
    step = 0 if closed else 1

    def bound(text: str) -> Bound:
        value = read(text)
        if value < low:
            return NOTHING_BELOW
        if value > high:
            return NO_UPPER
        if value.__class__ is Decimal:
            value = math.floor(value)
            return value, value, True
        return (value - step, value, closed) if value - step >= low else NOTHING_BELOW

    return bound


def _boolean_lower(read: Reader, closed: bool) -> BoundReader:
    def bound(text: str) -> Bound:
        value = read(text)
        return NOTHING_ABOVE if value and not closed else (int(value) + (not closed), value, closed)

    return bound


def _boolean_upper(read: Reader, closed: bool) -> BoundReader:
    def bound(text: str) -> Bound:
        value = read(text)
        return NOTHING_BELOW if not value and not closed else (int(value) - (not closed), value, closed)

    return bound


def _double_lower(read: Reader, closed: bool) -> BoundReader:
    step = 0 if closed else 1

    def bound(text: str) -> Bound:
        value = read(text)
        if value - value != 0.0:  # infinite: the literal is beyond all doubles
            return NOTHING_ABOVE if value > 0 else NO_LOWER
        bits = _unpack(_pack(value + 0.0))[0]
        code = (bits if bits >= 0 else bits ^ _MIRROR) + step
        if code == _MINUS_ZERO:
            code = 0
        return (code, value, closed) if code < _INFINITE else NOTHING_ABOVE

    return bound


def _double_upper(read: Reader, closed: bool) -> BoundReader:
    step = 0 if closed else 1

    def bound(text: str) -> Bound:
        value = read(text)
        if value - value != 0.0:
            return NO_UPPER if value > 0 else NOTHING_BELOW
        bits = _unpack(_pack(value + 0.0))[0]
        code = (bits if bits >= 0 else bits ^ _MIRROR) - step
        if code == _MINUS_ZERO:
            code = BELOW_ZERO
        return (code, value, closed) if code > _MINUS_INFINITE else NOTHING_BELOW

    return bound


def _text_upper(read: Reader, closed: bool) -> BoundReader:
    def bound(text: str) -> Bound:
        value = read(text)
        if not value and not closed:  # no text is less than the empty one
            return NOTHING_BELOW
        return code_of(ColumnType.TEXT, value), value, closed

    return bound


def _date_lower(read: Reader, closed: bool) -> BoundReader:
    step = 0 if closed else DAY_US

    def bound(text: str) -> Bound:
        value = read(text)
        if value.__class__ is dt.datetime:
            day = value.date()
            if value.time() != dt.time():  # within the day: the next midnight is the first that qualifies
                if day == dt.date.max:
                    return NOTHING_ABOVE
                day += _DAY
                return code_of(ColumnType.DATE, day), day, True
            value = day
        if value == dt.date.max and not closed:
            return NOTHING_ABOVE
        return code_of(ColumnType.DATE, value) + step, value, closed

    return bound


def _date_upper(read: Reader, closed: bool) -> BoundReader:
    step = 0 if closed else DAY_US

    def bound(text: str) -> Bound:
        value = read(text)
        if value.__class__ is dt.datetime:
            within_day = value.time() != dt.time()
            value = value.date()
            if within_day:
                return code_of(ColumnType.DATE, value), value, True
        if value == dt.date.min and not closed:
            return NOTHING_BELOW
        return code_of(ColumnType.DATE, value) - step, value, closed

    return bound
