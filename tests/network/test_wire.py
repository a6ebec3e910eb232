"""The wire form of a message says everything, as briefly as its rules allow, and sizes are told without making bytes."""

import datetime as dt
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.change import SEQ_MAX
from tidings.model.codes import CODE_MAX, CODE_MIN, DAY_US, code_of
from tidings.model.message import MessageBatch
from tidings.model.region import Regions
from tidings.model.types import ColumnType
from tidings.network.wire import encode_message, wire_size, wire_sizes

HEADER_BYTES = 1 + 1 + 1 + 1
ANY = (CODE_MIN, CODE_MAX)


def message(payload, *boxes, channel=(), target=None):
    """A message whose boxes are given by their (lo, hi) in every dimension; everywhere in two if none are."""
    ends = np.array(boxes or [(ANY, ANY)], np.int64)
    regions = Regions(ends[:, :, 0], ends[:, :, 1], np.full(len(ends), 3, np.uint8), np.array([0, len(ends)]))
    return MessageBatch("f", np.array([7]), channel, regions, pa.RecordBatch.from_pydict(payload), target)


def size(batch):
    data = encode_message(batch, 0, form_number=9)
    assert wire_sizes(batch).tolist() == [len(data)]
    return len(data)


# What the bytes mean, read with no help from the code that wrote them.


class Reader:
    def __init__(self, data):
        self._data, self._at = data, 0

    def bytes(self, length):
        self._at += length
        assert self._at <= len(self._data)
        return self._data[self._at - length : self._at]

    def number(self, length):
        return int.from_bytes(self.bytes(length), "little")

    def varint(self):
        found, shift = 0, 0
        while True:
            byte = self.number(1)
            found |= (byte & 127) << shift
            if byte < 128:
                assert byte or not shift, "a byte too many"
                return found
            shift += 7

    def bits(self, width, count):
        found = self.number((width * count + 7) // 8)
        assert found < 1 << width * count
        return [found >> width * i & (1 << width) - 1 for i in range(count)]

    def value(self, type):
        if pa.types.is_boolean(type):
            return bool(self.number(1))
        if type == pa.float64():
            return self.bytes(8)
        if type in (pa.string(), pa.binary()):
            return self.bytes(self.varint())
        number = self.varint()
        return number >> 1 if number % 2 == 0 else -(number >> 1) - 1

    def values(self, types):
        nulls = self.bits(1, len(types))
        return [None if is_null else self.value(type) for is_null, type in zip(nulls, types, strict=True)]

    def is_done(self):
        return self._at == len(self._data)


def decode_message(data, like):
    """(form number, seq, channel, payload, target, boxes with their tags) of a message of the form of the batch `like`."""
    reader = Reader(data)
    form_number, seq, count, flags = reader.varint(), reader.varint(), reader.varint(), reader.number(1)
    channel = reader.values([column.type for column in like.channel])
    payload = reader.values(like.payload.schema.types)
    target = reader.values([pa.string()]) if flags else None
    codes = [code_in(type, value) for type, value in zip(like.payload.schema.types, payload, strict=True)][:256]
    boxes, before = [], None
    for _ in range(count):
        tag = reader.number(1)
        before = decode_ends(reader, like.regions.dims, codes, before)
        boxes.append((tag, before))
    assert reader.is_done()
    return form_number, seq, channel, payload, target, boxes


def decode_ends(reader, dims, codes, before):
    """Ends of a box; also sees that each was written in the first way that fits it."""
    ends, last = [], None
    for i, state in enumerate(reader.bits(2, 2 * dims)):
        if state == 0:
            ends.append(ANY[i % 2])
            continue
        if state == 3:
            end = last
        elif state == 1:
            end = int.from_bytes(reader.bytes(8), "little", signed=True)
            assert end not in codes if before is None else end != before[i]
        elif before is None:
            column = reader.number(1)
            end = codes[column]
            assert codes.index(end) == column
        else:
            end = before[i]
        assert end is not None and end != ANY[i % 2]
        assert state == 3 or end != last
        ends.append(end)
        last = end
    return ends


def code_in(type, value):
    """The code that ends may name by the column, None where they may not."""
    if value is None or type not in (pa.int64(), pa.int32(), pa.float64(), pa.date32(), pa.timestamp("us")):
        return None
    if type == pa.float64():
        return code_of(ColumnType.DOUBLE, struct.unpack("<d", value)[0])
    code = value * DAY_US if type == pa.date32() else value
    return None if code == CODE_MIN else code


def plain(column, at):
    """A value as the reader gives it."""
    if not column[at].is_valid:
        return None
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return column.view(pa.int32() if column.type == pa.date32() else pa.int64())[at].as_py()
    value = column[at].as_py()
    if isinstance(value, float):
        return struct.pack("<d", value)
    return value.encode() if isinstance(value, str) else value


def said(batch, at, form_number):
    """What a decoded message should say."""
    regions = batch.regions
    boxes = [
        (int(regions.tags[box]), np.column_stack([regions.lo[box], regions.hi[box]]).ravel().tolist())
        for box in range(int(regions.starts[at]), int(regions.starts[at + 1]))
    ]
    return (
        form_number,
        int(batch.seq[at]),
        [plain(column, at) for column in batch.channel],
        [plain(column, at) for column in batch.payload.columns],
        None if batch.target is None else [plain(batch.target, at)],
        boxes,
    )


def check(batch, form_number=1):
    data = [encode_message(batch, at, form_number) for at in range(len(batch))]
    for at, part in enumerate(data):
        assert decode_message(part, batch) == said(batch, at, form_number)
    assert wire_sizes(batch, form_number).tolist() == list(map(len, data))
    assert wire_size(batch, form_number) == sum(map(len, data))


LONGS = st.integers(CODE_MIN, CODE_MAX)
FEW = st.integers(-3, 3)
VALUES = {
    pa.int64(): FEW | st.sampled_from([CODE_MIN, CODE_MAX]) | LONGS,
    pa.int32(): FEW | st.integers(-(2**31), 2**31 - 1),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -1.5]) | st.floats(),
    pa.date32(): st.sampled_from([dt.date(1970, 1, 1), dt.date(1970, 1, 2)]) | st.dates(),
    pa.timestamp("us"): st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 3)) | st.datetimes(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text("a\0ü€𝄞", max_size=3) | st.just("ü" * 100),
    pa.binary(): st.binary(max_size=3) | st.just(bytes(128)),
}


