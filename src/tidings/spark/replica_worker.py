"""Replicas on Spark. Every replica gets all changes and a share of the subscriptions, and writes its own notifications."""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tidings.files import load_files, open_input, read_lines
from tidings.kernels.rows import I64
from tidings.model.blob import pack, unpack
from tidings.model.change import NO_TIME
from tidings.model.notification import NotificationBatch
from tidings.model.points import PointBatch
from tidings.model.quarantine import Quarantined, raw_text
from tidings.pipeline.partition import replica_of, share
from tidings.pipeline.registrar import Answer, Registrar
from tidings.pipeline.replica.batch import Origin
from tidings.pipeline.replica.replica import Applied, Replica
from tidings.spark import envelope as kinds
from tidings.spark.counters import counted, latencies, refusals
from tidings.spark.envelope import Envelope
from tidings.spark.plan import Plan
from tidings.spark.stateful_processor import Handling
from tidings.spark.stream_lines import StreamLines, split_lines

_PIECE_BYTES = 16 * 2**20
_LOAD_LINES = 50_000
_NO_PLACE = "the record does not say where it stands in its partition: its offset or order is null"
_NOTES_MAX = 20
_WARNINGS_MAX = 100
"""Of one micro-batch and replica. What is warned of is counted as well, all of it."""


class _Input(NamedTuple):
    """A micro-batch as a replica takes it."""

    lines: list[bytes]
    origin: Origin
    points: list[PointBatch]
    is_end: bool = False
    answers: Sequence[Answer] = ()
    """To the subscription events from which the points were made."""
    times: I64 = np.empty(0, np.int64)
    """[lines] of a stream: when each change was made, in microseconds, or NO_TIME."""
    refused: Sequence[Quarantined] = ()
    """Records of a stream that have no place in their partition."""


