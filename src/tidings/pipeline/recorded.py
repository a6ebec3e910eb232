"""What the engines in one process have in common, however they evaluate: recorded lines in, notifications out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from tidings.model.catalog import Catalog
from tidings.model.notification import BatchResult
from tidings.model.quarantine import Quarantined
from tidings.pipeline.door import Door
from tidings.pipeline.stats import Stats


class RecordedEngine(ABC):
    """Subscriptions in, changes in, notifications out; results after every call equal recomputation."""

    def __init__(self, catalog: Catalog, door: Door) -> None:
        """door: where subscriptions come in, and may have come in already."""
        self.catalog = catalog
        self.door = door
        self._position = self._loaded = self._refused = 0

    @property
    @abstractmethod
    def stats(self) -> Stats:
        """Counts so far."""

    def refuse(self, refused: list[Quarantined]) -> list[Quarantined]:
        """Counts records that were refused at the door."""
        self._refused += len(refused)
        return refused

    def load(self, lines: Iterable[bytes]) -> list[Quarantined]:
        """Takes rows that are there before the first change, as records without seq. Returns those that are refused.

        To be called before the first `feed`. Nobody is told of these rows; they are in the snapshots.
        """
        records = lines if isinstance(lines, list) else list(lines)
        refused = self._load(records, self._loaded)
        self._loaded += len(records)
        return self.refuse(refused)

    def feed(self, lines: Iterable[bytes]) -> BatchResult:
        """One micro-batch of raw change records, together with the subscription events gathered at the door."""
        records = lines if isinstance(lines, list) else list(lines)
        result = self._flow(records, self._position)
        self._position += len(records)
        self._refused += len(result.refused)
        return result

    def finish(self) -> BatchResult:
        """The end of the input: subscriptions that wait for a later sequence number get their snapshots."""
        return self._flow([], self._position, is_end=True)

    @abstractmethod
    def _load(self, records: list[bytes], position: int) -> list[Quarantined]:
        """position: of the first record, among all that are loaded."""

    @abstractmethod
    def _flow(self, records: list[bytes], position: int, *, is_end: bool = False) -> BatchResult:
        """position: of the first record, among all changes."""
