"""The inline engine on the select bench: changes to routed messages, to subscription ids, to finished notifications."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from tidings.bench import Say
from tidings.bench.churn import churn
from tidings.bench.report import Figure
from tidings.bench.select_data import SelectData, json_lines
from tidings.bench.timing import rss_bytes, seconds
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
_LINES_MAX = 200_000
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

    def fill(self) -> None:
        for batch in self.data.inserts():
            self.shard.apply(TablesWork.of([batch], []))

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
    run.fill()
    updates = data.updates()
    first = run.route([next(updates)])
    measured.sample_counts = _sample(run.gateway, first)
    run.gateway.apply(GatewayWork(messages=[_head(batch, SAMPLE) for batch in first]))
    say("changes to messages, ids and notifications")
    measured.figures += _flow(run, updates)
    say("adding and dropping subscriptions")
    measured.figures += churn(data, points, run.shard, run.gateway)
    return measured


def _load(run: InlineRun, points: PointBatch) -> list[Figure]:
    """Puts all points into the gateway, watching memory."""
    blob = pack([points])
    before = rss_bytes()
    taken = seconds(lambda: run.gateway.load(blob))
    grown = rss_bytes() - before
    count = len(run.gateway)
    assert count == run.data.size
    return [
        Figure("inline.load.subscriptions_per_s", "inline: gateway filled from nothing", "subscriptions/s", count / taken),
        Figure("inline.memory.index", "inline: memory, index as counted", "bytes/subscription", run.gateway.nbytes / count),
        Figure("inline.memory.rss", "inline: memory, growth of the process", "bytes/subscription", grown / count),
    ]


def _sample(gateway: Gateway, messages: list[MessageBatch]) -> Int64Array:
    """Matches of the new rows of the first changes: deliveries whose tag says that the new row is in."""
    batch = _head(messages[0], SAMPLE)
    pairs = gateway.pairs(batch)
    return np.bincount(pairs.message[(pairs.tags & NEW) != 0], minlength=len(batch))


def _flow(run: InlineRun, updates: Iterable[ChangeBatch]) -> list[Figure]:
    """Medians over the batches. Every batch is used for all stages; the last few come as JSON."""
    batches = list(updates)
    cut = max(len(batches) - _JSON_BATCHES, 1)
    route_s, pairs_s, pair_counts, tell_s, tell_counts, json_s = ([] for _ in range(6))  # type: ignore[var-annotated]
    for batch in batches[:cut]:
        messages: list[MessageBatch] = []
        route_s.append(seconds(lambda: messages.extend(run.route([batch]))) / len(batch))
        found = 0

        def pairs() -> None:
            nonlocal found
            found = sum(len(run.gateway.pairs(part).slot) for part in messages)

        pairs_s.append(seconds(pairs) / len(batch))
        pair_counts.append(found / len(batch))
        told, taken = _tell(run.gateway, messages, found / len(batch))
        tell_s.append(taken)
        tell_counts.append(told)
    for batch in batches[cut:] or batches[:1]:
        lines = json_lines(batch)
        json_s.append(seconds(lambda: run.ingest.parse(lines)) / len(batch))
    route, pair, parse = median(route_s), median(pairs_s), median(json_s)
    tell = median(s * m / n if n else 0.0 for s, m, n in zip(tell_s, pair_counts, tell_counts, strict=True))
    matches = median(pair_counts)
    per_change = [
        ("inline.routed", "inline: changes to routed messages", route),
        ("inline.ids", "inline: changes to subscription ids", route + pair),
        ("inline.notifications", "inline: changes to finished notifications", route + tell),
        ("inline.json.routed", "inline: JSON lines to routed messages", parse + route),
        ("inline.json.notifications", "inline: JSON lines to finished notifications", parse + route + tell),
    ]
    return [
        Figure("inline.matches", "inline: deliveries per change", "pairs/change", matches),
        *(Figure(f"{key}.changes_per_s", label, "changes/s", 1 / taken) for key, label, taken in per_change),
        Figure("inline.ids.pairs_per_s", "inline: messages to subscription ids alone", "pairs/s", matches / pair),
        Figure("inline.notifications_per_s", "inline: messages to notification lines alone", "notifications/s", matches / tell),
        Figure("inline.json.changes_per_s", "inline: JSON parsing alone", "changes/s", 1 / parse),
    ]


def _tell(gateway: Gateway, messages: list[MessageBatch], matches: float) -> tuple[int, float]:
    """(notifications, seconds) of telling some of the messages, as many as memory allows."""
    some = [_head(batch, max(1, int(_LINES_MAX / max(matches, 1.0)))) for batch in messages]
    lines: list[str] = []
    taken = seconds(lambda: lines.extend(gateway.apply(GatewayWork(messages=some))[0].lines()))
    return len(lines), taken


def _head(messages: MessageBatch, count: int) -> MessageBatch:
    return messages.take(np.arange(min(count, len(messages))))
