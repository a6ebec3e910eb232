"""What a call takes, and memory of this process."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from pathlib import Path
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
