"""Replicas on Spark: changes go to all of them, subscriptions to one each; every one writes its own notifications."""

from __future__ import annotations

import os
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tidings.model.blob import pack, unpack
from tidings.model.points import PointBatch
from tidings.pipeline.replica.replica import Lines, Replica
from tidings.spark import envelope as kinds
from tidings.spark.envelope import Envelope
from tidings.spark.ingest import NO_POSITION, pack_refused
from tidings.spark.processor import Handling
from tidings.spark.stages import Plan

_PIECE_BYTES = 64 * 2**20
_SAMPLES = 4


class ReplicaWorker:
    """One replica behind the shard processor."""

    def __init__(self, plan: Plan, key: str) -> None:
        self._plan = plan
        self._is_first = key == plan.keys.replica(0)
        self._replica = Replica(plan.catalog, keeps_points=True)
        self.dump, self.load = self._replica.dump, self._replica.load

    def replay(self, entry: Any) -> None:
        self._replica.replay(*self._read(entry), is_end=entry["is_end"])

    def handle(self, inputs: list[Envelope]) -> Handling:
        blocks, points, is_end = [], [], False
        for _, kind, blob in inputs:
            if kind == kinds.LINES:
                blocks.append((int.from_bytes(blob[:8], "big", signed=True), blob[8:]))
            elif kind == kinds.POINTS:
                points.extend(unpack(blob))
            elif kind == kinds.END:
                is_end = True
        entry = {"blocks": sorted(blocks), "points": points, "is_end": is_end}
        key, replica = inputs[0].key, self._replica
        before = _counts(replica)
        lines, refused = replica.apply(*self._read(entry), is_end=is_end)
        yield from self._deliver(key, lines)
        counts: dict[str, Any] = {
            name: dict(now - then) for (name, now), then in zip(_counts(replica).items(), before.values(), strict=True)
        }
        if self._is_first:
            if refused:
                yield Envelope(key, kinds.REFUSED, pack_refused(refused))
            counts |= {"passed": replica.passed, "is_end": is_end, "changes": counts["changes"].get("", 0)}
        else:
            counts = {name: counts[name] for name in ("deliveries", "notifications")}
        yield Envelope(key, kinds.METRICS, pack(counts))
        return entry

    @staticmethod
    def _read(entry: Any) -> tuple[list[bytes], int, list[PointBatch]]:
        """Lines of a micro-batch in order, the position of the first, and subscription events."""
        blocks = entry["blocks"]
        lines = [line.rstrip(b"\r") for _, block in blocks for line in block.split(b"\n")]
        position = blocks[0][0] if blocks else 0
        if position == NO_POSITION:
            lines, position = sorted(lines, key=_by_number), 0
        return lines, position, entry["points"]

    def _deliver(self, key: str, lines: Lines) -> Iterator[Envelope]:
        """Notifications to a file of their own, or as they are; and a few to show."""
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
    """Order of records whose source has none: by their numbers, those without one first."""
    try:
        return _numbered.decode(line).seq, zlib.crc32(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0, zlib.crc32(line)


def _samples(lines: Lines) -> list[str]:
    """A few lines of changes, from the end of the batch."""
    tail = lines.data[-100_000:].tobytes().split(b"\n")[1:-1]
    found = [line.decode() for line in tail if b'"snapshot": false' in line]
    return found[:: max(1, len(found) // _SAMPLES)][:_SAMPLES]
