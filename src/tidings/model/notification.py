"""Notifications: result changes for one subscription at one sequence number, and their lines in `out.jsonl`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.model.codes import BoolArray, Int64Array
from tidings.model.quarantine import Quarantined
from tidings.model.render import json_texts

_HEAD = '{"subscription": '
_PIECE_BYTES_MAX = 2**30
_PIECE_LINES_MAX = 500_000
"""Limits of the lines joined at a time: Arrow's text arrays hold at most 2 GiB."""


@dataclass(frozen=True)
class NotificationBatch:
    """Finished notifications, ordered by (seq, id), a change before a snapshot.

    tails[tail[i]] is the part of line i behind the subscription id; subscriptions with the same notification share it.
    """

    seq: Int64Array
    ids: pa.Array
    tail: Int64Array
    tails: list[str]
    is_snapshot: BoolArray

    def __len__(self) -> int:
        return len(self.seq)

    def lines(self) -> list[str]:
        return [line for part in self._joined("") for line in part.to_pylist()]

    def text(self) -> Iterator[memoryview]:
        """The lines with their ends, in large pieces."""
        for part in self._joined("\n"):
            _, offsets, data = part.buffers()
            ends = np.frombuffer(offsets, np.int32, len(part) + 1, part.offset * 4)
            yield memoryview(data)[int(ends[0]) : int(ends[-1])]

    def _joined(self, end: str) -> Iterator[pa.Array]:
        heads = json_texts(self.ids)
        tails = pa.array([tail + end for tail in self.tails], pa.large_string())
        longest = max((4 * len(tail) for tail in self.tails), default=0) + 4096
        step = max(1, min(_PIECE_LINES_MAX, _PIECE_BYTES_MAX // longest))
        for start in range(0, len(self), step):
            taken = tails.take(pa.array(self.tail[start : start + step])).cast(pa.string())
            yield pc.binary_join_element_wise(_HEAD, heads.slice(start, len(taken)), taken, "")

    @staticmethod
    def merge(batches: Sequence[NotificationBatch]) -> NotificationBatch:
        """All notifications of several gateways, in order."""
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return NotificationBatch.empty()
        first_tail = np.cumsum([0] + [len(batch.tails) for batch in batches])
        seq = np.concatenate([batch.seq for batch in batches])
        ids = pa.concat_arrays([batch.ids for batch in batches])
        tail = np.concatenate([batch.tail + first for batch, first in zip(batches, first_tail, strict=False)])
        is_snapshot = np.concatenate([batch.is_snapshot for batch in batches])
        order = told_order(seq, dense_ranks(ids), is_snapshot)
        tails = [tail for batch in batches for tail in batch.tails]
        return NotificationBatch(seq[order], ids.take(pa.array(order)), tail[order], tails, is_snapshot[order])

    @staticmethod
    def empty() -> NotificationBatch:
        none = np.empty(0, np.int64)
        return NotificationBatch(none, pa.array([], pa.string()), none, [], np.empty(0, np.bool_))


def told_order(seq: Int64Array, rank: Int64Array, is_snapshot: BoolArray) -> Int64Array:
    """Indexes that sort notifications by seq, then by rank of the id, a change before a snapshot."""
    ranks, seqs = int(rank.max()) + 1, int(seq.max()) - int(seq.min()) + 1
    if ranks * seqs * 2 < 2**62:
        # All three fit into one number, and sorting numbers is several times faster than sorting by three columns.
        return np.argsort(((seq - seq.min()) * ranks + rank) * 2 + is_snapshot)
    return np.lexsort((is_snapshot, rank, seq))


def dense_ranks(ids: pa.Array) -> Int64Array:
    """Rank of each id in ascending order; equal ids have equal ranks."""
    order = np.asarray(pc.sort_indices(ids)).astype(np.int64)
    ordered = ids.take(pa.array(order))
    is_new = np.asarray(pc.not_equal(ordered.slice(1), ordered.slice(0, max(0, len(ids) - 1))))
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(is_new)])[: len(ids)]
    return ranks


def change_tail(seq: int, changes: str) -> str:
    """The tail of a notification line. changes: one change in JSON, or several joined by ', '."""
    return f', "seq": {seq}, "snapshot": false, "changes": [{changes}]}}'


def snapshot_tail(seq: int, rows: Sequence[str]) -> str:
    changes = ", ".join(insert_change(row) for row in rows)
    return f', "seq": {seq}, "snapshot": true, "changes": [{changes}]}}'


def insert_change(row: str) -> str:
    return f'{{"op": "insert", "row": {row}}}'


def delete_change(row: str) -> str:
    return f'{{"op": "delete", "row": {row}}}'


def update_change(old: str, row: str) -> str:
    return f'{{"op": "update", "old": {old}, "row": {row}}}'


@dataclass
class Lines:
    """Notification lines in order, each with a newline. data: the bytes of all lines."""

    data: npt.NDArray[np.uint8]
    count: int

    def __len__(self) -> int:
        return self.count

    def text(self) -> Iterator[memoryview]:
        """The lines with their ends, in large pieces."""
        if self.count:
            yield self.data.data

    def lines(self) -> list[str]:
        return self.data.tobytes().decode().split("\n")[:-1]

    @staticmethod
    def joined(parts: Sequence[Lines]) -> Lines:
        """Lines that follow each other."""
        data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
        return Lines(data, sum(map(len, parts)))


NO_LINES = Lines(np.empty(0, np.uint8), 0)


@dataclass
class BatchResult:
    """Result of a micro-batch."""

    notifications: Lines
    refused: list[Quarantined]
