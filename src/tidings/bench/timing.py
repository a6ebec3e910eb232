"""Short repeats and their medians; memory of this process."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

T = TypeVar("T")


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def each(run: Callable[[T], object], items: Iterable[T]) -> float:
    """Median seconds of one call, over the items."""
    return median([seconds(lambda item=item: run(item)) for item in items])  # type: ignore[misc]


def within(budget_s: float, run: Callable[[T], Any], items: Iterable[T]) -> float:
    """Median seconds of one call, over as many items as fit into the budget, at least one."""
    taken: list[float] = []
    for item in items:
        taken.append(seconds(lambda item=item: run(item)))  # type: ignore[misc]
        if sum(taken) + median(taken) > budget_s:
            break
    return median(taken)


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
