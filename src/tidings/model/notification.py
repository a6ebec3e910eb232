"""Notifications: result changes for one subscription at one sequence number, in columns; and their lines in `out.jsonl`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.model.change import NO_TIME
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.quarantine import Quarantined
from tidings.model.render import json_texts
from tidings.model.text_column import TextColumn

_HEAD, _CHANGES = '{"subscription": ', '"changes": '
_PIECE_BYTES = 2**28
"""Lines are written in pieces of about this size."""
NONE = -1


@dataclass(slots=True)
class NotificationBatch:
    """Notifications in the order of the output: by (seq, id), a change before a snapshot. [n]: notifications.

    A *tail* is the part of a line behind the id: seq, transaction, changes, and a newline. All who are told the same share one.
    Every sink gets this value. Files write its lines; others have no need of lines to know what they want to know.
    """

    ids: TextColumn
    """[n]: ids of the subscriptions as JSON strings."""
    tail: Int64Array
    """[n]: number of the tail."""
    tails: TextColumn
    tail_seq: Int64Array
    """[tails]."""
    tail_is_snapshot: BoolArray
    """[tails]."""
    tail_time: Int64Array | None = None
    """[tails]: when the change was made, in microseconds, or NO_TIME; None: this is not known of any."""
    tail_tx: Int64Array | None = None
    """[tails]: number of the transaction in `txs`, or NONE; None: there are no transactions."""
    txs: Sequence[str] = ()
    """Ids of transactions."""

    def __len__(self) -> int:
        return len(self.tail)

    @property
    def seq(self) -> Int64Array:
        return self.tail_seq[self.tail]

    @property
    def is_snapshot(self) -> BoolArray:
        return self.tail_is_snapshot[self.tail]

    @property
    def time(self) -> Int64Array:
        """When the change was made, in microseconds, or NO_TIME, [n]."""
        return _known(self.tail_time, self, NO_TIME)[self.tail]

    def tx(self) -> list[str | None]:
        """Ids of the transactions, [n]."""
        names = [*self.txs, None]
        return [names[number] for number in _known(self.tail_tx, self, NONE)[self.tail].tolist()]

    def subscriptions(self) -> pa.Array:
        """Ids of the subscriptions as texts, [n]."""
        quoted = self.ids.arrow()
        if (self.ids.data == ord("\\")).any():
            return pa.array([msgspec.json.decode(text) for text in quoted.to_pylist()], pa.large_string())
        return pc.binary_slice(quoted, 1, -1).cast(pa.large_string())

    def changes(self) -> pa.Array:
        """What each is told, as a JSON array, [n]."""
        tails = self.tails.arrow().cast(pa.large_string()).to_pylist()
        found = [tail[tail.index(_CHANGES) + len(_CHANGES) : -2] if tail else "" for tail in tails]
        return pa.array(found, pa.large_string()).take(pa.array(self.tail))

    def text(self) -> Iterable[memoryview]:
        """The lines with their ends, in large pieces."""
        if not len(self):
            return
        head, nothing = (pa.scalar(text, pa.large_binary()) for text in (_HEAD, ""))
        ids, tails = self.ids.arrow(), self.tails.arrow()
        longest = len(_HEAD) + int(self.ids.lengths.max()) + int(self.tails.lengths.max())
        step = max(1, _PIECE_BYTES // longest)
        for start in range(0, len(self), step):
            taken = tails.take(pa.array(self.tail[start : start + step]))
            lines = pc.binary_join_element_wise(head, ids.slice(start, step), taken, nothing)
            yield TextColumn.of(lines).data.data

    def lines(self) -> list[str]:
        return b"".join(self.text()).decode().split("\n")[:-1]

    def take(self, at: Int64Array) -> NotificationBatch:
        """These notifications, in the order given, which must be that of the output."""
        used, tail = np.unique(self.tail[at], return_inverse=True)
        return NotificationBatch(
            self.ids.take(at),
            tail.astype(np.int64),
            self.tails.take(used),
            self.tail_seq[used],
            self.tail_is_snapshot[used],
            None if self.tail_time is None else self.tail_time[used],
            None if self.tail_tx is None else self.tail_tx[used],
            self.txs,
        )

    def pieces(self, bytes_max: int) -> Iterator[NotificationBatch]:
        """The notifications in batches whose ids and tails have about so many bytes at most."""
        ends = np.cumsum(self.ids.lengths + self.tails.lengths[self.tail])
        start = 0
        while start < len(self):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + bytes_max, "right")))
            yield self.take(np.arange(start, stop))
            start = stop

    @staticmethod
    def of(
        seq: Int64Array,
        ids: pa.Array,
        tail: Int64Array,
        tails: Sequence[str],
        is_snapshot: BoolArray,
        tail_tx: Sequence[str | None] = (),
    ) -> NotificationBatch:
        """Notifications in order, field by field. ids: texts. tails[tail[i]]: what stands in line i behind the id.

        tail_tx: [tails], ids of their transactions; empty if there are none.
        """
        tail_seq, tail_is_snapshot = np.zeros(len(tails), np.int64), np.zeros(len(tails), np.bool_)
        tail_seq[tail], tail_is_snapshot[tail] = seq, is_snapshot
        quoted = TextColumn.of(json_texts(ids).cast(pa.large_string()))
        texts = TextColumn.of(pa.array([text + "\n" for text in tails], pa.large_string()))
        number = {tx: at for at, tx in enumerate(dict.fromkeys(tx for tx in tail_tx if tx is not None))}
        numbers = np.array([NONE if tx is None else number[tx] for tx in tail_tx], np.int64) if number else None
        return NotificationBatch(quoted, tail, texts, tail_seq, tail_is_snapshot, None, numbers, [*number])

    @staticmethod
    def merge(batches: Sequence[NotificationBatch]) -> NotificationBatch:
        """All notifications of several replicas or gateways, in order."""
        parts = [batch for batch in batches if len(batch)]
        if len(parts) < 2:
            return parts[0] if parts else NO_NOTIFICATIONS
        firsts = np.cumsum([0, *(len(part.tails) for part in parts)]).tolist()
        whole = NotificationBatch(
            TextColumn.joined([part.ids for part in parts]),
            np.concatenate([part.tail + first for part, first in zip(parts, firsts, strict=False)]),
            TextColumn.joined([part.tails for part in parts]),
            np.concatenate([part.tail_seq for part in parts]),
            np.concatenate([part.tail_is_snapshot for part in parts]),
            np.concatenate([_known(part.tail_time, part, NO_TIME) for part in parts]),
            *_numbered(parts),
        )
        return whole.take(told_order(whole.seq, dense_ranks(whole.subscriptions()), whole.is_snapshot))


_NO_TEXTS = TextColumn(np.empty(0, np.uint8), np.empty(0, np.int64))
NO_NOTIFICATIONS = NotificationBatch(
    _NO_TEXTS, np.empty(0, np.int64), _NO_TEXTS, np.empty(0, np.int64), np.empty(0, np.bool_)
)


def _known(column: Int64Array | None, batch: NotificationBatch, nothing: int) -> Int64Array:
    """A column of tails, also where there is none."""
    return np.full(len(batch.tails), nothing) if column is None else column


def _numbered(parts: Sequence[NotificationBatch]) -> tuple[Int64Array, list[str]]:
    """(number of the transaction of each tail of all batches, ids of transactions)."""
    firsts = np.cumsum([0, *(len(part.txs) for part in parts)]).tolist()
    known = [_known(part.tail_tx, part, NONE) for part in parts]
    numbers = [np.where(tx == NONE, NONE, tx + first) for tx, first in zip(known, firsts, strict=False)]
    return np.concatenate(numbers), [tx for part in parts for tx in part.txs]


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


def change_tail(seq: int, changes: str, tx: str | None = None) -> str:
    """The tail of a notification line. changes: one change in JSON, or several joined by ', '. tx: the transaction's id."""
    told = "" if tx is None else f', "tx": {encode_basestring(tx)}'
    return f', "seq": {seq}{told}, "snapshot": false, "changes": [{changes}]}}'


