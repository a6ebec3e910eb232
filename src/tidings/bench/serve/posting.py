"""Posts changes at a rate, and knows when each was due: a service that falls behind is not given time by a waiting client."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidings.bench.serve.service import Service
from tidings.model.codes import Int64Array

_TICK_NS = 10_000_000
"""Changes of so long are one request, unless the service has not answered the one before."""
_SAMPLE_NS = 250_000_000


@dataclass
class Posted:
    """A request each: when its oldest change was due, when it was answered, and the last seq then."""

    due_ns: list[int] = field(default_factory=list)
    answered_ns: list[int] = field(default_factory=list)
    last_seq: list[int] = field(default_factory=list)
    changes: int = 0
    seconds: float = 0.0
    first_seq: int = 0
    """The last seq before all of them."""

    def due(self, seqs: Int64Array) -> Int64Array:
        """When the changes with these seqs were due, in ns of the monotonic clock."""
        return np.array(self.due_ns, np.int64)[np.searchsorted(np.array(self.last_seq, np.int64), seqs)]

    def has(self, seqs: Int64Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which seqs are of changes posted here."""
        return (seqs > self.first_seq) & (seqs <= self.last_seq[-1])

    @property
    def answered_ms(self) -> NDArray[np.float64]:
        return (np.array(self.answered_ns, np.int64) - np.array(self.due_ns, np.int64)) / 1e6


def post_at_rate(service: Service, lines: Sequence[bytes], rate: int, sample: Callable[[], object]) -> Posted:
    """Posts all lines, `rate` a second. sample: called four times a second."""
    posted = Posted(first_seq=service.ready()["seq"])
    began = sampled = time.monotonic_ns()
    tick = given = 0
    while given < len(lines):
        due = began + tick * _TICK_NS
        now = time.monotonic_ns()
        if now < due:
            time.sleep((due - now) / 1e9)
            now = time.monotonic_ns()
        tick = max(tick, (now - began) // _TICK_NS) + 1
        until = min(len(lines), tick * rate * _TICK_NS // 1_000_000_000)
        if until > given:
            posted.last_seq.append(service.post_changes(lines[given:until]))
            posted.due_ns.append(due)
            posted.answered_ns.append(time.monotonic_ns())
            given = until
        if now - sampled >= _SAMPLE_NS:
            sampled = now
            sample()
    posted.changes, posted.seconds = given, (time.monotonic_ns() - began) / 1e9
    return posted
