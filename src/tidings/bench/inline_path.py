"""The inline engine on a bench: changes to routed messages, to subscription ids, to finished notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Protocol

import numpy as np

from tidings.bench.lines import json_lines
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import Seconds, rss_bytes, timed
from tidings.families.registry import gathered, spaces_of
from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.network.zones import ZoneMap
from tidings.pipeline.deliver import Gateway, GatewayWork
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.tables import TableShard, TablesWork

INLINE = Heading("inline", "inline")
ZONES = 4
_LINES_MAX = 500_000
"""Notifications made at a time, so that their text does not fill the memory."""
_JSON_BATCHES = 3


class InlineData(Protocol):
    """What a bench brings: subscriptions that are all there from the start, rows, and changes to them."""

    @property
    def size(self) -> int: ...
    @property
    def catalog(self) -> Catalog: ...
    def points(self) -> PointBatch: ...
    def inserts(self) -> Iterator[ChangeBatch]: ...
    def updates(self) -> Iterator[ChangeBatch]: ...


class InlineRun:
    """Server with all subscriptions in place, and a gateway that has none yet."""

    def __init__(self, data: InlineData) -> None:
        self.data = data
        self.ingest = Ingest(data.catalog)
        points = data.points()
        self.zones = ZoneMap.build(gathered([points], data.catalog), ZONES, spaces_of(data.catalog))
        self.shard = TableShard(data.catalog, {})
        result, _ = self.shard.apply(TablesWork(points=[points]))
        self.points = [*result.released, *result.placed]
        """The subscriptions where the server has placed them."""
        self.gateway = Gateway(data.catalog)

    def fill(self) -> list[list[MessageBatch]]:
        """Inserts all rows, giving the messages of each batch."""
        return [self.messages([batch]) for batch in self.data.inserts()]

    def messages(self, changes: list[ChangeBatch]) -> list[MessageBatch]:
        result, _ = self.shard.apply(TablesWork.of(changes, []))
        assert not result.refused
        return result.sent.merged()

    def route(self, changes: list[ChangeBatch]) -> list[MessageBatch]:
        """Changes to messages, each with the zones it goes to."""
        messages = self.messages(changes)
        for batch in messages:
            self.zones.route(batch)
        return messages


def in_turn(sizes: Sequence[InlineData], heading: Heading = INLINE) -> dict[int, Figure]:
    """Changes to routed messages, a batch of each size in turn: whatever else the machine does slows all sizes alike."""
    runs = [InlineRun(data) for data in sizes]
    for run in runs:
        run.fill()
    return runs_in_turn(runs, heading)


def runs_in_turn(runs: Sequence[InlineRun], heading: Heading) -> dict[int, Figure]:
    """The same with rows in place."""
    rates: dict[int, list[float]] = {run.data.size: [] for run in runs}
    for batches in zip(*(run.data.updates() for run in runs), strict=True):
        for run, batch in zip(runs, batches, strict=True):
            rates[run.data.size].append(len(batch) / timed(run.route, [batch])[0].wall)
    label = "changes to routed messages, sizes in turn"
    return {
        size: heading.figure("routed.in_turn.changes_per_s", label, "changes/s", median(found))
        for size, found in rates.items()
    }


def load(run: InlineRun, fill: Callable[[], object], heading: Heading = INLINE) -> list[Figure]:
    """Lets `fill` put all points into the gateway, watching memory."""
    before = rss_bytes()
    taken, _ = timed(fill)
    grown = rss_bytes() - before
    count = len(run.gateway)
    assert count == run.data.size
    in_index, figure = run.gateway.nbytes / count, heading.figure
    return [
        figure("load.subscriptions_per_s", "gateway filled from nothing", "subscriptions/s", count / taken.wall),
        figure("memory.index", "memory, index as counted", "bytes/subscription", in_index),
        figure("memory.rss", "memory, growth of the process", "bytes/subscription", grown / count),
    ]


@dataclass(frozen=True)
class _Stages:
    """Time per change of one batch in each stage, and deliveries per change."""

    route: Seconds
    pairs: Seconds
    tell: Seconds
    matches: float


def _stages(run: InlineRun, changes: ChangeBatch) -> _Stages:
    route, messages = timed(run.route, [changes])
    pairs, found = timed(lambda: sum(len(run.gateway.pairs(batch).slot) for batch in messages))
    matches = found / len(changes)
    some = [head(batch, max(1, int(_LINES_MAX / max(matches, 1.0)))) for batch in messages]
    tell, count = timed(_tell, run.gateway, some)
    told = count / matches if matches else 1.0
    return _Stages(_over(route, len(changes)), _over(pairs, len(changes)), _over(tell, told), matches)


def _tell(gateway: Gateway, messages: list[MessageBatch]) -> int:
    """Makes the text of all notifications; gives their number."""
    notifications, _ = gateway.apply(GatewayWork(messages=messages))
    for _ in notifications.text():
        pass
    return len(notifications)


def flow(run: InlineRun, updates: Iterable[ChangeBatch], heading: Heading = INLINE) -> list[Figure]:
    """Medians over the batches. Every batch goes through all stages; the last few also come as JSON."""
    batches = list(updates)
    stages = [_stages(run, batch) for batch in batches]
    route, pairs, tell = (median(getattr(s, name).wall for s in stages) for name in ("route", "pairs", "tell"))
    as_json = [(len(batch), json_lines(batch)) for batch in batches[-_JSON_BATCHES:]]
    parse = median(timed(run.ingest.parse, lines)[0].wall / count for count, lines in as_json)
    matches, figure = mean(s.matches for s in stages), heading.figure
    per_change = [
        ("routed", "changes to routed messages", route),
        ("ids", "changes to subscription ids", route + pairs),
        ("notifications", "changes to finished notifications", route + tell),
        ("json.routed", "JSON lines to routed messages", parse + route),
        ("json.notifications", "JSON lines to finished notifications", parse + route + tell),
    ]
    return [
        figure("matches", "deliveries per change", "pairs/change", matches),
        *(figure(f"{key}.changes_per_s", label, "changes/s", 1 / taken) for key, label, taken in per_change),
        figure("ids.pairs_per_s", "messages to subscription ids alone", "pairs/s", matches / pairs),
        figure("notifications_per_s", "messages to notification lines alone", "notifications/s", matches / tell),
        figure("json.changes_per_s", "JSON parsing alone", "changes/s", 1 / parse),
        *_busy(stages, matches, heading),
    ]


def _busy(stages: list[_Stages], matches: float, heading: Heading) -> list[Figure]:
    """The same by processor time, as means over all batches: other work on the machine hardly matters here."""
    route, pairs, tell = (mean(getattr(s, name).cpu for s in stages) for name in ("route", "pairs", "tell"))
    lines, figure = "messages to notification lines alone", heading.figure
    return [
        figure("routed.changes_per_cpu_s", "changes to routed messages", "changes/cpu s", 1 / route),
        figure("ids.pairs_per_cpu_s", "messages to subscription ids alone", "pairs/cpu s", matches / pairs),
        figure("notifications_per_cpu_s", lines, "notifications/cpu s", matches / tell),
    ]


def _over(taken: Seconds, count: float) -> Seconds:
    return Seconds(taken.wall / count, taken.cpu / count)


def head(messages: MessageBatch, count: int) -> MessageBatch:
    """The first so many messages."""
    return messages.take(np.arange(min(count, len(messages))))
