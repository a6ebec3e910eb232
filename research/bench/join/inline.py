"""The inline engine on the join bench: the whole path, and subscriptions that come and go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np

from research.bench.churn import Churn, Timed, churn
from research.bench.inline import InlineRun, load, parsing_s, tell
from research.bench.join.data import JoinData
from research.servers.changes import ChangeBatch
from research.strategies.join.subscriber_index import SubscriberIndex
from tidings.bench import Say
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import Seconds, timed

STRATEGIES = "auto", "ref-sj:clu"
"""The first, the default, is measured with views if there are not too many subscriptions."""
VIEWS_MAX = 10_000
"""With more subscriptions there are no views: their snapshots, some hundred rows each, would take gigabytes."""
_NEW = 1_000
"""Subscriptions created at once; each gets a snapshot."""
_TOLD_AT_A_TIME = 200
TOLD_BUDGET_S = 8.0


def run_of(data: JoinData, strategy: str, *, has_views: bool) -> InlineRun:
    """A server with rows and subscriptions in place.

    has_views: subscriptions are created after the rows and get snapshots. Else they are created before, and the messages of
    the inserts are discarded.
    """
    run = InlineRun(data, {"join": strategy}, has_forms=True, rows_first=has_views)
    run.fill()
    return run


def measure(data: JoinData, strategy: str, heading: Heading, seed: int, say: Say) -> list[Figure]:
    has_views = strategy == STRATEGIES[0] and data.size <= VIEWS_MAX
    say(f"{strategy}: filling server and gateway")
    run = run_of(data, strategy, has_views=has_views)
    # Snapshots are no part of the memory that the gateway keeps.
    figures = load(run, run.fill_gateway, heading)
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
    rows = f"given its rows of {data.case.r_size + data.case.s_size:,}"
    new = Churn.of(lambda count, of_seed: JoinData.make(count, 0, of_seed), seed, rows, _NEW)
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


def _told(run: InlineRun, changes: ChangeBatch) -> Iterator[_Told]:
    """The first changes through all stages, until the budget is spent."""
    spent_s = 0.0
    for start in range(0, len(changes), _TOLD_AT_A_TIME):
        part = _tell(run, changes.slice(start, min(start + _TOLD_AT_A_TIME, len(changes))))
        yield part
        spent_s += part.tell.wall
        if spent_s > TOLD_BUDGET_S:
            break


def _of_told(parts: Sequence[_Told], heading: Heading) -> list[Figure]:
    """Figures by sums, not medians, since a few changes have most of the work."""
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


def _tell(run: InlineRun, changes: ChangeBatch) -> _Told:
    route, messages = timed(run.route, [changes])
    pairs, deliveries = timed(lambda: sum(len(run.gateway.pairs(batch).slot) for batch in messages))
    telling, told = timed(tell, run.gateway, messages)
    return _Told(len(changes), deliveries, told, route, pairs, telling)


def _routed(run: InlineRun, updates: Iterable[ChangeBatch], heading: Heading) -> list[Figure]:
    """As far as messages; medians over the batches, the last few of which also come as JSON."""
    batches = list(updates)
    taken = [(len(batch), timed(run.route, [batch])[0]) for batch in batches]
    route = median(seconds.wall / count for count, seconds in taken)
    parse = parsing_s(run, batches)
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
    audience.add(np.arange(data.size), data.coords())
    created = new.created()
    slots = data.size + np.arange(len(created))
    adding, _ = timed(audience.add, slots, created.coords)
    yield "index.add", f"add {len(created):,} at once, index alone", adding.wall / len(created)
    dropping, _ = timed(audience.remove, slots)
    yield "index.drop", f"drop {len(created):,} at once, index alone", dropping.wall / len(created)
