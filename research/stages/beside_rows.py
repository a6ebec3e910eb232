"""Families by messages, and over shared rows what no message strategy serves, in one engine: the product's lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from research.servers.forms import has_server
from research.stages.last_lives import last_lives
from research.stages.staged import StagedEngine
from tidings.model.catalog import Catalog
from tidings.model.notification import BatchResult, NotificationBatch
from tidings.model.points import PointBatch
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.stats import Stats


class MessageEngine:
    """As `tidings.engine.Engine`, for strategies that send messages. Every record is told for itself."""

    def __init__(self, catalog: Catalog, strategies: Mapping[str, str], *, counts_bytes: bool = False) -> None:
        """counts_bytes: of encoded messages; that takes time."""
        self.catalog = catalog
        self.door = Door(catalog)
        self._replica = Replica(catalog, by_commit=False)
        self._staged = StagedEngine(catalog, strategies, counts_bytes=counts_bytes)
        self._position = 0

    @property
    def stats(self) -> Stats:
        staged, replica = self._staged.stats, self._replica
        return Stats(
            replica.changes,
            staged.messages + replica.messages(),
            staged.message_bytes + replica.message_bytes(),
            staged.deliveries + replica.notifications,
            staged.notifications + replica.notifications,
            staged.quarantined,
        )

    def feed(self, lines: Iterable[bytes]) -> BatchResult:
        """One micro-batch of raw change records, together with the subscription events gathered at the door."""
        records = list(lines)
        result = self._flow(records, is_end=False)
        self._position += len(records)
        return result

    def finish(self) -> BatchResult:
        """The end of the input."""
        return self._flow([], is_end=True)

    def _flow(self, records: list[bytes], *, is_end: bool) -> BatchResult:
        own, others = self._split(self.door.take())
        applied = self._replica.apply(records, self._position, own, is_end=is_end)
        self._staged.take(others)
        staged = self._staged.finish() if is_end else self._staged.feed(records)
        return BatchResult(NotificationBatch.merge([applied.notifications, staged.notifications]), applied.refused)

    def _split(self, points: Sequence[PointBatch]) -> tuple[list[PointBatch], list[PointBatch]]:
        """Events of subscriptions that are evaluated over shared rows, and those of all others."""
        # Neither of the two could tell that a life on its side is followed at once by one on the other.
        moments = PointBatch.by_moment(batch.in_order() for batch in points)
        parts: tuple[list[PointBatch], list[PointBatch]] = ([], [])
        for batch in PointBatch.by_form(batch for _, due in moments for batch in last_lives(due)):
            parts[1 if has_server(batch.form) else 0].append(batch)
        return parts
