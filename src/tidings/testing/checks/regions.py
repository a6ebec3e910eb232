"""Regions: a message reaches every point whose answer it alters; where codes are exact, it reaches no other.

A point stands for its subscription restricted to one channel, so a query with IN is judged channel by channel.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product

from tidings.model.channel import ChannelKey
from tidings.model.message import MessageBatch
from tidings.sql import Statement
from tidings.testing.checks.case import Case
from tidings.testing.deployment import deploy, run_steps
from tidings.testing.oracle import Recomputation, walk
from tidings.testing.plain import Answer
from tidings.testing.workload import Record, Workload

Reached = tuple[int, str, ChannelKey]


@dataclass
class _Point:
    id: str
    channel: ChannelKey
    coords: tuple[int, ...]
    form: str
    is_exact: bool
    statement: Statement
    answer: Answer


class _Altered(Recomputation):
    """A recomputation that also keeps the answer of every live point, and notes whom each change alters."""

    def __init__(self, case: Case) -> None:
        super().__init__(case.workload.catalog)
        self._case = case
        self._points: dict[str, list[_Point]] = {}
        self.points_at: dict[int, list[_Point]] = {}
        self.altered: set[Reached] = set()

    def register(self, record: Record) -> None:
        was_live = record["id"] in self.live
        super().register(record)
        if record["id"] not in self.live:
            self._points.pop(record["id"], None)
        elif not was_live:
            self._points[record["id"]] = self._place(record["id"], self.live[record["id"]].statement)

    def change(self, record: Record) -> bool:
        if not super().change(record):
            return False
        points = self.points_at[record["seq"]] = [point for points in self._points.values() for point in points]
        for point in points:
            answer = self.answer(point.statement)
            if answer != point.answer:
                self.altered.add((record["seq"], point.id, point.channel))
                point.answer = answer
        return True

    def _place(self, id: str, statement: Statement) -> list[_Point]:
        family, constants = self._case.family, statement.constants
        placement = family.place(statement.shape, constants, self.catalog)
        is_exact = self._case.has_exact_regions(statement.shape, self.catalog)
        points = []
        for channel, values in zip(placement.channels, product(*constants.equalities), strict=True):
            narrowed = constants._replace(equalities=tuple((value,) for value in values))
            own = Statement(statement.shape, narrowed, statement.sql, self.catalog)
            point = _Point(id, channel, placement.coords, placement.form, is_exact, own, self.answer(own))
            points.append(point)
        return points


def check_regions(case: Case) -> None:
    altered = _Altered(case)
    walk(case.workload, altered)
    for strategy in case.family.strategies:
        messages = _messages(case.workload, case.strategy(strategy), case.sizes())
        reached = _reached(messages, altered.points_at)
        assert not altered.altered - reached, f"{strategy}: not reached: {sorted(altered.altered - reached)}"
        exact = {(seq, p.id, p.channel) for seq, points in altered.points_at.items() for p in points if p.is_exact}
        idle = (reached & exact) - altered.altered
        assert not idle, f"{strategy}: reached for nothing: {sorted(idle)}"


def _messages(workload: Workload, strategy: dict[str, str], sizes: list[int]) -> list[MessageBatch]:
    steps = run_steps(deploy(workload, strategy), workload.change_lines(), sizes)
    return [batch for step in steps for batch in step.messages]


def _reached(messages: list[MessageBatch], points_at: dict[int, list[_Point]]) -> set[Reached]:
    reached: Counter[Reached] = Counter()
    for batch in messages:
        channels = list(zip(*(column.to_pylist() for column in batch.channel), strict=True)) or [()] * len(batch)
        targets = [None] * len(batch) if batch.target is None else batch.target.to_pylist()
        for at, (seq, channel, target) in enumerate(zip(batch.seq.tolist(), channels, targets, strict=True)):
            for point in points_at[seq]:
                is_meant = point.form == batch.form and point.channel == channel and target in (None, point.id)
                if is_meant and batch.regions.contains(at, point.coords):
                    reached[seq, point.id, point.channel] += 1
    assert all(count == 1 for count in reached.values()), f"reached twice: {reached}"
    return set(reached)
