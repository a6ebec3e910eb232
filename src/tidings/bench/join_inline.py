"""The inline engine on the join bench: the whole path, and subscriptions that come and go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np

from tidings.bench import Say
from tidings.bench.churn import Churn, Timed, churn
from tidings.bench.inline_path import InlineRun, load, runs_in_turn
from tidings.bench.join_data import JoinData
from tidings.bench.lines import json_lines
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import Seconds, timed
from tidings.bench.topk_inline import WholeServer
from tidings.families.join.family import JoinFamily
from tidings.families.join.subscriber_index import SubscriberIndex
from tidings.model.change import ChangeBatch
from tidings.model.message import SnapshotBatch
from tidings.pipeline.deliver import GatewayWork
from tidings.pipeline.tables import TablesWork

STRATEGIES = JoinFamily.strategies[0], "ref-sj:clu"
"""The default is measured with views, where there are any."""
VIEWS_MAX = 10_000
"""With more subscriptions nobody is told: the first rows of all at once, some hundred for each, would take gigabytes."""
_NEW = 1_000
"""Subscriptions that come at once; each is given its first rows."""
_JSON_BATCHES = 3
_TOLD_AT_A_TIME = 200
TOLD_BUDGET_S = 8.0


class JoinRun(InlineRun):
    """Server with all rows and subscriptions in place, and a gateway that has none yet.

    Where there are to be views, people come after the rows and are given the first of them. Else they come before, and what
    the rows would tell them is left aside.
    """

    def __init__(self, data: JoinData, strategy: str, *, has_views: bool) -> None:
        super().__init__(data)
        self.shard = WholeServer(data.catalog, {"join": strategy})
        self.snapshots: list[SnapshotBatch] = []
        if has_views:
            self._insert()
            result, _ = self.shard.apply(TablesWork(points=self.points))
            # They now exist from after the last row on, which is how their first rows know them.
            self.points = [*result.released, *result.placed]
            self.snapshots = result.sent.snapshots
        else:
            self.shard.apply(TablesWork(points=self.points))
            self._insert()

    def _insert(self) -> None:
        for batch in self.data.inserts():
            self.messages([batch])


def heading_of(strategy: str) -> Heading:
    return Heading(f"inline.{strategy}", f"inline, {strategy}")


def in_turn(sizes: Sequence[JoinData], strategy: str) -> dict[int, Figure]:
    return runs_in_turn([JoinRun(data, strategy, has_views=False) for data in sizes], heading_of(strategy))


def measure(data: JoinData, strategy: str, seed: int, say: Say) -> list[Figure]:
    heading, has_views = heading_of(strategy), strategy == STRATEGIES[0] and data.size <= VIEWS_MAX
    say(f"{strategy}: filling server and gateway")
    run = JoinRun(data, strategy, has_views=has_views)

    def fill() -> None:
        # What newcomers are told is no part of what the gateway keeps.
        run.gateway.apply(GatewayWork(run.points, [], run.snapshots))

    figures = load(run, fill, heading)
    updates = data.updates()
    first, told = next(updates), 0
    if has_views:
        say(f"{strategy}: changes to ids and notifications")
        parts = list(_told(run, first))
        figures += _of_told(parts, heading)
        told = sum(part.changes for part in parts)
    say(f"{strategy}: changes to messages")
    run.route([first.slice(told, len(first))])
    figures += _routed(run, updates, heading)
    say(f"{strategy}: adding and dropping subscriptions")
    some, others = (JoinData.make(count, 0, seed + i) for i, count in enumerate((_NEW, Churn.FROM_SQL), 1))
    rows = f"given its rows of {data.case.r_size + data.case.s_size:,}"
    new = Churn(some.points(), [others.sql(i) for i in range(others.size)], rows)
    figures += churn(run, _index(data, new), new, heading)
    return figures


@dataclass(frozen=True)
class _Told:
    """A few changes through all stages."""

    changes: int
    deliveries: int
    notifications: int
    route: Seconds
    pairs: Seconds
    tell: Seconds


def _told(run: JoinRun, changes: ChangeBatch) -> Iterator[_Told]:
    """As many of the first changes as can be told in their time."""
    spent_s = 0.0
    for start in range(0, len(changes), _TOLD_AT_A_TIME):
        part = _tell(run, changes.slice(start, min(start + _TOLD_AT_A_TIME, len(changes))))
        yield part
        spent_s += part.tell.wall
        if spent_s > TOLD_BUDGET_S:
            break


def _of_told(parts: Sequence[_Told], heading: Heading) -> list[Figure]:
    """By sums, for a few of the changes bring most of the work."""
    count, deliveries, notifications = (
        sum(getattr(part, name) for part in parts) for name in ("changes", "deliveries", "notifications")
    )
    route, pairs, tell = (sum(getattr(part, name).wall for part in parts) for name in ("route", "pairs", "tell"))
    busy, figure = sum(part.tell.cpu for part in parts), heading.figure
    lines = "messages to notification lines alone"
    return [
        figure("matches", "deliveries per change", "pairs/change", deliveries / count),
        figure("notifications", "notifications per change", "notifications/change", notifications / count),
        figure("ids.changes_per_s", "changes to subscription ids", "changes/s", count / (route + pairs)),
        figure("ids.pairs_per_s", "messages to subscription ids alone", "pairs/s", deliveries / pairs),
        figure("notifications.changes_per_s", "changes to notifications", "changes/s", count / (route + tell)),
        figure("notifications_per_s", lines, "notifications/s", notifications / tell),
        figure("notifications_per_cpu_s", lines, "notifications/cpu s", notifications / busy),
    ]


def _tell(run: JoinRun, changes: ChangeBatch) -> _Told:
    route, messages = timed(run.route, [changes])
    pairs, deliveries = timed(lambda: sum(len(run.gateway.pairs(batch).slot) for batch in messages))

    def tell() -> int:
        notifications, _ = run.gateway.apply(GatewayWork(messages=messages))
        for _ in notifications.text():
            pass
        return len(notifications)

    telling, told = timed(tell)
    return _Told(len(changes), deliveries, told, route, pairs, telling)


def _routed(run: JoinRun, updates: Iterable[ChangeBatch], heading: Heading) -> list[Figure]:
    """As far as messages; medians over the batches, the last few of which also come as JSON."""
    batches = list(updates)
    taken = [(len(batch), timed(run.route, [batch])[0]) for batch in batches]
    route = median(seconds.wall / count for count, seconds in taken)
    as_json = [(len(batch), json_lines(batch)) for batch in batches[-_JSON_BATCHES:]]
    parse = median(timed(run.ingest.parse, lines)[0].wall / count for count, lines in as_json)
    busy, figure = mean(seconds.cpu / count for count, seconds in taken), heading.figure
    return [
        figure("routed.changes_per_s", "changes to routed messages", "changes/s", 1 / route),
        figure("json.routed.changes_per_s", "JSON lines to routed messages", "changes/s", 1 / (parse + route)),
        figure("json.changes_per_s", "JSON parsing alone", "changes/s", 1 / parse),
        figure("routed.changes_per_cpu_s", "changes to routed messages", "changes/cpu s", 1 / busy),
    ]


def _index(data: JoinData, new: Churn) -> Timed:
    """Among the points that the server looks at."""
    audience = SubscriberIndex(data.space)
    audience.add(np.arange(data.size), data.points().coords)
    created = new.created()
    slots = data.size + np.arange(len(created))
    adding, _ = timed(audience.add, slots, created.coords)
    yield "index.add", f"add {len(created):,} at once, index alone", adding.wall / len(created)
    dropping, _ = timed(audience.remove, slots)
    yield "index.drop", f"drop {len(created):,} at once, index alone", dropping.wall / len(created)
