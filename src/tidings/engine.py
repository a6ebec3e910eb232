"""The inline engine: the whole flow in one process.

lines --replica: rows, events, evaluation over shared rows--> notification lines
"""

from __future__ import annotations

from collections.abc import Mapping

from tidings.model.catalog import Catalog
from tidings.model.notification import BatchResult
from tidings.model.quarantine import Quarantined
from tidings.pipeline.door import Door
from tidings.pipeline.recorded import RecordedEngine
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.stats import Stats


class Engine(RecordedEngine):
    """Evaluates all subscriptions over all rows."""

    def __init__(
        self,
        catalog: Catalog,
        strategies: Mapping[str, str] | None = None,
        door: Door | None = None,
        *,
        by_commit: bool = True,
    ) -> None:
        """strategies: family -> name of a strategy over shared rows. `door`: where subscriptions have come in already.

        by_commit: subscribers are told the net effect of each transaction; else every record for itself.
        """
        super().__init__(catalog, Door(catalog) if door is None else door)
        self._replica = Replica(catalog, strategies, by_commit=by_commit)

    @property
    def passed(self) -> int:
        """The last sequence number accepted."""
        return self._replica.passed

    @property
    def stats(self) -> Stats:
        replica = self._replica
        counts = replica.notifications
        return Stats(
            replica.changes, replica.messages(), replica.message_bytes(), counts.copy(), counts.copy(), self._refused
        )

    def _load(self, records: list[bytes], position: int) -> list[Quarantined]:
        return self._replica.load_rows(records, position)

    def _flow(self, records: list[bytes], position: int, *, is_end: bool = False) -> BatchResult:
        applied = self._replica.apply(records, position, self.door.take(), is_end=is_end)
        self.door.forget(self._replica.passed)
        return BatchResult(applied.notifications, applied.refused)
