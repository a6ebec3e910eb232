"""Regions: a message reaches every point whose answer it alters; where codes are exact, it reaches no other.

A point stands for its subscription restricted to one channel, so a query with IN is judged channel by channel.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np

from tidings.families.registry import heard
from tidings.model.channel import ChannelKey, channel_keys
from tidings.model.points import Event, PointBatch
from tidings.sql import Statement
from tidings.testing.checks.case import Case
from tidings.testing.deployment import Step, deploy, run_steps
from tidings.testing.oracle import Followed, Recomputation, walk
from tidings.testing.workload import Record

Reached = tuple[int, str, ChannelKey]
Coords = dict[tuple[str, ChannelKey], list[tuple[int, list[int]]]]
"""(id, channel) -> (born after, coordinates) of each life."""


@dataclass
class _Point:
    id: str
    channel: ChannelKey
    form: str
    is_exact: bool
    followed: Followed


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
            before = point.followed.answer
            if self.follow(point.followed).answer != before:
                self.altered.add((record["seq"], point.id, point.channel))
        return True

    def _place(self, id: str, statement: Statement) -> list[_Point]:
        family, constants = self._case.family, statement.constants
        placement = family.place(statement.shape, constants, self.catalog)
        is_exact = self._case.has_exact_regions(statement.shape, self.catalog)
        points = []
        parts = [
            constants._replace(equalities=tuple((value,) for value in values))
            for values in product(*constants.equalities)
        ]
        if len(parts) != len(placement.channels):
            # The family has one point for all.
            parts = [constants] * len(placement.channels)
        for channel, narrowed in zip(placement.channels, parts, strict=True):
            own = self.follow(Followed(Statement(statement.shape, narrowed, statement.sql, self.catalog)))
            points.append(_Point(id, channel, placement.form, is_exact, own))
        return points


def check_regions(case: Case) -> None:
    case = case.by_messages()
    altered = _Altered(case)
    walk(case.workload, altered)
    for strategy in case.family.strategies:
        steps = run_steps(deploy(case.workload, case.strategy(strategy)), case.workload.change_lines(), case.sizes())
        counts = _reached(case, steps, altered.points_at)
        reached = set(counts)
        twice = [place for place, count in counts.items() if count > 1]
        assert case.may_hear_twice or not twice, f"{strategy}: reached twice: {sorted(twice)}"
        assert not altered.altered - reached, f"{strategy}: not reached: {sorted(altered.altered - reached)}"
        exact = {(seq, p.id, p.channel) for seq, points in altered.points_at.items() for p in points if p.is_exact}
        idle = (reached & exact) - altered.altered
        assert not idle, f"{strategy}: reached for nothing: {sorted(idle)}"


def _coords(steps: list[Step]) -> Coords:
    """Where points were placed: the server may have had a say in it."""
    placed: Coords = {}
    for points in PointBatch.by_form(points for step in steps for points in step.points):
        born = points.take(points.event == np.int8(Event.CREATE))
        for at, (id, channel) in enumerate(
            zip(born.id.to_pylist(), channel_keys(born.channel, len(born)), strict=True)
        ):
            placed.setdefault((id, channel), []).append((int(born.after[at]), born.coords[at].tolist()))
    return placed


def _reached(case: Case, steps: list[Step], points_at: dict[int, list[_Point]]) -> Counter[Reached]:
    reached: Counter[Reached] = Counter()
    placed = _coords(steps)
    sent = [messages for step in steps for messages in step.messages]
    for batch in (own for messages in sent for own in heard(messages, case.workload.catalog)):
        channels = channel_keys(batch.channel, len(batch))
        targets = [None] * len(batch) if batch.target is None else batch.target.to_pylist()
        for at, (seq, channel, target) in enumerate(zip(batch.seq.tolist(), channels, targets, strict=True)):
            for point in points_at[seq]:
                is_meant = point.form == batch.form and point.channel == channel and target in (None, point.id)
                if not is_meant:
                    continue
                _, coords = max(life for life in placed[point.id, channel] if life[0] < seq)
                reached[seq, point.id, channel] += bool(batch.regions.contains(at, coords))
    return +reached
