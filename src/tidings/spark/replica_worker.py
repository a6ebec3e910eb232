"""Replicas on Spark. Every replica gets all changes and a share of the subscriptions, and writes its own notifications."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tidings.model.blob import pack, unpack
from tidings.model.notification import Lines
from tidings.model.points import PointBatch
from tidings.pipeline.partition import replica_of, share
from tidings.pipeline.registrar import Answer, Registrar
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.replica.row_store import Origin
from tidings.spark import envelope as kinds
from tidings.spark.envelope import Envelope
from tidings.spark.ingest import pack_refused
from tidings.spark.plan import Plan
from tidings.spark.stateful_processor import Handling
from tidings.spark.stream_lines import StreamLines, split_lines

_PIECE_BYTES = 64 * 2**20
_SAMPLES = 4


class _Input(NamedTuple):
    """A micro-batch as a replica takes it."""

    lines: list[bytes]
    origin: Origin
    points: list[PointBatch]
    is_end: bool = False
    answers: Sequence[Answer] = ()
    """To the subscription events from which the points were made."""


class ReplicaWorker:
    """A replica as a `Shard` of the processor; of a stream together with the registry of its subscriptions."""

    def __init__(self, plan: Plan, key: str) -> None:
        self._plan = plan
        self._number = plan.replica_keys.index(key)
        self._replica = Replica(plan.catalog, keeps_points=True, is_stream=plan.is_stream)
        is_first = self._number == 0
        self._registrar = Registrar(plan.catalog, self._is_own, answers_broken=is_first) if plan.is_stream else None

    def _is_own(self, id: str) -> bool:
        return replica_of(id, self._plan.shards) == self._number

    def dump(self) -> bytes:
        known = None if self._registrar is None else self._registrar.dump()
        return pack({"replica": self._replica.dump(), "known": known})

    def load(self, blob: bytes) -> None:
        state = unpack(blob)
        self._replica.load(state["replica"])
        if self._registrar is not None:
            self._registrar.load(state["known"])

    def replay(self, entry: Any) -> None:
        taken = self._take(entry)
        self._replica.replay(taken.lines, taken.origin, taken.points, is_end=taken.is_end)

    def handle(self, inputs: list[Envelope]) -> Handling:
        # The log entry has the whole input; of recorded input only the numbers of blocks, as their lines can be read again.
        entry = sorted((kind, blob) for _, kind, blob in inputs)
        key, replica = inputs[0].key, self._replica
        before = _counts(replica)
        taken = self._take(entry)
        lines, refused = replica.apply(taken.lines, taken.origin, taken.points, is_end=taken.is_end)
        yield from self._deliver(key, lines)
        if taken.answers:
            yield Envelope(
                key, kinds.ANSWERS, b"".join(msgspec.json.encode(answer) + b"\n" for answer in taken.answers)
            )
        counts: dict[str, Any] = {
            name: dict(now - then) for (name, now), then in zip(_counts(replica).items(), before.values(), strict=True)
        }
        if self._number == 0:
            if refused:
                yield Envelope(key, kinds.REFUSED, pack_refused(refused))
            counts |= {"passed": replica.passed, "is_end": taken.is_end, "changes": counts["changes"].get("", 0)}
        else:
            counts = {name: counts[name] for name in ("deliveries", "notifications")}
        yield Envelope(key, kinds.METRICS, pack(counts))
        return entry

    def _take(self, entry: Sequence[tuple[str, bytes]]) -> _Input:
        """Reads an entry. Subscription events of a stream enter the registry: called once for each entry."""
        if self._registrar is not None:
            return self._take_stream(self._registrar, entry)
        numbers = (int.from_bytes(blob, "big") for kind, blob in entry if kind == kinds.RECORDED)
        rows = [row for number in numbers for row in self._plan.recording.rows(number)]
        blocks = [row for row in rows if row.kind == kinds.LINES]
        points = [part for row in rows if row.kind == kinds.POINTS for part in unpack(row.value or b"")]
        lines = [line for row in blocks for line in split_lines(row.value)]
        position = (blocks[0].position or 0) if blocks else 0
        own = share(points, self._plan.shards, self._number)
        return _Input(lines, position, own, is_end=any(row.kind == kinds.END for row in rows))

    def _take_stream(self, registrar: Registrar, entry: Sequence[tuple[str, bytes]]) -> _Input:
        changes, events = (
            StreamLines.of([blob for kind, blob in entry if kind == wanted]) for wanted in (kinds.LINES, kinds.EVENTS)
        )
        points: list[PointBatch] = []
        answers: list[Answer] = []
        if events.lines:
            # Events have a seq of their own, so that a subscription never begins twice at one.
            self._replica.advance()
            points, answers = registrar.handle(events.located(), self._replica.passed)
        return _Input(changes.lines, changes.places, points, answers=answers)

    def _deliver(self, key: str, lines: Lines) -> Iterator[Envelope]:
        """Envelopes with sample lines, and with the notifications or (if the plan has `parts`) the name of a file of them."""
        if not len(lines):
            return
        yield Envelope(key, kinds.SAMPLES, pack(_samples(lines)))
        if self._plan.parts:
            path = Path(self._plan.parts) / f"{uuid.uuid4().hex}.lines"
            with path.open("wb") as sink:
                sink.writelines(lines.text())
                sink.flush()
                os.fsync(sink.fileno())
            yield Envelope(key, kinds.PART, path.name.encode())
            return
        data = lines.data.tobytes()
        start = 0
        while start < len(data):
            stop = (
                len(data) if len(data) - start <= _PIECE_BYTES else data.rindex(b"\n", start, start + _PIECE_BYTES) + 1
            )
            yield Envelope(key, kinds.NOTIFICATIONS, data[start:stop])
            start = stop


def _counts(replica: Replica) -> dict[str, Counter[str]]:
    told = replica.notifications.copy()
    return {
        "changes": Counter({"": replica.changes}),
        "messages": replica.messages(),
        "message_bytes": replica.message_bytes(),
        "deliveries": told,
        "notifications": told,
    }


def _samples(lines: Lines) -> list[str]:
    """At most _SAMPLES lines from the end of the batch, snapshots excluded."""
    tail = lines.data[-100_000:].tobytes().split(b"\n")[1:-1]
    found = [line.decode() for line in tail if b'"snapshot": false' in line]
    return found[:: max(1, len(found) // _SAMPLES)][:_SAMPLES]
