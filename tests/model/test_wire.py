"""The wire form of a message: open sides cost nothing, nulls cost a bit, and sizes are told without making bytes."""

import datetime as dt

import numpy as np
import pyarrow as pa

from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.message import MessageBatch
from tidings.model.region import Regions
from tidings.model.wire import encode_message, wire_sizes

HEADER_BYTES = 4 + 8 + 2 + 1


def message(payload, *, channel=(), lo=((CODE_MIN, CODE_MIN),), hi=((CODE_MAX, CODE_MAX),), target=None):
    boxes = Regions(np.array(lo), np.array(hi), np.full(len(lo), 3, np.uint8), np.array([0, len(lo)]))
    return MessageBatch("f", np.array([7]), channel, boxes, pa.RecordBatch.from_pydict(payload), target)


def size(batch):
    data = encode_message(batch, 0, form_number=9)
    assert wire_sizes(batch).tolist() == [len(data)]
    return len(data)


def test_a_whole_space_costs_a_tag_and_a_bitmap():
    # Header; no channel; box: tag and bitmap; payload: bitmap and 8 bytes.
    assert size(message({"n": [1]})) == HEADER_BYTES + (1 + 1) + (1 + 8)


def test_every_bounded_end_costs_eight_bytes():
    closed = message({"n": [1]}, lo=[(0, CODE_MIN)], hi=[(5, 9)])
    assert size(closed) == size(message({"n": [1]})) + 3 * 8


def test_every_box_counts():
    two = message({"n": [1]}, lo=[(CODE_MIN, CODE_MIN)] * 2, hi=[(CODE_MAX, CODE_MAX)] * 2)
    assert size(two) == size(message({"n": [1]})) + 2


def test_values_by_type():
    payload = {
        "int": pa.array([1], pa.int32()),
        "day": pa.array([dt.date(2024, 1, 1)]),
        "moment": pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("us")),
        "is_open": pa.array([True]),
        "text": pa.array(["ü"]),
        "data": pa.array([b"abc"]),
        "double": pa.array([0.5]),
    }
    assert size(message(payload)) == HEADER_BYTES + 2 + 1 + (4 + 4 + 8 + 1 + (4 + 2) + (4 + 3) + 8)
    nulls = {name: pa.nulls(1, column.type) for name, column in payload.items()}
    assert size(message(nulls)) == HEADER_BYTES + 2 + 1


def test_channel_and_target():
    channel = (pa.array(["tech"]), pa.array([5]))
    plain = size(message({"n": [1]}))
    assert size(message({"n": [1]}, channel=channel)) == plain + 1 + (4 + 4) + 8
    assert size(message({"n": [1]}, target=pa.array(["s1"]))) == plain + 1 + (4 + 2)


def test_parts_of_a_larger_batch_are_encoded_from_their_own_place():
    payload = pa.RecordBatch.from_pydict(
        {"n": pa.array([1, 2, None, 4]), "b": pa.array([True, False, None, True])}
    ).slice(1)
    regions = Regions(np.zeros((3, 0), np.int64), np.zeros((3, 0), np.int64), np.ones(3, np.uint8), np.arange(4))
    batch = MessageBatch("f", np.array([1, 2, 3]), (pa.array(["", "a", "bb", "ccc"]).slice(1),), regions, payload)
    data = [encode_message(batch, at, form_number=1) for at in range(3)]
    assert wire_sizes(batch).tolist() == [len(part) for part in data]
    assert (2).to_bytes(8, "little") in data[0]
    assert (4).to_bytes(8, "little") in data[2]
    assert data[1].endswith(b"\3")
