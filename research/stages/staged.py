"""The message strategies in one process: changes become messages to regions of subscription space, messages notifications.

lines --ingest--> changes --tables--> messages --gateway--> notifications
                               \\--forms--/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from research.servers.changes import ChangeBatch
from research.servers.message import MessageBatch
from research.stages.dispatch import placed_points, to_forms, to_gateways
from research.stages.forms import FormShard, FormsWork, GroupKey
from research.stages.gateway import Gateway, GatewayWork
from research.stages.parsing import parse
from research.stages.tables import TableShard, TablesResult, TablesWork
from research.stages.zones import ZoneMap
from research.wire import wire_size
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.notification import NotificationBatch
from tidings.model.points import PointBatch
from tidings.model.quarantine import Quarantined
from tidings.pipeline.door import Door
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.stats import Stats


@dataclass
class StagedResult:
    notifications: NotificationBatch
    refused: list[Quarantined]


class StagedEngine:
    """All stages in one process, one shard each: for families served by a message strategy, and to observe messages."""

    def __init__(
        self,
        catalog: Catalog,
        strategies: Mapping[str, str] | None = None,
        on_images: Callable[[TableChanges], None] | None = None,
        on_work: Callable[[GatewayWork], None] | None = None,
        *,
        counts_bytes: bool = False,
    ) -> None:
        """on_images: called with all accepted changes. on_work: called with the input of the gateway, once per micro-batch.

        counts_bytes: statistics include the encoded size of messages, which takes time to compute.
        """
        self.catalog = catalog
        self.strategies = dict(strategies or {})
        self.door = Door(catalog)
        self.stats = Stats()
        self._ingest = Ingest(catalog)
        self._tables = TableShard(catalog, self.strategies, on_images=on_images)
        self._forms: dict[GroupKey, FormShard] = {}
        self._gateway = Gateway(catalog)
        self._zones = ZoneMap(1)
        self._on_work = on_work
        self._counts_bytes = counts_bytes
        self._position = 0
        self._points: list[PointBatch] = []

    @property
    def passed(self) -> int:
        """The last sequence number accepted."""
        return self._tables.passed

    def feed(self, lines: Iterable[bytes]) -> StagedResult:
        """Handles one micro-batch of raw change records, together with the subscription events gathered at the door."""
        records = list(lines)
        parsed = parse(self._ingest, self.catalog, records, self._position)
        self._position += len(records)
        return self.feed_changes(parsed.changes, parsed.refused)

    def feed_changes(self, changes: list[ChangeBatch], refused: list[Quarantined] | None = None) -> StagedResult:
        """As `feed`, for changes that are already typed. refused: entries to include in the result."""
        return self._flow(TablesWork.of(changes, self._new_points()), refused or [])

    def take(self, points: list[PointBatch]) -> None:
        """Adds subscription events compiled by another `Door`; they are handled with the next micro-batch."""
        self._points.extend(points)

    def finish(self) -> StagedResult:
        """The end of the input: subscriptions that wait for a later sequence number get their snapshots."""
        return self._flow(TablesWork(points=self._new_points(), is_end=True), [])

    def _new_points(self) -> list[PointBatch]:
        points, self._points = [*self._points, *self.door.take()], []
        return points

    def _flow(self, work: TablesWork, refused: list[Quarantined]) -> StagedResult:
        result, _ = self._tables.apply(work)
        forms: dict[GroupKey, FormsWork] = {}
        for parcel in to_forms(result, self._tables.groups, is_first=True):
            parcel.add_to(forms.setdefault(parcel.group, FormsWork()))
        for group, forms_work in forms.items():
            if group not in self._forms:
                self._forms[group] = FormShard(self.catalog, self.strategies)
            result.sent.extend(self._forms[group].apply(forms_work)[0])
        onward = GatewayWork()
        for each in placed_points(result, self._zones, is_first=True):
            each.add_to(onward)
        for each in to_gateways(result.sent, [*result.released, *result.placed], self._zones):
            each.add_to(onward)
        return self._deliver(onward, result, refused)

    def _deliver(self, onward: GatewayWork, result: TablesResult, refused: list[Quarantined]) -> StagedResult:
        if self._on_work is not None:
            self._on_work(onward)
        notifications, _ = self._gateway.apply(onward)
        everything = sorted([*refused, *result.refused], key=lambda entry: entry.position)
        self.stats.changes += result.accepted
        self.stats.quarantined += len(everything)
        _count(self.stats, onward.messages, counts_bytes=self._counts_bytes)
        self.stats.deliveries = self._gateway.deliveries
        self.stats.notifications = self._gateway.notifications
        return StagedResult(notifications, everything)


def _count(stats: Stats, batches: Iterable[MessageBatch], *, counts_bytes: bool) -> None:
    """Counts messages that are not encoded. counts_bytes: encode them to count their bytes, which takes time."""
    for batch in batches:
        family = Form.from_key(batch.form).family
        stats.messages[family] += len(batch)
        if counts_bytes:
            stats.message_bytes[family] += wire_size(batch)
