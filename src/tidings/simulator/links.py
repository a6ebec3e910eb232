"""A virtual clock, and links between nodes that lose and delay what is sent."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from tidings.kernels.arrays import I64
from tidings.network.messages import Frame, Message, Transfer
from tidings.simulator.config import Faults

HOP_MS = 1.0
"""A link of the network below."""


def trace_line(now: float, frame: Frame) -> bytes:
    """What a node sends, as a line of JSON."""
    body = frame.body
    what: dict[str, Any] = {"at": now, "from": frame.sender, "to": frame.to, "session": frame.session}
    what |= {"to_session": frame.to_session, "kind": type(body).__name__.lower(), "bytes": frame.size}
    if isinstance(body, Message):
        what |= {"seq": body.event.seq, "part": body.part, "version": body.event.version, "hops": body.hops}
        what |= {"payload": body.event.payload_id, "has_payload": body.has_payload, "source": body.source}
    elif not isinstance(body, Transfer):
        what |= body._asdict()
    return msgspec.json.encode(what) + b"\n"


class Clock:
    """What will happen, in order of time; what happens at one time, in the order in which it was planned."""

    def __init__(self) -> None:
        self.now = 0.0
        self._planned: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._count = 0

    def at(self, time: float, action: Callable[[Any], None], argument: Any) -> None:
        self._count += 1
        heapq.heappush(self._planned, (time, self._count, action, argument))

    def step(self) -> bool:
        """Lets the next thing happen; false if there is none."""
        if not self._planned:
            return False
        self.now, _, action, argument = heapq.heappop(self._planned)
        action(argument)
        return True


class Links:
    """Carries frames. Without faults, in as many milliseconds as there are links on the way below."""

    def __init__(
        self, clock: Clock, faults: Faults | None, ip_hops: I64, rng: Random, arrive: Callable[[Frame], None]
    ) -> None:
        self._clock, self._faults, self._random, self._arrive = clock, faults, rng, arrive
        self._hops = ip_hops.tolist()
        self.cut: frozenset[int] = frozenset()
        """Nodes that are cut off from all others, but not from each other."""
        self.trace = 0
        """A digest of everything sent, and when."""

    def send(self, frame: Frame, size: int) -> None:
        now, faults = self._clock.now, self._faults
        if faults is None:
            delay = HOP_MS * self._hops[frame.sender][frame.to]
        elif self._random.random() < faults.loss or (frame.sender in self.cut) != (frame.to in self.cut):
            delay = -1.0
        else:
            delay = self._random.uniform(*faults.delay_ms)
        self.trace = hash((self.trace, now, frame.sender, frame.to, size, delay))
        if delay >= 0:
            self._clock.at(now + delay, self._arrive, frame)
