"""Calls repeated, and what one of them takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean
from typing import TypeVar

from tidings.bench.timing import Seconds, timed

T = TypeVar("T")


def each(run: Callable[[T], object], items: Iterable[T]) -> float:
    """Mean seconds of one call, over the items: calls that pay for others, by growing or rebuilding, count in full."""
    return mean([timed(run, item)[0].wall for item in items])


def spent(budget_s: float, run: Callable[[T], object], items: Iterable[T]) -> tuple[int, Seconds]:
    """(calls made, time they took together), until the budget is spent: for calls that cost very different times."""
    calls, wall, cpu = 0, 0.0, 0.0
    for item in items:
        taken, _ = timed(run, item)
        calls, wall, cpu = calls + 1, wall + taken.wall, cpu + taken.cpu
        if wall > budget_s:
            break
    return calls, Seconds(wall, cpu)
