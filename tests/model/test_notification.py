"""Notifications in columns: what stands in their lines is in the columns, however batches are cut, packed and merged."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model import notification
from tidings.model.blob import pack, unpack
from tidings.model.change import NO_TIME
from tidings.model.notification import (
    NO_NOTIFICATIONS,
    NONE,
    NotificationBatch,
    change_tail,
    insert_change,
    snapshot_tail,
)

ROWS = ["{}", '{"a": "changes"}', '{"a": "\\"changes\\": [é"}', '{"seq": 1}']
HEADS = st.tuples(st.integers(0, 5), st.text(max_size=4), st.booleans())
"""seq, id, is_snapshot."""


def batch_of(told: dict[tuple[int, str, bool], str]) -> NotificationBatch:
    """told: the row that each notification is about."""
    keys = sorted(told)
    tails = [
        snapshot_tail(seq, [told[key]]) if key[2] else change_tail(seq, insert_change(told[key]))
        for key, seq in zip(keys, (seq for seq, _, _ in keys), strict=True)
    ]
    distinct = [*dict.fromkeys(tails)]
    return NotificationBatch.of(
        np.array([seq for seq, _, _ in keys], np.int64),
        pa.array([id for _, id, _ in keys], pa.string()),
        np.array([distinct.index(tail) for tail in tails], np.int64),
        distinct,
        np.array([is_snapshot for _, _, is_snapshot in keys], np.bool_),
    )


def check(batch: NotificationBatch, told: dict[tuple[int, str, bool], str]) -> None:
    columns = zip(batch.seq.tolist(), batch.subscriptions().to_pylist(), batch.is_snapshot.tolist(), strict=True)
    assert list(columns) == sorted(told)
    records = [json.loads(line) for line in batch.lines()]
    assert [(each["seq"], each["subscription"], each["snapshot"]) for each in records] == sorted(told)
    assert [json.loads(text) for text in batch.changes().to_pylist()] == [each["changes"] for each in records]
    assert [each["changes"] for each in records] == [
        [{"op": "insert", "row": json.loads(told[key])}] for key in sorted(told)
    ]
    assert b"".join(batch.text()).decode() == "".join(line + "\n" for line in batch.lines())


@given(st.dictionaries(HEADS, st.sampled_from(ROWS), max_size=12), st.integers(1, 300))
def test_columns_are_what_lines_say(told: dict[tuple[int, str, bool], str], size: int) -> None:
    batch = batch_of(told)
    check(batch, told)
    check(unpack(pack(batch)), told)
    keys, pieces = sorted(told), [*batch.pieces(size)]
    assert sum(map(len, pieces)) == len(told)
    for piece in pieces:
        own, keys = keys[: len(piece)], keys[len(piece) :]
        check(unpack(pack(piece)), {key: told[key] for key in own})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notification, "_PIECE_BYTES", size)
        check(batch, told)


@given(st.dictionaries(HEADS, st.tuples(st.sampled_from(ROWS), st.integers(0, 2)), max_size=12))
def test_batches_are_merged_in_order(told: dict[tuple[int, str, bool], tuple[str, int]]) -> None:
    parts = [{key: row for key, (row, owner) in told.items() if owner == number} for number in range(3)]
    check(NotificationBatch.merge([batch_of(part) for part in parts]), {key: row for key, (row, _) in told.items()})


def test_times_and_transactions_stay_with_their_notifications() -> None:
    parts = [batch_of({(seq, id, False): "{}" for seq in (1, 2)}) for id in ("a", "b", "c")]
    parts[0] = replace(parts[0], tail_time=np.array([10, NO_TIME]), tail_tx=np.array([0, 1]), txs=["x", "y"])
    parts[1] = replace(parts[1], tail_tx=np.array([NONE, 0]), txs=["z"])
    merged = NotificationBatch.merge(parts)
    found = zip(merged.subscriptions().to_pylist(), merged.time.tolist(), merged.tx(), strict=True)
    assert list(found) == [
        ("a", 10, "x"),
        ("b", NO_TIME, None),
        ("c", NO_TIME, None),
        ("a", NO_TIME, "y"),
        ("b", NO_TIME, "z"),
        ("c", NO_TIME, None),
    ]
    assert (unpack(pack(merged)).tx(), parts[2].tx()) == (merged.tx(), [None, None])


def test_nothing_is_told() -> None:
    assert NotificationBatch.merge([]) is NO_NOTIFICATIONS
    check(NO_NOTIFICATIONS, {})
    assert (list(NO_NOTIFICATIONS.pieces(10)), list(NO_NOTIFICATIONS.text())) == ([], [])