@st.composite
def columns(draw, length, types=tuple(VALUES), is_nullable=True):
    """A column that is part of a longer one."""
    type = draw(st.sampled_from(types))
    values = st.none() | VALUES[type] if is_nullable else VALUES[type]
    return pa.array(draw(st.lists(values, min_size=length + 1, max_size=length + 1)), type).slice(1)


@st.composite
def batches(draw):
    length, dims = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    counts = draw(st.lists(st.integers(0, 3), min_size=length, max_size=length))
    payload = draw(st.lists(columns(length), max_size=4))
    names = [str(i) for i in range(len(payload))]
    # Ends out of a small choice, among them those that other parts of the message have: few would meet otherwise.
    known = [code_in(column.type, plain(column, at)) for column in payload for at in range(length)]
    choice = st.sampled_from([CODE_MIN, CODE_MAX, -1, 0, 1, 2**40, *(code for code in known if code is not None)])
    ends = draw(
        st.lists(choice | choice | choice | LONGS, min_size=sum(counts) * dims * 2, max_size=sum(counts) * dims * 2)
    )
    lo, hi = np.array(ends, np.int64).reshape(2, sum(counts), dims)
    tags = draw(st.lists(st.integers(0, 255), min_size=sum(counts), max_size=sum(counts)))
    return MessageBatch(
        "f",
        np.array(draw(st.lists(st.integers(0, SEQ_MAX), min_size=length, max_size=length)), np.int64),
        tuple(draw(st.lists(columns(length, (pa.int64(), pa.string())), max_size=2))),
        Regions(lo, hi, np.array(tags, np.uint8), np.cumsum([0, *counts])),
        pa.RecordBatch.from_arrays(payload, names) if payload else no_columns(length),
        draw(st.none() | columns(length, (pa.string(),), is_nullable=False)),
    )


