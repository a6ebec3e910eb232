"""The inline engine: the whole flow in one process.

lines --replica: rows, events, evaluation over shared rows--> notification lines
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from tidings.model.catalog import Catalog
from tidings.model.notification import BatchResult
from tidings.model.quarantine import Quarantined
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.stats import Stats


class Engine:
    """Subscriptions in, changes in, notifications out; results after every call equal recomputation."""

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
        self.catalog = catalog
        self.door = Door(catalog, needs_evaluator=True) if door is None else door
        self.started = time.monotonic()
        self._replica = Replica(catalog, strategies, by_commit=by_commit)
        self._position = self._loaded = self._refused = 0

    @property
    def passed(self) -> int:
        """The last sequence number accepted."""
        return self._replica.passed

    @property
    def stats(self) -> Stats:
        """Counts so far."""
        replica = self._replica
        counts = replica.notifications
        return Stats(
            replica.changes, replica.messages(), replica.message_bytes(), counts.copy(), counts.copy(), self._refused
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
        applied = self._replica.apply(records, self._position, self.door.take(), is_end=is_end)
        self._refused += len(applied.refused)
        self.door.forget(self._replica.passed)
        return BatchResult(applied.notifications, applied.refused)