class ReplicaWorker:
    """A replica as a `Shard` of the processor; of a stream together with the registry of its subscriptions."""

    def __init__(self, plan: Plan, key: str) -> None:
        self._plan = plan
        self._number = plan.replica_keys.index(key)
        self._replica = Replica(plan.catalog, keeps_points=True, is_stream=plan.is_stream, by_commit=plan.by_commit)
        self._is_new = True
        """Whether nothing has been loaded, replayed or handled yet."""
        self.needs_base = False
        self._registrar = Registrar(plan.catalog, self._is_own, self._reports) if plan.is_stream else None

    def _is_own(self, id: str) -> bool:
        return replica_of(id, self._plan.shards) == self._number

    def _reports(self, place: int) -> bool:
        """Whether this replica reports what is wrong with the record at this place: all replicas see it, one should speak."""
        return place % self._plan.shards == self._number

    @property
    def nbytes(self) -> int:
        return self._replica.nbytes + (0 if self._registrar is None else self._registrar.nbytes)

    def dump(self) -> bytes:
        # In pieces: a single value of a message may have 4 GiB at most.
        known = b"" if self._registrar is None else self._registrar.dump()
        return pack({"replica": _pieces(self._replica.dump()), "known": _pieces(known)})

    def load(self, blob: bytes) -> None:
        state = unpack(blob)
        self._is_new = False
        self._replica.load(b"".join(state["replica"]))
        if self._registrar is not None:
            self._registrar.load(b"".join(state["known"]))

    def replay(self, entry: Any) -> None:
        self._load_rows()
        taken = self._take(entry)
        self._expelled(self._replica.replay(taken.lines, taken.origin, taken.points, is_end=taken.is_end))

    def handle(self, inputs: list[Envelope]) -> Handling:
        # The log entry has the whole input; of recorded input only the numbers of blocks, as their lines can be read again.
        entry = sorted((kind, blob) for _, kind, blob, _ in inputs)
        key, replica = inputs[0].key, self._replica
        before = _counts(replica)
        unloaded = self._load_rows()
        taken = self._take(entry)
        found = replica.apply(taken.lines, taken.origin, taken.points, is_end=taken.is_end)
        taken = taken._replace(answers=[*taken.answers, *self._expelled(found)])
        seqs, times = _seq_times(found, taken.times)
        refused = [entry for entry in (*unloaded, *taken.refused, *found.refused) if self._reports(entry.position)]
        yield from self._deliver(key, found.notifications, seqs, times)
        yield from self._report(key, kinds.ANSWERS, (msgspec.json.encode(answer) for answer in taken.answers))
        yield from self._report(key, kinds.REFUSED, (entry.line().encode() for entry in refused))
        yield from self._report(key, kinds.WARNINGS, self._warnings(found))
        if notes := _notes(taken.answers):
            yield Envelope(key, kinds.NOTES, notes.encode())
        counts: dict[str, Any] = {
            name: dict(now - then) for (name, now), then in zip(_counts(replica).items(), before.values(), strict=True)
        }
        shared = {f"notifications_{family}": number for family, number in counts["notifications"].items()}
        shared |= refusals(refused) | latencies(time.time() - times[times != NO_TIME] / 1e6)
        shared |= {"answers": len(taken.answers), "shards": 1, **replica.size_counts()}
        shared["deliveries"] = sum(counts["deliveries"].values())
        shared["answers_refused"] = sum(answer.refused is not None for answer in taken.answers)
        if self._number == 0:
            counts |= {"passed": replica.passed, "is_end": taken.is_end, "changes": counts["changes"].get("", 0)}
            shared |= {"changes": counts["changes"], "messages": sum(counts["messages"].values())}
            shared["shared_keys"] = len(found.batch.shared)
        else:
            # Every replica has all rows.
            shared["rows"] = 0
            counts = {name: counts[name] for name in ("deliveries", "notifications")}
        counts["quarantined"] = len(refused)
        yield Envelope(key, kinds.METRICS, pack(counts), counted(shared) if self._plan.is_stream else None)
        return entry

    def _expelled(self, found: Applied) -> list[Answer]:
        """Answers to those whose subscriptions could not be evaluated, and who are registered no more."""
        for id, _ in found.failed:
            # Where state is restored from the log not all is evaluated: it might not fail again.
            self.needs_base = True
            if self._registrar is not None:
                self._registrar.expel(id)
        return [Answer("", 0, id, "create", refused=f"dropped: {reason}") for id, reason in found.failed]

    def _load_rows(self) -> list[Quarantined]:
        """Takes the rows that are there before the first micro-batch. Returns those that are refused."""
        refused: list[Quarantined] = []
        if self._is_new and self._plan.load:
            position = 0
            for path in load_files(Path(self._plan.load)):
                with open_input(path) as source:
                    while lines := list(islice(read_lines(source), _LOAD_LINES)):
                        refused += self._replica.load_rows(lines, position)
                        position += len(lines)
            # The files may change: they are read once, and the rows kept.
            self.needs_base = True
        self._is_new = False
        return refused

    def _warnings(self, found: Applied) -> Iterator[bytes]:
        """Lines about rows that come by several partitions, between which there is no order but that of micro-batches."""
        own = [(line, other) for line, other in found.batch.shared if self._reports(line)]
        for line, other in own[:_WARNINGS_MAX]:
            partition, offset = found.batch.place(line)
            reason = (
                f"the row came by partition {other!r} before: between partitions the order is that in which micro-batches "
                "take records in; send all changes of a row to one partition"
            )
            raw = found.batch.lines[line]
            yield (Quarantined("changes", offset, None, reason, raw_text(raw), partition).line().encode())

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
        (changes, lost), (events, unheard) = (
            StreamLines.split(blob for kind, blob in entry if kind == wanted) for wanted in (kinds.LINES, kinds.EVENTS)
        )
        points: list[PointBatch] = []
        answers: list[Answer] = []
        if events.lines:
            # Events have a seq of their own, so that a subscription never begins twice at one.
            self._replica.advance()
            points, answers = registrar.handle(events.located(), self._replica.passed)
        answers += [
            Answer(partition, offset, refused=_NO_PLACE)
            for partition, offset, _ in unheard.located()
            if self._reports(offset)
        ]
        refused = [
            Quarantined("changes", offset, None, _NO_PLACE, raw_text(line), partition)
            for partition, offset, line in lost.located()
        ]
        return _Input(changes.lines, changes.places, points, answers=answers, times=changes.times, refused=refused)

    def _deliver(self, key: str, told: NotificationBatch, seqs: I64, times: I64) -> Iterator[Envelope]:
        """Envelopes with the notifications or (if the plan has `parts`) the name of a file of them.

        seqs, times: of the changes of the micro-batch.
        """
        if not len(told):
            return
        if self._plan.parts:
            yield self._part(key, kinds.NOTIFICATIONS, told.text())
            return
        told.tail_time = _tail_times(told, seqs, times)
        for piece in told.pieces(_PIECE_BYTES):
            yield Envelope(key, kinds.NOTIFICATIONS, pack(piece))

    def _report(self, key: str, kind: str, lines: Iterable[bytes]) -> Iterator[Envelope]:
        """Envelopes with lines, or (if the plan has `parts`) with the name of a file of them."""
        data = b"".join(line + b"\n" for line in lines)
        if data and self._plan.parts:
            yield self._part(key, kind, [data])
        elif data:
            yield from (Envelope(key, kind, data[start:stop]) for start, stop in _cuts(data))

    def _part(self, key: str, kind: str, pieces: Iterable[bytes | memoryview]) -> Envelope:
        path = Path(self._plan.parts) / f"{uuid.uuid4().hex}.{kind}"
        with path.open("wb") as sink:
            sink.writelines(pieces)
            sink.flush()
            os.fsync(sink.fileno())
        return Envelope(key, kinds.PART, path.name.encode())


