"""Regions: a message reaches every point whose answer its change alters. If codes are exact, it reaches no other point; else
only points that `RegionCheck.may_reach` allows.

A point stands for its subscription restricted to one channel, so a query with IN is checked channel by channel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from research.servers.forms import gathered, has_server, project_all
from research.servers.message import MessageBatch
from research.servers.sender import MessageSender
from tidings.model.catalog import Catalog
from tidings.model.channel import ChannelKey, channel_keys
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import Door
from tidings.sql import Statement
from tidings.sql.shape import Shape
from tidings.testing.checks.case import Case
from tidings.testing.oracle import Followed, Recomputation, walk
from tidings.testing.plain import read_record
from tidings.testing.workload import Record, chunks

Bound = Callable[[Statement, Catalog, str, Record | None, Record | None], bool]
"""(query, catalog, table, old row, new row) -> whether the change may reach points of the query without altering its answer."""
Reached = tuple[int, str, ChannelKey]
Coords = dict[tuple[str, ChannelKey], dict[int, list[int]]]
"""(id, channel) -> after which seq it was created or moved -> coordinates since then."""


@dataclass
class _Point:
    id: str
    channel: ChannelKey
    form: str
    is_exact: bool
    followed: Followed


class _Altered(Recomputation):
    """A recomputation that also keeps the answer of every live point, and records which points each change alters."""

    def __init__(self, case: Case, check: RegionCheck) -> None:
        super().__init__(case.workload.catalog)
        self._check, self._has_one_point = check, case.family.name in ("select", "offers")
        self._points: dict[str, list[_Point]] = {}
        self.points_at: dict[int, list[_Point]] = {}
        self.altered: set[Reached] = set()
        self.unconcerned: set[Reached] = set()
        """(seq, id, channel) of the points that the change must not reach."""

    def register(self, record: Record) -> None:
        was_live = record["id"] in self.live
        super().register(record)
        if record["id"] not in self.live:
            self._points.pop(record["id"], None)
        elif not was_live:
            self._points[record["id"]] = self._place(record["id"], self.live[record["id"]].statement)

    def commit(self, records: Sequence[Record]) -> bool:
        (record,) = records
        name, table = record["table"], self.catalog.table(record["table"])
        row = read_record(table, record)
        key = tuple(row[column] for column in table.key)
        old = self.tables[name].get(key)
        if not super().commit(records):
            return False
        new, may_reach = self.tables[name].get(key), self._check.may_reach
        points = self.points_at[record["seq"]] = [point for points in self._points.values() for point in points]
        for point in points:
            before = point.followed.answer
            place = record["seq"], point.id, point.channel
            if self.follow(point.followed).answer != before:
                self.altered.add(place)
            elif point.is_exact or not may_reach(point.followed.statement, self.catalog, name, old, new):
                self.unconcerned.add(place)
        super().let_go()
        if not self.catalog.table(name).constraints.is_kept:
            for point in points:
                self.follow(point.followed)
        return True

    def let_go(self) -> None:
        """Rows that are not kept are there until all points have been looked at."""

    def _place(self, id: str, statement: Statement) -> list[_Point]:
        constants, shape = statement.constants, statement.shape
        door = Door(self.catalog)
        door.create(id, statement.sql, 0)
        (placed,) = gathered(door.take(), self.catalog)
        channels = [key for key in channel_keys(placed.channel, len(placed)) if None not in key]
        is_exact = self._check.has_exact_regions(shape, self.catalog)
        if self._has_one_point:
            is_exact &= constants.is_single and _says_all(statement, self.catalog)
        points = []
        parts = [
            constants._replace(equalities=tuple((value,) for value in values))
            for values in product(*constants.equalities)
        ]
        if len(parts) != len(channels):
            # The family has one point for all channels.
            parts = [constants] * len(channels)
        for channel, narrowed in zip(channels, parts, strict=True):
            own = self.follow(Followed(Statement(statement.shape, narrowed, statement.sql, self.catalog)))
            points.append(_Point(id, channel, placed.form, is_exact, own))
        return points


def _says_all(statement: Statement, catalog: Catalog) -> bool:
    """Whether the one point of a subscription expresses its whole query.

    All columns are shown, no equality is on text, and no range is open at both ends: to a point, IS NOT NULL is no condition.
    """
    shape = statement.shape
    equal = (catalog.table(ref.table).axis(ref.column).type for ref in shape.equalities)
    is_open = any(interval.lo is None and interval.hi is None for interval in statement.constants.intervals)
    return shape.projection is None and not is_open and not any(type.is_lossy for type in equal)


def _is_exact(shape: Shape, catalog: Catalog) -> bool:
    """Whether regions of the shape are exact: codes of all range columns are, as for every type but text."""
    return not any(catalog.table(ref.table).axis(ref.column).type.is_lossy for ref in shape.ranges)


@dataclass(frozen=True)
class RegionCheck:
    """A check for `tidings.testing.check_family`, of strategies with region servers."""

    has_exact_regions: Callable[[Shape, Catalog], bool] = _is_exact
    may_hear_twice: bool = False
    """Whether a change may reach a point several times, because it sends several rows."""
    may_reach: Bound = lambda *_: True
    """Which changes may reach a point with inexact regions whose answer they do not alter."""

    def __call__(self, case: Case) -> None:
        case = with_servers(case)
        altered = _Altered(case, self)
        walk(case.workload, altered)
        for strategy in case.some_strategies():
            counts = _reached(case, *messages_of(case, case.strategy(strategy)), altered.points_at)
            reached = set(counts)
            twice = [place for place, count in counts.items() if count > 1]
            assert self.may_hear_twice or not twice, f"{strategy}: reached twice: {sorted(twice)}"
            assert not altered.altered - reached, f"{strategy}: not reached: {sorted(altered.altered - reached)}"
            idle = reached & altered.unconcerned
            assert not idle, f"{strategy}: reached for nothing: {sorted(idle)}"


def with_servers(case: Case) -> Case:
    """The same case without subscriptions that have no region server."""
    door = Door(case.workload.catalog)
    records = case.workload.subscriptions
    apart = {
        record["id"]
        for record in records
        if "sql" in record and not has_server(door.place(record["sql"], is_net="option" in record).form)
    }
    own = replace(case.workload, subscriptions=[record for record in records if record["id"] not in apart])
    return replace(case, workload=own)


def messages_of(case: Case, strategies: dict[str, str]) -> tuple[list[MessageBatch], list[PointBatch]]:
    """(all messages, all points with their final coordinates), one change after the other as their own commits."""
    sender = MessageSender(case.workload.catalog, 1, lambda _: 0, strategies, by_commit=False)
    messages, points = list[MessageBatch](), list[PointBatch]()
    sender.on_messages, sender.on_points = messages.append, points.append
    door = Door(case.workload.catalog)
    door.read(case.workload.subscription_lines())
    position = 0
    for chunk in chunks(case.workload.change_lines(), case.sizes()):
        sender.feed(chunk, position, door.take())
        position += len(chunk)
    sender.feed([], position, door.take(), is_end=True)
    return messages, points


def _coords(batches: list[PointBatch]) -> Coords:
    """Final coordinates of all points, which the server may have chosen."""
    placed: Coords = {}
    for points in PointBatch.by_form(batches):
        born = points.take(points.event == np.int8(Event.CREATE))
        for at, (id, channel) in enumerate(
            zip(born.id.to_pylist(), channel_keys(born.channel, len(born)), strict=True)
        ):
            placed.setdefault((id, channel), {})[int(born.after[at])] = born.coords[at].tolist()
    return placed


def _reached(
    case: Case, sent: list[MessageBatch], points: list[PointBatch], points_at: dict[int, list[_Point]]
) -> Counter[Reached]:
    reached: Counter[Reached] = Counter()
    placed = _coords(points)
    for batch in (own for messages in sent for own in project_all(messages, case.workload.catalog)):
        channels = channel_keys(batch.channel, len(batch))
        targets = [None] * len(batch) if batch.target is None else batch.target.to_pylist()
        for at, (seq, channel, target) in enumerate(zip(batch.seq.tolist(), channels, targets, strict=True)):
            for point in points_at[seq]:
                is_meant = point.form == batch.form and point.channel == channel and target in (None, point.id)
                if not is_meant:
                    continue
                lives = placed[point.id, channel]
                coords = lives[max(after for after in lives if after < seq)]
                reached[seq, point.id, channel] += bool(batch.regions.contains(at, coords))
    return +reached


def selects_either(statement: Statement, catalog: Catalog, table: str, old: Record | None, new: Record | None) -> bool:
    """Bound on superfluous join messages: they reach only points that select the old or the new row of the changed table.

    IN counts as a range from the least to the greatest value, and any text matches, since regions do not express them exactly.
    """
    return any(row is not None and _selects(statement, catalog, table, row) for row in (old, new))


def _selects(statement: Statement, catalog: Catalog, table: str, row: Record) -> bool:
    shape, constants = statement.shape, statement.constants
    for ref, values in zip(shape.equalities, constants.equalities, strict=True):
        if ref.table == table:
            value, is_lossy = row[ref.column], catalog.table(table).column(ref.column).type.is_lossy
            if value is None or not values or not (is_lossy or min(values) <= value <= max(values)):
                return False
    for ref, interval in zip(shape.ranges, constants.intervals, strict=True):
        if ref.table == table:
            value, is_lossy = row[ref.column], catalog.table(table).column(ref.column).type.is_lossy
            if value is None or not (is_lossy or interval.holds(value)):
                return False
    return True
