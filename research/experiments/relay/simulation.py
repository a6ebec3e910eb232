"""One document on its way through a plan, event by event: when does every view have its result?

- A view is computed when its last input is in, on the first free core of its machine.
- Then it sends its message to every view it feeds, in the order of the plan. A machine sends one message after the other.
- A message is on its way for as long as the distance takes, and a little longer by chance. Views of one machine tell each
  other for nothing.

Time starts when the publisher begins to send. What a view has to say, and how long that takes to compute, is asked when it is
computed: a table knows, or the nodes that run in production do the work (`work.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from typing import Protocol

import numpy as np

from research.experiments.relay.machines import Machines
from tidings.kernels.arrays import F64, I64
from tidings.relay.files import View
from tidings.relay.plan import PUBLISHER, RelayPlan


class Work(Protocol):
    """What views do with one document."""

    def fed(self, view: int) -> int:
        """Bytes of the message from the publisher to a view that it feeds."""

    def compute(self, view: int) -> tuple[float, int]:
        """Seconds that a view computes, when it has all inputs, and bytes of its message to others."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """A plan on machines: views by number, machine of each, the inputs they wait for, whom they feed."""

    machines: Machines
    machine_of: list[int]
    waits: list[int]
    feeds: list[list[int]]
    roots: list[int]


@dataclass(frozen=True, eq=False)
class Delivery:
    """done_s: when each view has its result. messages, bytes: that machines sent."""

    done_s: F64
    messages: int
    bytes: int


def deploy(plan: RelayPlan, views: Sequence[View], machines: Machines, machine_of: I64) -> Deployment:
    number = {view.id: place for place, view in enumerate(views)}
    return Deployment(
        machines,
        machine_of.tolist(),
        [len(plan.inputs[view.id]) for view in views],
        [[number[fed] for fed in plan.dependants[view.id]] for view in views],
        [number[fed] for fed in plan.dependants[PUBLISHER]],
    )


def deliver(deployment: Deployment, work: Work, rng: np.random.Generator) -> Delivery:
    return _Run(deployment, work, rng).finished()


_JITTERS = 4_096


class _Run:
    def __init__(self, deployment: Deployment, work: Work, rng: np.random.Generator) -> None:
        machines = deployment.machines
        self._deployment, self._work, self._rng = deployment, work, rng
        self._delay: list[list[float]] = machines.delay_s.tolist()
        self._rate: list[float] = machines.bytes_per_s.tolist()
        self._jitters: list[float] = []
        # (time, number of the event, view, whether it is computed: else an input has come)
        self._events: list[tuple[float, int, int, bool]] = []
        self._made = 0
        self._waits = list(deployment.waits)
        self._cores = [[0.0] * cores for cores in machines.cores.tolist()]
        self._sending_until = [0.0] * len(self._rate)
        self._bytes_of = [0] * len(self._waits)
        self._done = [np.nan] * len(self._waits)
        self.messages = self.bytes = 0

    def finished(self) -> Delivery:
        for view in self._deployment.roots:
            self._send(0.0, self._deployment.machines.publisher, view, self._work.fed(view))
        while self._events:
            time, _, view, is_computed = heappop(self._events)
            if is_computed:
                self._done[view] = time
                for fed in self._deployment.feeds[view]:
                    self._send(time, self._deployment.machine_of[view], fed, self._bytes_of[view])
            else:
                self._arrive(time, view)
        return Delivery(np.array(self._done), self.messages, self.bytes)

    def _arrive(self, time: float, view: int) -> None:
        self._waits[view] -= 1
        if self._waits[view] == 0:
            cores = self._cores[self._deployment.machine_of[view]]
            seconds, self._bytes_of[view] = self._work.compute(view)
            end = max(time, cores[0]) + seconds
            heapreplace(cores, end)
            self._at(end, view, is_computed=True)

    def _send(self, time: float, source: int, view: int, size: int) -> None:
        target = self._deployment.machine_of[view]
        if source != target:
            begin = max(time, self._sending_until[source])
            end = begin + self._deployment.machines.message_s + size / self._rate[source]
            self._sending_until[source] = end
            time = end + self._delay[source][target] + self._jitter()
            self.messages += 1
            self.bytes += size
        self._at(time, view, is_computed=False)

    def _at(self, time: float, view: int, *, is_computed: bool) -> None:
        self._made += 1
        heappush(self._events, (time, self._made, view, is_computed))

    def _jitter(self) -> float:
        if not self._jitters:
            self._jitters = self._rng.exponential(self._deployment.machines.jitter_s, _JITTERS).tolist()
        return self._jitters.pop()
