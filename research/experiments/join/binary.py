"""Plays the changes of binary joins on the servers of strategies: insertions of R rows, each followed by a deletion.

All strategies are compared by the same changes; those that enumerate subscriptions see only the first of them. As messages for
deletions are many by some strategies, a part of the deletions is looked at; the others happen, but nobody is told.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from research.bench.join.data import JoinData
from research.experiments.join.outcome import OUTPUT_BYTES_PER_US, SIZES, Totals, per_change, sizes, totals
from research.experiments.join.subscribers import Subscribers, skip
from research.experiments.paper import Config
from research.servers.changes import ChangeBatch
from research.servers.message import MessageBatch
from research.servers.protocols import Server
from research.strategies import JOINS
from research.strategies.join.semijoin.server import SemijoinServer
from research.workloads.join.binary import BinaryCase
from tidings.model.change import Op, TableChanges
from tidings.model.codes import BoolArray, Int64Array

R, S = "r", "s"
SLOW = ("enum-j", "enum-sj", "ref-sj:sub", "ref-sj:min")
"""Strategies that look at every affected subscription."""
_TOGETHER, _TIMED_TOGETHER = 100, 500
"""Changes in one call."""
_TOLD_TOGETHER = 5_000_000
"""The same times the number of subscriptions, as each may be sent a message."""


@dataclass(frozen=True)
class Sample:
    """How many changes are looked at."""

    insertions: int
    deletions: int
    timed: int = 0
    """Further insertions and deletions, by strategies that are not slow, for time and sizes but not for whom messages reach."""
    slow: int = 0
    """Insertions for slow strategies; 0: as for the others."""

    @property
    def changes(self) -> int:
        """Those of a scene that is large enough."""
        return 2 * (self.insertions + self.timed)

    def is_told(self, deletion: Int64Array) -> BoolArray:
        """Which deletions are looked at: they lie evenly among all."""
        found: BoolArray = (
            deletion + 1
        ) * self.deletions // self.insertions > deletion * self.deletions // self.insertions
        return found

    @staticmethod
    def of(config: Config) -> Sample:
        return Sample(config["insertions"], config["deletions"], config.get("timed", 0), config.get("slow", 0))

    def by(self, strategy: str) -> Sample:
        """What one strategy is to see."""
        if strategy not in SLOW:
            return self
        slow = self.slow or self.insertions
        return Sample(slow, max(1, self.deletions * slow // self.insertions) if self.deletions else 0)


@dataclass(frozen=True)
class Outcome:
    """Totals of the changes that were looked at, and times of one change."""

    sample: Sample
    inserted: Totals
    deleted: Totals
    insert_us: float
    delete_us: float
    sized: Totals | None = None
    """Sizes of the messages for the timed insertions."""
    clusters: float | None = None
    """Marks such that every range on S contains one, where skylines are made by them."""

    def figures(self) -> dict[str, float]:
        """Per insertion; those that begin with `delete_` are per deletion."""
        insert = per_change(self.inserted, self.sample.insertions)
        if self.sized is not None:
            sized = per_change(self.sized, self.sample.timed)
            insert |= {name: sized[name] for name in SIZES}
        if self.clusters is not None:
            insert["clusters"] = self.clusters
        delete = per_change(self.deleted, self.sample.deletions)
        return {
            **insert,
            "us": self.insert_us,
            "output_us": self.insert_us + insert["sent"] / OUTPUT_BYTES_PER_US,
            **{f"delete_{name}": delete[name] for name in ("messages", "sent", "carried", "deliveries", "delivered")},
            "delete_us": self.delete_us,
        }


class Run:
    """The changes of some data, in their order."""

    def __init__(self, people: Subscribers, data: JoinData) -> None:
        self._people, self._data = people, data
        self._rows = [data.images(batch) for batch in data.inserts()]
        changes = ChangeBatch.concat(list(data.updates()))
        self._inserts, self._deletes = (changes.take(changes.op == op) for op in (Op.INSERT, Op.DELETE))

    def play(self, strategy: str, sample: Sample) -> Outcome:
        server, sample = self._people.server(strategy, self._rows), sample.by(strategy)
        # The same for all strategies: in which order rows come and go makes a difference.
        together = max(1, min(_TOGETHER, _TOLD_TOGETHER // max(1, self._data.size), self._data.scene.r_size // 20))
        inserted, deleted = Totals(), Totals()
        insert_s = delete_s = 0.0
        for start, stop in _cuts(0, sample.insertions, together):
            insert_s += self._tell(server, self._inserts.slice(start, stop), inserted)
            deletes = self._deletes.slice(start, stop)
            is_told = sample.is_told(np.arange(start, stop))
            delete_s += self._tell(server, deletes.take(is_told), deleted)
            if not is_told.all():
                skip(server, self._data.images(deletes.take(~is_told)))
        outcome = Outcome(
            sample, inserted, deleted, 1e6 * insert_s / sample.insertions, 1e6 * delete_s / max(1, sample.deletions)
        )
        if isinstance(server, SemijoinServer) and strategy not in SLOW:
            clusters = max(len(index.marks(index.space.side_of(S))) for index in server.indexes)
            outcome = replace(outcome, clusters=float(clusters))
        return self._with_times(server, outcome) if sample.timed else outcome

    def _with_times(self, server: Server, outcome: Outcome) -> Outcome:
        """With the times of an insertion and a deletion in the fastest batch, as other work can only make it slower."""
        sample, sized = outcome.sample, Totals()
        insert_s, delete_s = [], []
        for start, stop in _cuts(sample.insertions, sample.insertions + sample.timed, _TIMED_TOGETHER):
            seconds, sent = _timed(server, self._data.images(self._inserts.slice(start, stop)))
            insert_s.append(seconds / (stop - start))
            for messages in sent:
                sized.update(sizes(messages, R))
            seconds, _ = _timed(server, self._data.images(self._deletes.slice(start, stop)))
            delete_s.append(seconds / (stop - start))
        return replace(outcome, insert_us=1e6 * min(insert_s), delete_us=1e6 * min(delete_s), sized=sized)

    def _tell(self, server: Server, changes: ChangeBatch, found: Totals) -> float:
        if len(changes) == 0:
            return 0.0
        seconds, sent = _timed(server, self._data.images(changes))
        found.update(totals(sent, R, self._people))
        return seconds


def _timed(server: Server, changes: TableChanges) -> tuple[float, list[MessageBatch]]:
    """Processor time, which is blind to other work, and the messages."""
    begun = time.process_time()
    sent = list(server.change(changes))
    return time.process_time() - begun, sent


def _cuts(start: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
    for at in range(start, stop, step):
        yield at, min(stop, at + step)


def outcomes(data: JoinData, strategies: list[str], sample: Sample) -> Iterator[tuple[str, Outcome]]:
    """What each strategy comes to."""
    run = Run(Subscribers(data.catalog, [data.points()], R), data)
    for strategy in strategies:
        yield strategy, run.play(strategy, sample)


def warm_up() -> None:
    """Lets kernels be compiled before any time is taken."""
    data = JoinData.make(200, 40, 0, BinaryCase(r_size=60, s_size=60, join_values=5))
    list(outcomes(data, ["auto", *JOINS], Sample(10, 5, 10)))