def net_changes(before: Mapping[Any, str], after: Mapping[Any, str]) -> list[str]:
    """What leads from one answer to another: the definition of the net effect of a commit, or of a micro-batch.

    before, after: texts of rows by their keys. Rows that look alike cancel out, whatever their keys. A row that goes and one
    that comes under its key are an update. Updates, deletes and inserts stand in this order, each sorted by text.
    """
    gone, come = Counter(before.values()) - Counter(after.values()), Counter(after.values()) - Counter(before.values())
    changes = []
    for old, new in sorted((before[key], after[key]) for key in before.keys() & after.keys()):
        if gone[old] and come[new]:
            gone[old] -= 1
            come[new] -= 1
            changes.append(update_change(old, new))
    changes += map(delete_change, sorted(gone.elements()))
    return [*changes, *map(insert_change, sorted(come.elements()))]


def snapshot_tail(seq: int, rows: Sequence[str]) -> str:
    changes = ", ".join(insert_change(row) for row in rows)
    return f', "seq": {seq}, "snapshot": true, "changes": [{changes}]}}'


def insert_change(row: str) -> str:
    return f'{{"op": "insert", "row": {row}}}'


def delete_change(row: str) -> str:
    return f'{{"op": "delete", "row": {row}}}'


def update_change(old: str, row: str) -> str:
    return f'{{"op": "update", "old": {old}, "row": {row}}}'


@dataclass(slots=True)
class BatchResult:
    """Result of a micro-batch."""

    notifications: NotificationBatch
    refused: list[Quarantined]
