"""Literals as typed values: how the text of a number, string, date or timestamp is read for a column of each type.

A reader is made once per literal of a template and called once per subscription, so the common cases come first.
Readers raise LiteralError on text that does not fit; the caller then finds out where it stands.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from tidings.model.types import ColumnType
from tidings.sql.fingerprint import is_number

Reader = Callable[[str], Any]

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?"
)


class LiteralError(ValueError):
    """A literal does not fit its column's type; the text says why."""


def reader(type: ColumnType, kind: str, negative: bool) -> Reader:
    """The function that reads a literal of the kind for a column of the type.

    Integer columns get an int, or a Decimal where the number is no integer (kind `whole`: an error); DATE columns get a
    date, or a datetime where a timestamp was written.
    """
    if kind == "whole":
        return _negative_whole if negative else _whole
    if type in (ColumnType.BIGINT, ColumnType.INT):
        return _negative_integer if negative else _integer
    if type is ColumnType.DOUBLE:
        return _negative_double if negative else _double
    if type is ColumnType.TEXT:
        return _text
    if type is ColumnType.DATE:
        return _timestamp if kind == "timestamp" else _date
    return _date_as_timestamp if kind == "date" else _timestamp


def _integer(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:
        return _decimal(text)


def _whole(text: str) -> int:
    value = _integer(text)
    if value.__class__ is not int:
        raise LiteralError("a whole number is needed")
    return int(value)


def _negative_whole(text: str) -> int:
    return -_whole(text)


def _negative_integer(text: str) -> int | Decimal:
    value = _integer(text)
    # Decimal's minus sign rounds to the context's precision; copy_negate does not.
    return -value if value.__class__ is int else Decimal(value).copy_negate()


def _decimal(text: str) -> int | Decimal:
    """A number that is not plain digits: an int if it is whole and of reasonable size, else exact as a Decimal."""
    if not is_number(text):
        raise LiteralError("a number is needed")
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise LiteralError("the exponent is too large") from None
    # Comparing is exact and cheap at any exponent; converting 1e999999999 to an int would not be.
    if value < 10**20 and value == value.to_integral_value():
        return int(value)
    return value


def _double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise LiteralError("a number is needed") from None


def _negative_double(text: str) -> float:
    return 0.0 - _double(text)


def _text(text: str) -> str:
    if text[0] != "'":
        raise LiteralError("a text in single quotes is needed")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise LiteralError("the text is not valid Unicode") from None
    return text[1:-1].replace("''", "'")


def _date(text: str) -> dt.date:
    inner = _text(text)
    if _DATE.fullmatch(inner) is None:
        raise LiteralError("a date is written 'YYYY-MM-DD'; for a time of day write TIMESTAMP '...'")
    try:
        return dt.date.fromisoformat(inner)
    except ValueError as error:
        raise LiteralError(f"there is no such date: {error}") from None


def _date_as_timestamp(text: str) -> dt.datetime:
    return dt.datetime.combine(_date(text), dt.time())


def _timestamp(text: str) -> dt.datetime:
    """ISO date, or date and time with up to microseconds; an offset is converted to UTC, which values are kept in."""
    inner = _text(text)
    if _TIME.fullmatch(inner) is None and _DATE.fullmatch(inner) is None:
        raise LiteralError("a time is written 'YYYY-MM-DD hh:mm:ss', with up to six decimals and an offset at will")
    try:
        value = dt.datetime.fromisoformat(inner)
        return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise LiteralError(f"there is no such time: {error}") from None
