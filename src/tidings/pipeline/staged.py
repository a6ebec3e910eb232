"""The message strategies in one process: changes become messages to regions of subscription space, these notifications.

lines --ingest--> changes --tables--> messages --gateway--> notifications
                               \\--forms--/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch, TableChanges
from tidings.model.notification import NotificationBatch
from tidings.model.points import PointBatch
from tidings.model.quarantine import Quarantined
from tidings.pipeline.deliver import Gateway, GatewayWork
from tidings.pipeline.door import Door
from tidings.pipeline.forms import FormShard, FormsWork, GroupKey, sent_on
from tidings.pipeline.host import Sent
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.stats import Stats
from tidings.pipeline.tables import TableShard, TablesResult, TablesWork


@dataclass
class BatchResult:
    notifications: NotificationBatch
    refused: list[Quarantined]


class StagedEngine:
    """An engine of its own, for those who want to see the messages, and for families served by a message strategy."""

    def __init__(
        self,
        catalog: Catalog,
        strategies: Mapping[str, str] | None = None,
        on_images: Callable[[TableChanges], None] | None = None,
        on_work: Callable[[GatewayWork], None] | None = None,
        *,
        counts_bytes: bool = False,
    ) -> None:
        """`on_images` is called with all accepted changes, `on_work` with all that goes to the gateway: for those who watch.

        `counts_bytes`: statistics have the bytes that messages would be sent as, too. To find them takes time.
        """
        self.catalog = catalog
        self.strategies = dict(strategies or {})
        self.door = Door(catalog)
        self.stats = Stats()
        self._ingest = Ingest(catalog)
        self._tables = TableShard(catalog, self.strategies, on_images=on_images)
        self._forms: dict[GroupKey, FormShard] = {}
        self._gateway = Gateway(catalog)
        self._on_work = on_work
        self._counts_bytes = counts_bytes
        self._position = 0
        self._points: list[PointBatch] = []

    @property
    def passed(self) -> int:
        """The last sequence number accepted."""
        return self._tables.passed

    def feed(self, lines: Iterable[bytes]) -> BatchResult:
        """One micro-batch of raw change records."""
        records = list(lines)
        parsed = self._ingest.parse(records, self._position)
        self._position += len(records)
        return self.feed_changes(parsed.changes, parsed.refused)

    def feed_changes(self, changes: list[ChangeBatch], refused: list[Quarantined] | None = None) -> BatchResult:
        """One micro-batch of typed changes, together with the subscription events gathered at the door."""
        return self._flow(TablesWork.of(changes, self._new_points()), refused or [])

    def take(self, points: list[PointBatch]) -> None:
        """Subscription events that came in by another door; they go with the next micro-batch."""
        self._points.extend(points)

    def finish(self) -> BatchResult:
        """The end of the input: subscriptions that wait for a later sequence number get their snapshots."""
        return self._flow(TablesWork(points=self._new_points(), is_end=True), [])

    def _new_points(self) -> list[PointBatch]:
        points, self._points = [*self._points, *self.door.take()], []
        return points

    def _flow(self, work: TablesWork, refused: list[Quarantined]) -> BatchResult:
        result, sent = self._serve(work)
        messages = sent.merged()
        onward = GatewayWork([*result.released, *result.placed], messages, sent.snapshots)
        if self._on_work is not None:
            self._on_work(onward)
        notifications, _ = self._gateway.apply(onward)
        everything = sorted([*refused, *result.refused], key=lambda entry: entry.position)
        self.stats.changes += result.accepted
        self.stats.quarantined += len(everything)
        self.stats.count_messages(messages, counts_bytes=self._counts_bytes)
        self.stats.deliveries = self._gateway.deliveries
        self.stats.notifications = self._gateway.notifications
        return BatchResult(notifications, everything)

    def _serve(self, work: TablesWork) -> tuple[TablesResult, Sent]:
        result, _ = self._tables.apply(work)
        groups: dict[GroupKey, FormsWork] = {}
        for group, changes in result.images:
            groups.setdefault(group, FormsWork()).changes.append(changes)
        for points in sent_on(result.released, self.catalog):
            groups.setdefault(self._tables.groups.of(points.form), FormsWork()).points.append(points)
        for group, forms_work in groups.items():
            if group not in self._forms:
                self._forms[group] = FormShard(self.catalog, self.strategies)
            sent, _ = self._forms[group].apply(forms_work)
            result.sent.messages.extend(sent.messages)
            result.sent.snapshots.extend(sent.snapshots)
        return result, result.sent
