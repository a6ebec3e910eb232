"""Parcels hold the messages they were made of, in the order in which gateways apply them."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.kernels.codebook import BOOK_MAX
from tidings.model.blob import unpack
from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.message import MessageBatch
from tidings.model.region import Regions
from tidings.pipeline.parcel import pack_messages, unpack_messages


def messages_of(seed, sizes, seqs, spread, dims=2, has_target=False):
    """Messages with so many boxes each, whose ends are of `spread` many values."""
    rng = np.random.default_rng(seed)
    boxes = sum(sizes)
    ends = np.append(rng.integers(CODE_MIN, CODE_MAX, spread), [CODE_MIN, CODE_MAX])
    lo, hi = (ends[rng.integers(0, len(ends), (boxes, dims))] for _ in range(2))
    tags = rng.integers(1, 4, boxes).astype(np.uint8)
    count = len(sizes)
    payload = pa.RecordBatch.from_arrays(
        [pa.array(np.arange(count)), pa.array([str(i) for i in range(count)])], ["a", "b"]
    )
    return MessageBatch(
        "form",
        np.sort(np.array(seqs, np.int64)),
        (pa.array([f"c{i % 3}" for i in range(count)]),),
        Regions(lo, hi, tags, np.append(0, np.cumsum(sizes)).astype(np.int64)),
        payload,
        pa.array([f"t{i}" for i in range(count)]) if has_target else None,
    )


def assert_same(found, expected):
    assert found.form == expected.form
    assert found.seq.tolist() == expected.seq.tolist()
    for name in ("lo", "hi", "tags", "starts"):
        assert getattr(found.regions, name).tolist() == getattr(expected.regions, name).tolist()
        assert getattr(found.regions, name).dtype == getattr(expected.regions, name).dtype
    assert found.payload.equals(expected.payload)
    assert [column.to_pylist() for column in found.channel] == [column.to_pylist() for column in expected.channel]
    assert (found.target is None) == (expected.target is None)
    assert found.target is None or found.target.equals(expected.target)


@settings(max_examples=25)
@given(
    st.integers(0, 100),
    st.lists(st.sampled_from([0, 1, 7, 900, 3_000]), min_size=1, max_size=40),
    st.sampled_from([1, 5, 1_000, 100_000]),
    st.integers(1, 3),
    st.booleans(),
    st.data(),
)
def test_messages_come_back(seed, sizes, spread, dims, has_target, data):
    seqs = data.draw(st.lists(st.integers(1, 6), min_size=len(sizes), max_size=len(sizes)))
    messages = messages_of(seed, sizes, seqs, spread, dims, has_target)
    at = np.flatnonzero(np.random.default_rng(seed).random(len(sizes)) < 0.7)
    parts = [unpack_messages(blob) for blob in pack_messages(messages, at)]
    whole = MessageBatch.concat(parts)
    assert_same(whole, messages.take(at))
    assert all(a.seq[-1] < b.seq[0] for a, b in pairwise(parts) if len(a) and len(b))


def test_few_distinct_ends_make_small_parcels():
    messages = messages_of(0, [6] * 10_000, range(10_000), 500)
    (blob,) = pack_messages(messages)
    assert_same(unpack_messages(blob), messages)
    assert len(blob) < 0.5 * (messages.regions.lo.nbytes + messages.regions.hi.nbytes)


def test_a_seq_with_more_ends_than_a_book_takes_travels_without_one():
    boxes = BOOK_MAX // 2
    messages = messages_of(0, [10, boxes, boxes, 10], [1, 2, 2, 3], 10 * BOOK_MAX)
    blobs = list(pack_messages(messages))
    assert_same(MessageBatch.concat([unpack_messages(blob) for blob in blobs]), messages)
    assert any(isinstance(unpack(blob), MessageBatch) and unpack(blob).seq.tolist() == [2, 2] for blob in blobs)