def no_columns(length):
    return pa.RecordBatch.from_pydict({"n": pa.nulls(length, pa.int64())}).select([])


@settings(max_examples=300)
@given(batches(), st.integers(0, 2**20))
def test_bytes_say_everything_and_sizes_are_theirs(batch, form_number):
    check(batch, form_number)


def test_varints_of_all_lengths():
    edges = {sign * 2**power + near for power in range(64) for sign in (-1, 1) for near in (-1, 0, 1)}
    numbers = sorted(number for number in edges if CODE_MIN <= number <= CODE_MAX)
    count = len(numbers)
    nowhere = Regions(
        np.zeros((0, 1), np.int64), np.zeros((0, 1), np.int64), np.zeros(0, np.uint8), np.zeros(count + 1, int)
    )
    payload = pa.RecordBatch.from_pydict({"n": pa.array(numbers)})
    batch = MessageBatch("f", np.array([min(abs(number), SEQ_MAX) for number in numbers]), (), nowhere, payload)
    check(batch)
    lengths = wire_sizes(batch) - HEADER_BYTES - 1
    assert lengths[numbers.index(0)] == 1 and lengths[0] == lengths[-1] == lengths.max() == 8 + 10


@pytest.mark.parametrize(("form_number", "length"), [(0, 1), (127, 1), (128, 2), (2**14, 3)])
def test_the_form_number_counts(form_number, length):
    batch = message({"n": [1]})
    check(batch, form_number)
    assert wire_size(batch, form_number) == wire_size(batch) - 1 + length


def test_a_whole_space_costs_a_tag_and_states():
    # Header; no channel; payload: bitmap and a small number; box: tag and two bits for each of four ends.
    assert size(message({"n": [1]})) == HEADER_BYTES + (1 + 1) + (1 + 1)
    assert size(message({"n": [1]}, (ANY,) * 3)) == HEADER_BYTES + (1 + 1) + (1 + 2)


@pytest.mark.parametrize(
    ("box", "extra"),
    [
        (((50, CODE_MAX), (CODE_MIN, 90)), 8 + 8),
        (((50, 50), (50, 50)), 8),
        (((50, CODE_MAX), (CODE_MIN, 50)), 8),
        (((50, 60), (50, 60)), 4 * 8),
        (((CODE_MIN, CODE_MIN), ANY), 8),
        (((CODE_MAX, CODE_MAX), ANY), 8),
        (((CODE_MAX, CODE_MIN), (CODE_MAX, CODE_MIN)), 4 * 8),
    ],
)
def test_a_bounded_end_costs_eight_bytes_unless_the_one_before_is_the_same(box, extra):
    assert size(message({"n": [1]}, box)) == size(message({"n": [1]})) + extra


def test_ends_at_values_of_the_payload_cost_a_byte():
    day, moment = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 9, 30)
    small = pa.array([7], pa.int32())
    payload = {"n": [5], "x": [2.5], "day": [day], "small": small, "moment": pa.array([moment], pa.timestamp("us"))}
    types = (ColumnType.BIGINT, ColumnType.DOUBLE, ColumnType.DATE, ColumnType.INT, ColumnType.TIMESTAMP)
    codes = [code_of(type, value) for type, value in zip(types, (5, 2.5, day, 7, moment), strict=True)]
    bare = size(message(payload))
    for code in codes:
        assert size(message(payload, ((CODE_MIN, code), ANY))) == bare + 1
        assert size(message(payload, ((code, code), ANY))) == bare + 1
        assert size(message(payload, ((code + 1, CODE_MAX), ANY))) == bare + 8
    data = encode_message(message(payload, ((CODE_MIN, codes[2]), (codes[3], CODE_MAX))), 0, form_number=1)
    assert data.endswith(bytes([3, 0b0010_1000, 2, 3]))


