"""Notifications: result changes for one subscription at one sequence number, and their lines in `out.jsonl`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring

import numpy as np

from tidings.model.codes import BoolArray, Int64Array


@dataclass(frozen=True)
class NotificationBatch:
    """Finished notifications, ordered by (seq, id), a change before a snapshot.

    `tails[tail[i]]` is the part of line i behind the subscription id: it is made once per message, not per subscriber.
    """

    seq: Int64Array
    ids: list[str]
    tail: Int64Array
    tails: list[str]
    is_snapshot: BoolArray

    def __len__(self) -> int:
        return len(self.ids)

    def lines(self) -> list[str]:
        tails = self.tails
        return [line_head(id) + tails[at] for id, at in zip(self.ids, self.tail.tolist(), strict=True)]

    @staticmethod
    def empty() -> NotificationBatch:
        return NotificationBatch(np.empty(0, np.int64), [], np.empty(0, np.int64), [], np.empty(0, np.bool_))


def line_head(id: str) -> str:
    return '{"subscription": ' + encode_basestring(id)


def change_tail(seq: int, changes: str) -> str:
    """The rest of a notification's line; `changes` is a change in JSON, or several joined by ', '."""
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
