"""Plays the changes of binary joins on the servers of strategies: insertions of R rows, each followed by a deletion.

All strategies are compared by the same changes. As messages for deletions are many by some of them, a part of the deletions is
looked at; the others happen, but nobody is told.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from research.bench.join.data import JoinData
from research.experiments.join.outcome import OUTPUT_BYTES_PER_US, Totals, per_change, totals
from research.experiments.join.subscribers import Subscribers, skip
from research.experiments.paper import Config
from research.servers.changes import ChangeBatch
from research.servers.message import MessageBatch
from research.servers.protocols import Server
from research.strategies import JOINS
from research.workloads.join.binary import BinaryCase
from tidings.model.change import Op, TableChanges
from tidings.model.codes import BoolArray, Int64Array

R = "r"
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
    """Further insertions and deletions for which no more than time is taken, where that goes fast."""

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
        return Sample(config["insertions"], config["deletions"], config.get("timed", 0))


@dataclass(frozen=True)
class Outcome:
    """Totals of the changes that were looked at, and times of one change."""

    sample: Sample
    inserted: Totals
    deleted: Totals
    insert_us: float
    delete_us: float

    def figures(self) -> dict[str, float]:
        """Per insertion; those that begin with `delete_` are per deletion."""
        insert = per_change(self.inserted, self.sample.insertions)
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
        server, is_slow = self._people.server(strategy, self._rows), strategy in SLOW
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
        times = insert_s / sample.insertions, delete_s / sample.deletions
        if sample.timed and not is_slow:
            times = self._times(server, sample)
        return Outcome(sample, inserted, deleted, *(1e6 * seconds for seconds in times))

    def _times(self, server: Server, sample: Sample) -> tuple[float, float]:
        """Of an insertion and a deletion, in the fastest batch: other work can only make it slower."""
        taken = []
        for start, stop in _cuts(sample.insertions, sample.insertions + sample.timed, _TIMED_TOGETHER):
            batches = (self._inserts.slice(start, stop), self._deletes.slice(start, stop))
            taken.append([_timed(server, self._data.images(batch))[0] / len(batch) for batch in batches])
        insertion, deletion = (min(seconds) for seconds in zip(*taken, strict=True))
        return insertion, deletion

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
