"""Documents on their way through a plan, event by event: when does every view have its results?

- A view is computed when its last input is in, on the first free core of its machine; documents one after the other.
- Then it sends its message to every view it feeds, in the order of the plan. A machine sends one message after the other.
- A message is on its way for as long as the distance takes, and a little longer by chance. Views of one machine tell each
  other for nothing.

Documents come at an interval, and share machines and lines with those that are on their way. The time of each starts when the
publisher begins to send it. What a view has to say, and how long that takes to compute, is asked when it is
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
    """done_s: float64[documents, views], when each view has its result, since the publisher began to send the document.
    messages, bytes: that machines sent."""

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


def deliver(
    deployment: Deployment, works: Sequence[Work], rng: np.random.Generator, interval_s: float = 0.0
) -> Delivery:
    """works: of documents that are published at this interval."""
    return _Run(deployment, works, rng).finished(interval_s)


_JITTERS = 4_096
_ARRIVED, _COMPUTED, _PUBLISHED = range(3)


class _Run:
    def __init__(self, deployment: Deployment, works: Sequence[Work], rng: np.random.Generator) -> None:
        machines = deployment.machines
        self._deployment, self._works, self._rng = deployment, works, rng
        self._delay: list[list[float]] = machines.delay_s.tolist()
        self._rate: list[float] = machines.bytes_per_s.tolist()
        self._jitters: list[float] = []
        # (time, number of the event, kind, document, view)
        self._events: list[tuple[float, int, int, int, int]] = []
        self._made = 0
        self._waits = [list(deployment.waits) for _ in works]
        self._cores = [[0.0] * cores for cores in machines.cores.tolist()]
        self._sending_until = [0.0] * len(self._rate)
        views = len(deployment.waits)
        self._next = [0] * views
        self._is_busy = [False] * views
        self._bytes_of = [0] * views
        self._begun = np.zeros(len(works))
        self._done = np.full((len(works), views), np.nan)
        self.messages = self.bytes = 0

    def finished(self, interval_s: float) -> Delivery:
        for document in range(len(self._works)):
            self._at(document * interval_s, _PUBLISHED, document, -1)
        while self._events:
            time, _, kind, document, view = heappop(self._events)
            if kind == _PUBLISHED:
                self._publish(time, document)
            elif kind == _ARRIVED:
                self._waits[document][view] -= 1
                self._compute(time, view)
            else:
                self._done[document, view] = time
                for fed in self._deployment.feeds[view]:
                    self._send(time, self._deployment.machine_of[view], document, fed, self._bytes_of[view])
                self._is_busy[view] = False
                self._next[view] += 1
                self._compute(time, view)
        return Delivery(self._done - self._begun[:, None], self.messages, self.bytes)

    def _publish(self, time: float, document: int) -> None:
        publisher = self._deployment.machines.publisher
        self._begun[document] = max(time, self._sending_until[publisher])
        for view in self._deployment.roots:
            self._send(time, publisher, document, view, self._works[document].fed(view))

    def _compute(self, time: float, view: int) -> None:
        """The next document of a view, if it has all inputs: one after the other."""
        document = self._next[view]
        if self._is_busy[view] or document == len(self._works) or self._waits[document][view]:
            return
        cores = self._cores[self._deployment.machine_of[view]]
        seconds, self._bytes_of[view] = self._works[document].compute(view)
        end = max(time, cores[0]) + seconds
        heapreplace(cores, end)
        self._is_busy[view] = True
        self._at(end, _COMPUTED, document, view)

    def _send(self, time: float, source: int, document: int, view: int, size: int) -> None:
        target = self._deployment.machine_of[view]
        if source != target:
            begin = max(time, self._sending_until[source])
            end = begin + self._deployment.machines.message_s + size / self._rate[source]
            self._sending_until[source] = end
            time = end + self._delay[source][target] + self._jitter()
            self.messages += 1
            self.bytes += size
        self._at(time, _ARRIVED, document, view)

    def _at(self, time: float, kind: int, document: int, view: int) -> None:
        self._made += 1
        heappush(self._events, (time, self._made, kind, document, view))

    def _jitter(self) -> float:
        if not self._jitters:
            self._jitters = self._rng.exponential(self._deployment.machines.jitter_s, _JITTERS).tolist()
        return self._jitters.pop()
