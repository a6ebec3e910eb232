"""Short repeats and their medians; memory of this process."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Seconds(NamedTuple):
    """Time of a call on the wall clock, and of all processors that worked on it: the latter is blind to other work."""

    wall: float
    cpu: float


def timed(run: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[Seconds, T]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = run(*args, **kwargs)
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu), result


def each(run: Callable[[T], object], items: Iterable[T]) -> float:
    """Mean seconds of one call, over the items: calls that pay for others, by growing or rebuilding, count in full."""
    return mean([timed(run, item)[0].wall for item in items])


def within(budget_s: float, run: Callable[[T], object], items: Iterable[T]) -> float:
    """Median seconds of one call, over as many items as fit into the budget, at least one."""
    taken: list[float] = []
    for item in items:
        taken.append(timed(run, item)[0].wall)
        if sum(taken) + taken[-1] > budget_s:
            break
    return median(taken)


def spent(budget_s: float, run: Callable[[T], object], items: Iterable[T]) -> tuple[int, Seconds]:
    """(calls made, time they took together), until the budget is spent: for calls that cost very different times."""
    calls, wall, cpu = 0, 0.0, 0.0
    for item in items:
        taken, _ = timed(run, item)
        calls, wall, cpu = calls + 1, wall + taken.wall, cpu + taken.cpu
        if wall > budget_s:
            break
    return calls, Seconds(wall, cpu)


def rss_bytes() -> int:
    """Resident memory of this process, garbage given back first; 0 where the system does not tell."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except (OSError, AttributeError):
        pass
    return 0
