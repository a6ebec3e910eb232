"""The inline engine on a bench: changes to routed messages, to subscription ids, to finished notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean, median
from typing import Any

import numpy as np

from research.bench.dataset import Dataset, json_lines
from research.stages.forms import FormShard, FormsWork, sent_on
from research.stages.gateway import Gateway, GatewayWork
from research.stages.sharding import zoned_space
from research.stages.tables import TableShard, TablesResult, TablesWork
from research.stages.zones import ZoneMap
from tidings.bench import Say
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import Seconds, rss_bytes, timed
from tidings.families.registry import gathered
from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch
from tidings.model.message import MessageBatch
from tidings.pipeline.ingest import Ingest

INLINE = Heading("inline", "inline")
ZONES = 4
_LINES_MAX = 500_000
"""Notifications made at a time, so that their text does not fill the memory."""
_JSON_BATCHES = 3


class WholeServer(TableShard):
    """The tables stage and the forms stage with its only group, as one server."""

    def __init__(self, catalog: Catalog, strategies: Mapping[str, str]) -> None:
        super().__init__(catalog, strategies)
        self._forms = FormShard(catalog, strategies)

    def apply(self, work: TablesWork) -> tuple[TablesResult, Any]:
        result, entry = super().apply(work)
        points = sent_on(result.released, self._catalog)
        sent, _ = self._forms.apply(FormsWork([changes for _, changes in result.images], points))
        result.sent.messages.extend(sent.messages)
        result.sent.snapshots.extend(sent.snapshots)
        return result, entry


class InlineRun:
    """A server with all subscriptions in place, and a gateway that has none yet."""

    def __init__(
        self,
        data: Dataset,
        strategies: Mapping[str, str] | None = None,
        *,
        has_forms: bool = False,
        rows_first: bool = False,
    ) -> None:
        """has_forms: whether the family is served in the forms stage.

        rows_first: rows are inserted before the subscriptions, which get snapshots of them. Else subscriptions come first, and
        the rows are missing until `fill`.
        """
        self.data = data
        self.ingest = Ingest(data.catalog)
        points = data.points()
        self.zones = ZoneMap.build(gathered([points], data.catalog), ZONES, partial(zoned_space, catalog=data.catalog))
        self.shard = (WholeServer if has_forms else TableShard)(data.catalog, strategies or {})
        self._is_filled = False
        if rows_first:
            self.fill()
        result, _ = self.shard.apply(TablesWork(points=[points]))
        self.points = [*result.released, *result.placed]
        """Creation events of all subscriptions, with the server's coordinates."""
        self.snapshots = result.sent.snapshots
        self.gateway = Gateway(data.catalog)

    def fill(self) -> list[list[MessageBatch]]:
        """Inserts all rows unless that was done before. Returns the messages of each batch."""
        inserts = [] if self._is_filled else self.data.inserts()
        self._is_filled = True
        return [self.messages([batch]) for batch in inserts]

    def fill_gateway(self) -> None:
        self.gateway.apply(GatewayWork(self.points, [], self.snapshots))

    def messages(self, changes: list[ChangeBatch]) -> list[MessageBatch]:
        result, _ = self.shard.apply(TablesWork.of(changes, []))
        assert not result.refused
        return result.sent.merged()

    def route(self, changes: list[ChangeBatch]) -> list[MessageBatch]:
        """Turns changes into messages and finds the zones of each. Returns the messages."""
        messages = self.messages(changes)
        for batch in messages:
            self.zones.route(batch)
        return messages


def runs_in_turn(runs: Sequence[InlineRun], heading: Heading) -> dict[int, Figure]:
    """Rates of changes to routed messages, a batch of each size in turn, so that other work slows all sizes alike."""
    for run in runs:
        run.fill()
    rates: dict[int, list[float]] = {run.data.size: [] for run in runs}
    for batches in zip(*(run.data.updates() for run in runs), strict=True):
        for run, batch in zip(runs, batches, strict=True):
            rates[run.data.size].append(len(batch) / timed(run.route, [batch])[0].wall)
    label = "changes to routed messages, sizes in turn"
    return {
        size: heading.figure("routed.in_turn.changes_per_s", label, "changes/s", median(found))
        for size, found in rates.items()
    }


def whole_path(run: InlineRun, heading: Heading, say: Say, label: str) -> list[Figure]:
    """Fills the gateway, then times changes through all stages; the first batch is not timed."""
    say(f"{label}: filling the gateway")
    figures = load(run, run.fill_gateway, heading)
    for messages in run.fill():
        run.gateway.apply(GatewayWork(messages=messages))
    say(f"{label}: changes to messages, ids and notifications")
    updates = run.data.updates()
    run.gateway.apply(GatewayWork(messages=run.route([next(updates)])))
    return figures + flow(run, updates, heading)


def load(run: InlineRun, fill: Callable[[], object], heading: Heading = INLINE) -> list[Figure]:
    """Times `fill`, which puts all points into the gateway, and measures its memory."""
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
    telling, count = timed(tell, run.gateway, some)
    told = count / matches if matches else 1.0
    return _Stages(_over(route, len(changes)), _over(pairs, len(changes)), _over(telling, told), matches)


def tell(gateway: Gateway, messages: list[MessageBatch]) -> int:
    """Makes the text of all notifications. Returns their number."""
    notifications, _ = gateway.apply(GatewayWork(messages=messages))
    for _ in notifications.text():
        pass
    return len(notifications)


def flow(run: InlineRun, updates: Iterable[ChangeBatch], heading: Heading = INLINE) -> list[Figure]:
    """Medians over the batches. Every batch goes through all stages; the last few also come as JSON."""
    batches = list(updates)
    stages = [_stages(run, batch) for batch in batches]
    route, pairs, tell = (median(getattr(s, name).wall for s in stages) for name in ("route", "pairs", "tell"))
    parse = parsing_s(run, batches)
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


def parsing_s(run: InlineRun, batches: Sequence[ChangeBatch]) -> float:
    """Median seconds to parse a change, over the last few batches as JSON."""
    as_json = [(len(batch), json_lines(batch)) for batch in batches[-_JSON_BATCHES:]]
    return median(timed(run.ingest.parse, lines)[0].wall / count for count, lines in as_json)


def _busy(stages: list[_Stages], matches: float, heading: Heading) -> list[Figure]:
    """Rates by processor time, means over all batches; other work on the machine hardly affects them."""
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
