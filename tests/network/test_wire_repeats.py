"""What an update leaves as it was is sent once: the new row's long texts and binaries are not sent again."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.message import MessageBatch
from tidings.model.region import Regions
from tidings.network.wire import decode, encode, wire_sizes
from tidings.network.wire.repeats import REPEATED_BYTES_MIN, repeatable

LONG = "ü" * REPEATED_BYTES_MIN
texts = st.sampled_from([None, "", "short", "x" * (REPEATED_BYTES_MIN - 1), "x" * REPEATED_BYTES_MIN, LONG])
binaries = texts.map(lambda text: None if text is None else text.encode())
rows = st.tuples(texts, binaries, st.integers(0, 3), texts, binaries, st.integers(0, 3))


def batch_of(values):
    names = [f"{side}.{name}" for side in ("old", "new") for name in ("note", "data", "n")]
    types = 2 * [pa.string(), pa.binary(), pa.int64()]
    columns = [pa.array([row[i] for row in values], type) for i, type in enumerate(types)]
    count = len(values)
    regions = Regions(*np.zeros((2, count, 2), np.int64), np.ones(count, np.uint8), np.arange(count + 1))
    return MessageBatch("f", np.arange(count), (), regions, pa.RecordBatch.from_arrays(columns, names))


@given(st.lists(rows, min_size=1, max_size=8))
def test_all_comes_back_and_sizes_are_those_of_the_bytes(values):
    batch = batch_of(values)
    assert decode(encode(batch)).payload.equals(batch.payload)
    for i, size in enumerate(wire_sizes(batch).tolist()):
        alone = encode(batch, np.array([i]), number=1)
        assert len(alone) == size


def test_a_long_value_that_stays_is_sent_once():
    def size(new):
        return len(encode(batch_of([(LONG, b"", 1, new, b"", 2)]), number=1))

    assert encode(batch_of([(LONG, b"", 1, LONG, b"", 2)])).count(LONG.encode()) == 1
    assert size(LONG) < size(LONG[:-1] + "!") - len(LONG)


def test_columns_are_paired_by_name_and_type():
    fields = [("old.a", pa.string()), ("new.a", pa.binary()), ("b", pa.string()), ("new.c", pa.string())]
    assert repeatable(pa.schema(fields)) == ()
    assert repeatable(pa.schema([*fields, ("x.c", pa.string()), ("y.c", pa.string())])) == ((3, 4),)