def test_the_first_column_with_the_value_is_named():
    data = encode_message(message({"none": [None], "a": [5], "b": [5]}, ((5, CODE_MAX),)), 0, form_number=1)
    assert data.endswith(bytes([3, 0b0010, 1]))


def test_what_ends_do_not_refer_to():
    start = code_of(ColumnType.TEXT, "a")
    others = {"text": ["a"], "flag": [True], "side": pa.array([7], pa.int8()), "none": pa.nulls(1, pa.int64())}
    for code in (start, 1, 7, 0):
        assert size(message(others, ((code, CODE_MAX),))) == size(message(others, (ANY,))) + 8


def test_the_lowest_code_is_spelled_out():
    for payload in ({"n": [CODE_MIN]}, {"n": pa.nulls(1, pa.int64())}):
        assert size(message(payload, ((CODE_MIN, CODE_MIN),))) == size(message(payload, (ANY,))) + 8
    highest = {"n": [CODE_MAX]}
    assert size(message(highest, ((CODE_MAX, CODE_MAX),))) == size(message(highest, (ANY,))) + 1


def test_columns_that_a_byte_does_not_number_are_not_referred_to():
    payload = {str(i): [i] for i in range(300)}
    bare = size(message(payload, (ANY,)))
    assert size(message(payload, ((255, CODE_MAX),))) == bare + 1
    assert size(message(payload, ((256, CODE_MAX),))) == bare + 8


def test_ends_of_the_box_before_are_free():
    first = ((50, 60), (70, 80))
    one = size(message({"n": [1]}, first))
    assert size(message({"n": [1]}, first, first)) == one + 2
    assert size(message({"n": [1]}, first, ((50, 61), (70, 80)))) == one + 2 + 8
    assert size(message({"n": [1]}, first, first, ((50, 60), (70, CODE_MAX)))) == one + 2 * 2
    # Only the first box refers to the payload.
    assert size(message({"n": [1]}, (ANY, ANY), ((1, CODE_MAX), ANY))) == size(message({"n": [1]})) + 2 + 8


def test_many_boxes():
    batch = message({"n": [1]}, *[((50, 50 + i),) for i in range(128)])
    check(batch)
    # The count has a byte more. The first box says its lo, which is its hi as well; every other says its hi.
    assert size(batch) == HEADER_BYTES + 1 + 2 + 128 * 2 + 128 * 8


def test_messages_do_not_refer_to_one_another():
    ends = np.full((3, 1), 50)
    regions = Regions(ends, ends + 10, np.ones(3, np.uint8), np.array([0, 1, 1, 3]))
    batch = MessageBatch("f", np.arange(3), (), regions, pa.RecordBatch.from_pydict({"n": [50, 50, 7]}))
    check(batch)
    assert (wire_sizes(batch) - HEADER_BYTES - 2).tolist() == [2 + 1 + 8, 0, 2 + 8 + 8 + 2]


def test_values_by_type():
    payload = {
        "int": pa.array([-64], pa.int32()),
        "long": pa.array([64]),
        "day": pa.array([dt.date(1970, 1, 2)]),
        "moment": pa.array([dt.datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("us")),
        "is_open": pa.array([True]),
        "text": pa.array(["ü"]),
        "data": pa.array([bytes(128)]),
        "double": pa.array([0.5]),
    }
    assert size(message(payload)) == HEADER_BYTES + 2 + 1 + (1 + 2 + 1 + 3 + 1 + (1 + 2) + (2 + 128) + 8)
    nulls = {name: pa.nulls(1, column.type) for name, column in payload.items()}
    assert size(message(nulls)) == HEADER_BYTES + 2 + 1


def test_channel_and_target():
    channel = (pa.array(["tech"]), pa.array([5]))
    bare = size(message({"n": [1]}))
    assert size(message({"n": [1]}, channel=channel)) == bare + 1 + (1 + 4) + 1
    assert size(message({"n": [1]}, target=pa.array(["s1"]))) == bare + 1 + (1 + 2)


def test_no_messages_have_no_bytes():
    batch = message({"n": [1]}).take(np.empty(0, np.int64))
    assert wire_sizes(batch).tolist() == [] and wire_size(batch) == 0
