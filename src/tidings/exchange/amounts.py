"""Amounts: what bids are compared by, as the values that people wrote and not as codes."""

from __future__ import annotations

import datetime as dt
import math

from tidings.model.codes import double_of
from tidings.model.types import ColumnType

Amount = int | float | dt.date
"""A value of the declared attribute; a TIMESTAMP is a datetime, which is a date too."""

_EPOCH = dt.datetime(1970, 1, 1)


def amount_of(type: ColumnType, code: int) -> Amount | None:
    """The value that a code stands for; None where the type has no such value, as a date after 9999-12-31."""
    if type is ColumnType.DOUBLE:
        value = double_of(code)
        return value if math.isfinite(value) else None
    if type is ColumnType.BOOLEAN:
        return bool(code)
    if type in (ColumnType.DATE, ColumnType.TIMESTAMP):
        try:
            moment = _EPOCH + dt.timedelta(microseconds=code)
        except OverflowError:
            return None
        return moment.date() if type is ColumnType.DATE else moment
    return code


def json_of(amount: Amount) -> int | float | str:
    """An amount as it stands in JSON: numbers as they are, dates and times as ISO texts."""
    return amount.isoformat() if isinstance(amount, dt.date) else amount
