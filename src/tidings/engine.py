"""The inline engine: the whole flow in one process.

lines --replica: rows, events, evaluation over shared rows--> notification lines

Families for which another strategy than `shared` is asked for go through the stages that make messages instead.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from tidings.families.registry import message_strategies, shares_rows
from tidings.model.catalog import Catalog
from tidings.model.notification import BatchResult, NotificationBatch
from tidings.model.points import PointBatch, last_lives
from tidings.model.quarantine import Quarantined
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.replica.row_texts import insert_lines
from tidings.pipeline.staged import StagedEngine
from tidings.pipeline.stats import Stats

_FORMS_MAX = 4_096
"""Of so many forms it is known how they are served; with more, all are forgotten and asked again."""


class Engine:
    """Subscriptions in, changes in, notifications out; results after every call equal recomputation."""

    def __init__(
        self,
        catalog: Catalog,
        strategies: Mapping[str, str] | None = None,
        door: Door | None = None,
        *,
        counts_bytes: bool = False,
        by_commit: bool = True,
    ) -> None:
        """`door`: where subscriptions have come in already. `counts_bytes`: of messages between stages too; that takes time.

        by_commit: subscribers are told the net effect of each transaction; else every record for itself. Strategies that
        send messages tell every record in any case.
        """
        self.catalog = catalog
        self.strategies = dict(strategies or {})
        self.door = Door(catalog) if door is None else door
        self.started = time.monotonic()
        self._replica = Replica(catalog, self.strategies, by_commit=by_commit)
        chosen = message_strategies(self.strategies)
        self._staged = StagedEngine(catalog, chosen, counts_bytes=counts_bytes)
        self._has_staged = False
        self._is_shared: dict[str, bool] = {}
        self._position = self._loaded = 0
        self._refused = 0

    @property
    def passed(self) -> int:
        """The last sequence number accepted."""
        return self._replica.passed

    @property
    def stats(self) -> Stats:
        """Counts so far."""
        stats = self._staged.stats if self._has_staged else Stats()
        replica = self._replica
        return Stats(
            replica.changes,
            stats.messages + replica.messages(),
            stats.message_bytes + replica.message_bytes(),
            stats.deliveries + replica.notifications,
            stats.notifications + replica.notifications,
            self._refused,
        )

    def refuse(self, refused: list[Quarantined]) -> list[Quarantined]:
        """Counts records that were refused at the door."""
        self._refused += len(refused)
        return refused

    def load(self, lines: Iterable[bytes]) -> list[Quarantined]:
        """Takes rows that are there before the first change, as records without seq. Returns those that are refused.

        To be called before the first `feed`. Nobody is told of these rows; they are in the snapshots.
        """
        records = lines if isinstance(lines, list) else list(lines)
        refused = self._replica.load_rows(records, self._loaded)
        self._loaded += len(records)
        return self.refuse(refused)

    def feed(self, lines: Iterable[bytes]) -> BatchResult:
        """One micro-batch of raw change records, together with the subscription events gathered at the door."""
        records = lines if isinstance(lines, list) else list(lines)
        result = self._flow(records, is_end=False)
        self._position += len(records)
        return result

    def finish(self) -> BatchResult:
        """The end of the input: subscriptions that wait for a later sequence number get their snapshots."""
        return self._flow([], is_end=True)

    def _flow(self, records: list[bytes], *, is_end: bool) -> BatchResult:
        points = self.door.take()
        own, others = self._split(points) if points else ([], [])
        if others and not self._has_staged:
            self._catch_up()
        notifications, refused, *_ = self._replica.apply(records, self._position, own, is_end=is_end)
        self._refused += len(refused)
        if self._has_staged:
            self._staged.take(others)
            staged = self._staged.finish() if is_end else self._staged.feed(records)
            notifications = NotificationBatch.merge([notifications, staged.notifications])
        self.door.forget(self._replica.passed)
        return BatchResult(notifications, refused)

    def _split(self, points: Sequence[PointBatch]) -> tuple[list[PointBatch], list[PointBatch]]:
        """Events of subscriptions that are evaluated over shared rows, and those of all others."""
        is_shared = [self._shares(batch.form) for batch in points]
        if any(is_shared) and not all(is_shared):
            # Neither of the two could tell that a life on its side is followed at once by one on the other.
            moments = PointBatch.by_moment(batch.in_order() for batch in points)
            points = [batch for _, due in moments for batch in last_lives(due)]
        parts: tuple[list[PointBatch], list[PointBatch]] = ([], [])
        for batch in PointBatch.by_form(points):
            parts[0 if self._shares(batch.form) else 1].append(batch)
        return parts

    def _shares(self, form_key: str) -> bool:
        known = self._is_shared.get(form_key)
        if known is None:
            if len(self._is_shared) >= _FORMS_MAX:
                self._is_shared.clear()
            known = self._is_shared[form_key] = shares_rows(form_key, self.strategies)
        return known

    def _catch_up(self) -> None:
        """The stages learn the rows there are: as inserts, with numbers that have all passed."""
        self._has_staged = True
        self._staged.feed(insert_lines(self._replica.store))
