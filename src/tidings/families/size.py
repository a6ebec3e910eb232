"""How large a subscription may be: it is refused before points are made of it, from its constants alone.

Values of IN multiply: a query with lists of 31 and 32 values lies on 992 channels, each with the ends of all its ranges. So a
short text of SQL could take a thousand times its size.
"""

from __future__ import annotations

from json.encoder import encode_basestring
from math import prod
from typing import Any

from tidings.model.errors import SqlError
from tidings.sql.constants import Constants

POINTS_MAX = 1_000
"""Points of a subscription: combinations of the values of its IN lists, in all its disjuncts."""
POINTS_BYTES_MAX = 1 << 20
"""Bytes that the points of a subscription may take at most, details and texts included. A subscription that has one value for
each column takes less than a kilobyte, one with a thousand numbers in a list about half of this."""

_POINT_BYTES = 500
"""Of a point in batches and in an index, its texts and the ends of its ranges left out."""
_VALUE_BYTES = 24
"""Of a value of a list that is kept as such."""


def check_size(constants: Constants, points_max: int = POINTS_MAX, *, is_boxed: bool = False) -> None:
    """SqlError if a query with these constants would have too many points, or points too large.

    is_boxed: a query with more than `points_max` combinations has so many points all the same, and larger ones (joins).
    """
    points = size = 0
    for one in constants.disjuncts or (constants,):
        count = prod([len(values) for values in one.equalities])
        points += count
        if is_boxed:
            count = min(count, points_max)
        elif points > points_max:
            continue
        ends = sum([_text_bytes(end) for interval in one.intervals for end in (interval.lo, interval.hi)])
        size += count * (_POINT_BYTES + 16 * len(one.intervals) + ends)
        for values in one.equalities:
            texts = sum(map(_text_bytes, values)) if values and isinstance(values[0], str) else 0
            size += _VALUE_BYTES * len(values) + texts + texts * count // max(1, len(values))
    if points > points_max and not is_boxed:
        hint = f"at most {points_max:,} combinations are possible; split the subscription"
        raise SqlError(f"the IN lists combine to {points:,} channels", construct="IN", hint=hint)
    if size > POINTS_BYTES_MAX:
        raise SqlError(
            f"the subscription would take about {size >> 10:,} KiB",
            hint=f"at most {POINTS_BYTES_MAX >> 10:,} KiB are possible: give IN fewer values, compare with shorter texts,"
            " or split it into several subscriptions",
        )


def _text_bytes(value: Any) -> int:
    """Bytes of a text as JSON, as indexes keep it; 0 for other values."""
    return len(encode_basestring(value).encode()) if isinstance(value, str) else 0
