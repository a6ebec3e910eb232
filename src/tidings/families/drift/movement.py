"""When a value has moved far enough: the definition, in IEEE doubles and exactly as written.

The kernels decide by the same expressions; there is no other place where movement is defined.
"""

from __future__ import annotations

import math

from tidings.sql.shape import MovementKind


def has_moved(kind: MovementKind, told: float, now: float, least: float) -> bool:
    """Whether `now` has left the open interval around the value last told."""
    low, high = interval_around(kind, told, least)
    return now >= high or now <= low


def interval_around(kind: MovementKind, told: float, least: float) -> tuple[float, float]:
    """The thresholds of `has_moved`: a value has moved if it is at most the first or at least the second."""
    if kind == "moved":
        return told - least, told + least
    if kind == "moved_percent":
        step = abs(told) * least / 100
        return told - step, told + step
    return told / least, told * least


def has_been_silent(told: int | None, now: int | None, ticks: int) -> bool:
    """Whether the clock column has advanced by at least `ticks` since the last notified row. False if a time is None."""
    return told is not None and now is not None and now - told >= ticks


def roundest_between(low: float, high: float) -> float:
    """The number in the closed interval with the fewest binary digits, which is unique.

    `moved(x) BETWEEN a AND b`, and the same of percent and ratio, lets the server choose a radius from a to b. Choosing round
    numbers gives many subscriptions the same radius, so that they are notified together and share messages.
    """
    if low == high:
        return low
    for exponent in range(math.frexp(high)[1] - 1, -1075, -1):
        unit = math.ldexp(1.0, exponent)
        multiple = math.floor(high / unit) * unit
        if multiple >= low:
            return multiple
    return low
