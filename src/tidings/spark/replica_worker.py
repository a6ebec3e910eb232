"""Replicas on Spark. Every replica gets all changes and a share of the subscriptions, and writes its own notifications."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tidings.files import load_files, loaded_lines
from tidings.live.counters import figures, totals
from tidings.model.blob import pack, unpack
from tidings.model.notification import NotificationBatch
from tidings.model.quarantine import Quarantined
from tidings.pipeline.edge.dispatch import PlaceOptions
from tidings.pipeline.edge.wire import encode
from tidings.pipeline.live import Input, Live, notes_of
from tidings.pipeline.partition import replica_of, share
from tidings.pipeline.stream_lines import split_lines
from tidings.spark import envelope as kinds
from tidings.spark.counters import counted
from tidings.spark.envelope import Envelope
from tidings.spark.plan import Plan
from tidings.spark.stateful_processor import Handling

_PIECE_BYTES = 16 * 2**20


class ReplicaWorker:
    """A replica as a `Shard` of the processor; of a stream together with the registry of its subscriptions."""

    def __init__(self, plan: Plan, key: str) -> None:
        self._plan = plan
        self._number = plan.replica_keys.index(key)
        self._live = Live(
            plan.catalog,
            by_commit=plan.by_commit,
            is_stream=plan.is_stream,
            is_own=self._is_own,
            reports=self._reports,
            places=PlaceOptions(plan.gateways, plan.receive, plan.catalog_sql, plan.sender) if plan.gateways else None,
        )
        self._is_new = True
        """Whether nothing has been loaded, replayed or handled yet."""

    def _is_own(self, id: str, place: str) -> bool:
        """All subscriptions of a place are in one shard, and so are those of all places behind a broker."""
        return replica_of(place.partition("/")[0] or id, self._plan.shards) == self._number

    def _reports(self, place: int) -> bool:
        """Whether this replica reports what is wrong with the record at this place: all replicas see it, one should speak."""
        return place % self._plan.shards == self._number

    @property
    def needs_base(self) -> bool:
        return self._live.needs_base

    @property
    def nbytes(self) -> int:
        return self._live.nbytes

    def dump(self) -> bytes:
        return self._live.dump()

    def load(self, blob: bytes) -> None:
        self._is_new = False
        self._live.load(blob)

    def replay(self, entry: Any) -> None:
        self._load_rows()
        self._live.replay(self._take(entry))

    def handle(self, inputs: list[Envelope]) -> Handling:
        # The log entry has the whole input; of recorded input only the numbers of blocks, as their lines can be read again.
        entry = sorted((kind, blob) for _, kind, blob, _ in inputs)
        key, replica = inputs[0].key, self._live.replica
        before = totals(replica)
        unloaded = self._load_rows()
        taken = self._take(entry)
        found = self._live.apply(taken)
        found = found._replace(refused=[*unloaded, *found.refused])
        yield from self._deliver(key, found.told)
        for parcel in found.parcels:
            yield Envelope(key, kinds.PARCEL, encode(parcel))
        for kind, lines in found.reports().items():
            yield from self._report(key, kind, lines)
        if notes := notes_of(found.answers):
            yield Envelope(key, kinds.NOTES, "\n".join(notes).encode())
        metrics, counts = figures(replica, before, found, time.time(), is_first=self._number == 0)
        if self._number == 0:
            metrics["is_end"] = taken.is_end
        yield Envelope(key, kinds.METRICS, pack(metrics), counted(counts) if self._plan.is_stream else None)
        return entry

    def _load_rows(self) -> list[Quarantined]:
        """Takes the rows that are there before the first micro-batch. Returns those that are refused."""
        refused: list[Quarantined] = []
        if self._is_new and self._plan.load:
            for position, lines in loaded_lines(load_files(Path(self._plan.load))):
                refused += self._live.load_rows(lines, position)
        self._is_new = False
        return refused

    def _take(self, entry: Sequence[tuple[str, bytes]]) -> Input:
        """Reads an entry. Subscription events of a stream enter the registry: called once for each entry."""
        if self._plan.is_stream:
            changes, events = (
                [blob for kind, blob in entry if kind == wanted] for wanted in (kinds.LINES, kinds.EVENTS)
            )
            return self._live.read(changes, events)
        numbers = (int.from_bytes(blob, "big") for kind, blob in entry if kind == kinds.RECORDED)
        rows = [row for number in numbers for row in self._plan.recording.rows(number)]
        blocks = [row for row in rows if row.kind == kinds.LINES]
        points = [part for row in rows if row.kind == kinds.POINTS for part in unpack(row.value or b"")]
        lines = [line for row in blocks for line in split_lines(row.value)]
        position = (blocks[0].position or 0) if blocks else 0
        own = share(points, self._plan.shards, self._number)
        return Input(lines, position, own, is_end=any(row.kind == kinds.END for row in rows))

    def _deliver(self, key: str, told: NotificationBatch) -> Iterator[Envelope]:
        """Envelopes with the notifications or (if the plan has `parts`) the name of a file of them."""
        if not len(told):
            return
        if self._plan.parts and not self._plan.has_columns:
            yield self._part(key, kinds.NOTIFICATIONS, told.text())
            return
        for piece in told.pieces(_PIECE_BYTES):
            if self._plan.parts:
                yield self._part(key, kinds.NOTIFICATIONS, [pack(piece)])
            else:
                yield Envelope(key, kinds.NOTIFICATIONS, pack(piece))

    def _report(self, key: str, kind: str, data: bytes) -> Iterator[Envelope]:
        """Envelopes with lines, or (if the plan has `parts`) with the name of a file of them."""
        if self._plan.parts:
            yield self._part(key, kind, [data])
        else:
            yield from (Envelope(key, kind, data[start:stop]) for start, stop in _cuts(data))

    def _part(self, key: str, kind: str, pieces: Iterable[bytes | memoryview]) -> Envelope:
        path = Path(self._plan.parts) / f"{uuid.uuid4().hex}.{kind}"
        with path.open("wb") as sink:
            sink.writelines(pieces)
            sink.flush()
            os.fsync(sink.fileno())
        return Envelope(key, kinds.PART, path.name.encode())


def _cuts(data: bytes) -> Iterator[tuple[int, int]]:
    """(start, stop) of pieces of whole lines, of about _PIECE_BYTES."""
    start = 0
    while start < len(data):
        stop = data.find(b"\n", min(start + _PIECE_BYTES, len(data) - 1)) + 1
        yield start, stop
        start = stop