def _notes(answers: Sequence[Answer]) -> str:
    """Refused subscription events as lines for the job's log."""
    refused = [answer for answer in answers if answer.refused is not None]
    lines = [
        f"subscription {answer.id!r} refused: {answer.refused}"
        if answer.id is not None
        else f"subscription event {answer.offset} of {answer.partition!r} refused: {answer.refused}"
        for answer in refused[:_NOTES_MAX]
    ]
    if len(refused) > _NOTES_MAX:
        lines.append(f"{len(refused) - _NOTES_MAX:,} more subscription events refused: see the answers in the sink")
    return "\n".join(line.replace("\n", " ") for line in lines)


def _pieces(data: bytes) -> list[bytes]:
    return [data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES)]


def _cuts(data: bytes) -> Iterator[tuple[int, int]]:
    """(start, stop) of pieces of whole lines, of about _PIECE_BYTES."""
    start = 0
    while start < len(data):
        stop = data.find(b"\n", min(start + _PIECE_BYTES, len(data) - 1)) + 1
        yield start, stop
        start = stop


def _seq_times(found: Applied, times: I64) -> tuple[I64, I64]:
    """(seqs, times) of the accepted changes of a stream."""
    if not len(times):
        return times, times
    seqs, lines = found.batch.numbered()
    return seqs, times[lines]


def _counts(replica: Replica) -> dict[str, Counter[str]]:
    told = replica.notifications.copy()
    return {
        "changes": Counter({"": replica.changes}),
        "messages": replica.messages(),
        "message_bytes": replica.message_bytes(),
        "deliveries": told,
        "notifications": told,
    }


def _tail_times(told: NotificationBatch, seqs: I64, times: I64) -> I64:
    """When the change of each tail was made; a snapshot has no time. seqs, times: of the changes, by seq."""
    if not len(seqs):
        return np.full(len(told.tails), NO_TIME)
    at = np.minimum(np.searchsorted(seqs, told.tail_seq), len(seqs) - 1)
    return np.where((seqs[at] == told.tail_seq) & ~told.tail_is_snapshot, times[at], NO_TIME)
