"""Replicas on Spark. Every replica gets all changes and a share of the subscriptions, and writes its own notifications."""

from __future__ import annotations

import os
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tidings.model.blob import pack, unpack
from tidings.model.notification import Lines
from tidings.model.points import PointBatch
from tidings.pipeline.partition import share
from tidings.pipeline.replica.replica import Replica
from tidings.spark import envelope as kinds
from tidings.spark.envelope import NO_POSITION, Envelope
from tidings.spark.ingest import pack_refused
from tidings.spark.plan import Plan
from tidings.spark.stateful_processor import Handling

_PIECE_BYTES = 64 * 2**20
_SAMPLES = 4


class ReplicaWorker:
    """A replica as a `Shard` of the processor."""

    def __init__(self, plan: Plan, key: str) -> None:
        self._plan = plan
        self._number = plan.replica_keys.index(key)
        self._replica = Replica(plan.catalog, keeps_points=True)
        self.dump, self.load = self._replica.dump, self._replica.load

    def replay(self, entry: Any) -> None:
        lines, position, points, is_end = self._read(entry)
        self._replica.replay(lines, position, points, is_end=is_end)

    def handle(self, inputs: list[Envelope]) -> Handling:
        entry = self._entry((kind, int.from_bytes(blob[:8], "big", signed=True), blob[8:]) for _, kind, blob in inputs)
        key, replica = inputs[0].key, self._replica
        before = _counts(replica)
        records, position, points, is_end = self._read(entry)
        lines, refused = replica.apply(records, position, points, is_end=is_end)
        yield from self._deliver(key, lines)
        counts: dict[str, Any] = {
            name: dict(now - then) for (name, now), then in zip(_counts(replica).items(), before.values(), strict=True)
        }
        if self._number == 0:
            if refused:
                yield Envelope(key, kinds.REFUSED, pack_refused(refused))
            counts |= {"passed": replica.passed, "is_end": is_end, "changes": counts["changes"].get("", 0)}
        else:
            counts = {name: counts[name] for name in ("deliveries", "notifications")}
        yield Envelope(key, kinds.METRICS, pack(counts))
        return entry

    def _entry(self, rows: Iterable[tuple[str, int, bytes]]) -> dict[str, Any]:
        """The input of a micro-batch for this replica, which is also its log entry.

        Of recorded input the entry has only the numbers of blocks, as their lines can be read again.
        """
        entry: dict[str, Any] = {"blocks": [], "points": [], "is_end": False, "recorded": []}
        for kind, position, value in rows:
            if kind == kinds.LINES:
                entry["blocks"].append((position, value))
            elif kind == kinds.POINTS:
                entry["points"] += share(unpack(value), self._plan.shards, self._number)
            elif kind == kinds.END:
                entry["is_end"] = True
            elif kind == kinds.RECORDED:
                entry["recorded"].append(position)
        entry["blocks"].sort()
        return entry

    def _read(self, entry: dict[str, Any]) -> tuple[list[bytes], int, list[PointBatch], bool]:
        """(lines in order, position of the first line, subscription events, whether it is the last micro-batch) of an entry."""
        if entry["recorded"]:
            rows = (row for block in entry["recorded"] for row in self._plan.recording.rows(block))
            entry = self._entry((kind, position or 0, value or b"") for kind, position, value in rows)
        blocks = entry["blocks"]
        lines = [line.rstrip(b"\r") for _, block in blocks for line in block.split(b"\n")]
        position = blocks[0][0] if blocks else 0
        if position == NO_POSITION:
            lines, position = sorted(lines, key=_by_number), 0
        return lines, position, entry["points"], entry["is_end"]

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


class _Numbered(msgspec.Struct):
    seq: int = 0


_numbered = msgspec.json.Decoder(_Numbered)


def _by_number(line: bytes) -> tuple[int, int]:
    """Sort key of records whose source has no order: by seq, records without one first."""
    try:
        return _numbered.decode(line).seq, zlib.crc32(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0, zlib.crc32(line)


def _samples(lines: Lines) -> list[str]:
    """At most _SAMPLES lines from the end of the batch, snapshots excluded."""
    tail = lines.data[-100_000:].tobytes().split(b"\n")[1:-1]
    found = [line.decode() for line in tail if b'"snapshot": false' in line]
    return found[:: max(1, len(found) // _SAMPLES)][:_SAMPLES]
