"""A sender and its places in one process: the same notifications as one engine with all rows, and what each place costs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.families.registry import sender_of
from tidings.model.catalog import Catalog
from tidings.model.notification import BatchResult, NotificationBatch
from tidings.model.quarantine import Quarantined
from tidings.pipeline.door import Door
from tidings.pipeline.edge.entered import EnteredSender
from tidings.pipeline.edge.pack import Pack, place_of
from tidings.pipeline.edge.partial import PartialReplica
from tidings.pipeline.edge.sender import Sender
from tidings.pipeline.recorded import RecordedEngine
from tidings.pipeline.stats import Stats


@dataclass
class _Place:
    """A gateway, and what it has cost."""

    replica: PartialReplica
    packs: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def take(self, pack: Pack) -> NotificationBatch:
        begin = time.process_time()
        self.packs += 1
        self.bytes += len(pack.items)
        notifications = self.replica.take(pack)
        self.seconds += time.process_time() - begin
        return notifications


class PlacedEngine(RecordedEngine):
    """An engine whose subscriptions are spread over places by a hash of their ids."""

    def __init__(
        self,
        catalog: Catalog,
        places: int,
        door: Door | None = None,
        strategies: Mapping[str, str] | None = None,
        *,
        by_commit: bool = True,
    ) -> None:
        """strategies: None for the sender `entered`; else those by which rows find gateways (`--strategy`)."""
        super().__init__(catalog, Door(catalog) if door is None else door)
        self._sender = _sender(catalog, places, strategies, by_commit=by_commit)
        self._places = [_Place(PartialReplica(catalog)) for _ in range(places)]
        self._seconds = 0.0

    @property
    def passed(self) -> int:
        return self._sender.replica.passed

    @property
    def stats(self) -> Stats:
        central, counts = self._sender.replica, Stats()
        counts.changes, counts.quarantined = central.changes, self._refused
        counts.messages, counts.message_bytes = self._sender.traffic()
        for place in self._places:
            counts.notifications += place.replica.notifications
        counts.deliveries = counts.notifications
        return counts

    def places(self) -> dict[str, Any]:
        """What the sender and each place have cost, for `--stats`."""
        sent = self._sender.holders.counts.tolist()
        each = [
            {
                "place": number,
                "subscriptions": len(place.replica.subscriptions),
                "rows": place.replica.store.row_count,
                "packs": place.packs,
                "messages": messages,
                "backfills": backfills,
                "bytes": place.bytes,
                "seconds": round(place.seconds, 6),
            }
            for number, (place, (messages, backfills)) in enumerate(zip(self._places, sent, strict=True))
        ]
        return {
            "sender": {"rows": self._sender.replica.store.row_count, "seconds": round(self._seconds, 6)},
            "places": each,
        }

    def _load(self, records: list[bytes], position: int) -> list[Quarantined]:
        return self._sender.replica.load_rows(records, position)

    def _flow(self, records: list[bytes], position: int, *, is_end: bool = False) -> BatchResult:
        begin = time.process_time()
        packs, applied = self._sender.feed(records, position, self.door.take(), is_end=is_end)
        self._seconds += time.process_time() - begin
        told = [self._places[place].take(pack) for place, pack in packs.items()]
        self.door.forget(self.passed)
        return BatchResult(NotificationBatch.merge(told), applied.refused)


def _sender(catalog: Catalog, places: int, strategies: Mapping[str, str] | None, *, by_commit: bool) -> Sender:
    def place(id: str) -> int:
        return place_of(id, places)

    if strategies is None:
        return EnteredSender(catalog, places, place, by_commit=by_commit)
    make = sender_of(strategies)
    if make is not None:
        made: Sender = make(catalog, places, place, strategies, by_commit=by_commit)
        return made
    # It has kernels of its own, which take seconds to compile.
    from tidings.pipeline.edge.regions import RegionSender

    return RegionSender(catalog, places, place, by_commit=by_commit)
