"""The inline engine on the select bench: changes to routed messages, to subscription ids, to finished notifications."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import mean, median

import numpy as np

from tidings.bench import Say
from tidings.bench.churn import churn
from tidings.bench.report import Figure
from tidings.bench.select_data import SelectData, json_lines
from tidings.bench.timing import Seconds, rss_bytes, timed
from tidings.families.select.reformulate import NEW
from tidings.model.blob import pack
from tidings.model.change import ChangeBatch
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.network.zones import ZoneMap
from tidings.pipeline.deliver import Gateway, GatewayWork
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.tables import TableShard, TablesWork

ZONES = 4
SAMPLE = 200
"""So many changes are compared with the peers, match by match."""
_LINES_MAX = 500_000
"""Notifications made at a time, so that their text does not fill the memory."""
_JSON_BATCHES = 3


@dataclass
class Measured:
    figures: list[Figure] = field(default_factory=list)
    sample_counts: Int64Array | None = None
    """How many subscriptions match the new row of each of the first changes."""


class InlineRun:
    """Server and gateway with all subscriptions and all rows in place."""

    def __init__(self, data: SelectData, points: PointBatch) -> None:
        self.data = data
        self.ingest = Ingest(data.catalog)
        self.zones = ZoneMap.build([points], ZONES)
        self.shard = TableShard(data.catalog, {})
        self.shard.apply(TablesWork(points=[points]))
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


def measure(data: SelectData, say: Say) -> Measured:
    points = data.points()
    run = InlineRun(data, points)
    measured = Measured(figures=_load(run, points))
    say("filling the table and warming up")
    inserted = run.fill()
    updates = data.updates()
    first = run.route([next(updates)])
    measured.sample_counts = _sample(run.gateway, first)
    run.gateway.apply(GatewayWork(messages=[_head(batch, SAMPLE) for batch in first]))
    say("changes to messages, ids and notifications")
    measured.figures += _flow(run, updates)
    measured.figures.append(_match(run, inserted))
    say("adding and dropping subscriptions")
    measured.figures += churn(data, points, run.shard, run.gateway)
    return measured


def in_turn(sizes: list[SelectData]) -> dict[int, Figure]:
    """Changes to routed messages, a batch of each size in turn: whatever else the machine does slows all sizes alike."""
    runs = [InlineRun(data, data.points()) for data in sizes]
    for run in runs:
        run.fill()
    rates: dict[int, list[float]] = {data.size: [] for data in sizes}
    for batches in zip(*(data.updates() for data in sizes), strict=True):
        for run, batch in zip(runs, batches, strict=True):
            rates[run.data.size].append(len(batch) / timed(run.route, [batch])[0].wall)
    label = "inline: changes to routed messages, sizes in turn"
    return {
        size: Figure("inline.routed.in_turn.changes_per_s", label, "changes/s", median(found))
        for size, found in rates.items()
    }


def _load(run: InlineRun, points: PointBatch) -> list[Figure]:
    """Puts all points into the gateway, watching memory."""
    blob = pack([{"points": points, "views": None}])
    before = rss_bytes()
    taken, _ = timed(run.gateway.load, blob)
    grown = rss_bytes() - before
    count = len(run.gateway)
    assert count == run.data.size
    return [
        Figure(
            "inline.load.subscriptions_per_s",
            "inline: gateway filled from nothing",
            "subscriptions/s",
            count / taken.wall,
        ),
        Figure(
            "inline.memory.index", "inline: memory, index as counted", "bytes/subscription", run.gateway.nbytes / count
        ),
        Figure("inline.memory.rss", "inline: memory, growth of the process", "bytes/subscription", grown / count),
    ]


def _sample(gateway: Gateway, messages: list[MessageBatch]) -> Int64Array:
    """Matches of the new rows of the first changes: deliveries whose tag says that the new row is in."""
    batch = _head(messages[0], SAMPLE)
    pairs = gateway.pairs(batch)
    return np.bincount(pairs.message[(pairs.tags & NEW) != 0], minlength=len(batch))


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
    some = [_head(batch, max(1, int(_LINES_MAX / max(matches, 1.0)))) for batch in messages]
    tell, count = timed(_tell, run.gateway, some)
    told = count / matches if matches else 1.0
    return _Stages(_over(route, len(changes)), _over(pairs, len(changes)), _over(tell, told), matches)


def _tell(gateway: Gateway, messages: list[MessageBatch]) -> int:
    """Makes the text of all notifications; gives their number."""
    notifications, _ = gateway.apply(GatewayWork(messages=messages))
    for _ in notifications.text():
        pass
    return len(notifications)


def _flow(run: InlineRun, updates: Iterable[ChangeBatch]) -> list[Figure]:
    """Medians over the batches. Every batch goes through all stages; the last few also come as JSON."""
    batches = list(updates)
    stages = [_stages(run, batch) for batch in batches]
    route, pairs, tell = (median(getattr(s, name).wall for s in stages) for name in ("route", "pairs", "tell"))
    as_json = [(len(batch), json_lines(batch)) for batch in batches[-_JSON_BATCHES:]]
    parse = median(timed(run.ingest.parse, lines)[0].wall / count for count, lines in as_json)
    matches = mean(s.matches for s in stages)
    per_change = [
        ("inline.routed", "inline: changes to routed messages", route),
        ("inline.ids", "inline: changes to subscription ids", route + pairs),
        ("inline.notifications", "inline: changes to finished notifications", route + tell),
        ("inline.json.routed", "inline: JSON lines to routed messages", parse + route),
        ("inline.json.notifications", "inline: JSON lines to finished notifications", parse + route + tell),
    ]
    return [
        Figure("inline.matches", "inline: deliveries per change", "pairs/change", matches),
        *(Figure(f"{key}.changes_per_s", label, "changes/s", 1 / taken) for key, label, taken in per_change),
        Figure("inline.ids.pairs_per_s", "inline: messages to subscription ids alone", "pairs/s", matches / pairs),
        Figure(
            "inline.notifications_per_s",
            "inline: messages to notification lines alone",
            "notifications/s",
            matches / tell,
        ),
        Figure("inline.json.changes_per_s", "inline: JSON parsing alone", "changes/s", 1 / parse),
        *_busy(stages, matches),
    ]


def _busy(stages: list[_Stages], matches: float) -> list[Figure]:
    """The same by processor time, as means over all batches: other work on the machine hardly matters here."""
    route, pairs, tell = (mean(getattr(s, name).cpu for s in stages) for name in ("route", "pairs", "tell"))
    return [
        Figure("inline.routed.changes_per_cpu_s", "inline: changes to routed messages", "changes/cpu s", 1 / route),
        Figure(
            "inline.ids.pairs_per_cpu_s", "inline: messages to subscription ids alone", "pairs/cpu s", matches / pairs
        ),
        Figure(
            "inline.notifications_per_cpu_s",
            "inline: messages to notification lines alone",
            "notifications/cpu s",
            matches / tell,
        ),
    ]


def _match(run: InlineRun, inserted: list[list[MessageBatch]]) -> Figure:
    """New rows to ids and nothing else: exactly what peers do."""
    found = [timed(lambda part: [run.gateway.pairs(batch) for batch in part], part)[0].wall for part in inserted]
    per_row = median(taken / sum(map(len, part)) for taken, part in zip(found, inserted, strict=True))
    return Figure(
        "inline.match.changes_per_s", "inline: new rows to subscription ids, index alone", "changes/s", 1 / per_row
    )


def _over(taken: Seconds, count: float) -> Seconds:
    return Seconds(taken.wall / count, taken.cpu / count)


def _head(messages: MessageBatch, count: int) -> MessageBatch:
    return messages.take(np.arange(min(count, len(messages))))
