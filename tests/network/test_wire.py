"""Bytes of messages say everything, as briefly as the layout allows, and sizes are told without making them."""

import datetime as dt
import math
import struct
from contextlib import suppress
from itertools import pairwise

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
from tidings.network.wire import VERSION, Description, WireError, decode, encode, encode_parts, wire_size, wire_sizes
from tidings.network.wire.encode import PART_BOXES

HEADER_BYTES = 2 + 1 + 1 + 1
"""Version and flags; form number, seq and box count, if they are small."""
TARGET, NULLS, ONE, SAME_TAG, STAIRS, BOOK = 1, 2, 4, 8, 16, 32 + 64
ANY = (CODE_MIN, CODE_MAX)


def message(payload, *boxes, channel=(), target=None):
    """A message whose boxes are given by their (lo, hi) in every dimension; everywhere in two if none are."""
    ends = np.array(boxes or [(ANY, ANY)], np.int64)
    regions = Regions(ends[:, :, 0], ends[:, :, 1], np.full(len(ends), 3, np.uint8), np.array([0, len(ends)]))
    return MessageBatch("f", np.array([7]), channel, regions, pa.RecordBatch.from_pydict(payload), target)


def size(batch):
    """Bytes of the only message."""
    data = encode(batch, number=9)
    assert wire_sizes(batch).tolist() == [len(data)]
    return len(data)


def same(found, expected):
    """Checks that two batches are equal, down to types."""
    assert (found.form, found.to, found.axes) == (expected.form, expected.to, expected.axes)
    for one, other in zip(arrays(found), arrays(expected), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and (one == other).all()
    for one, other in zip(columns_of(found), columns_of(expected), strict=True):
        assert one.type == other.type and values_of(one) == values_of(other)
        one.validate(full=True)
    assert found.payload.schema.equals(expected.payload.schema) and found.payload.num_rows == expected.payload.num_rows
    assert (found.target is None) == (expected.target is None)


def arrays(batch):
    regions = batch.regions
    return [batch.seq, regions.lo, regions.hi, regions.tags, regions.starts]


def columns_of(batch):
    return [*batch.channel, *batch.payload.columns, *([] if batch.target is None else [batch.target])]


def values_of(column):
    return [plain(column, at) for at in range(len(column))]


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

    def values(self, type, count):
        if pa.types.is_boolean(type):
            return list(map(bool, self.bits(1, count)))
        if type in (pa.string(), pa.binary()):
            return [self.bytes(length) for length in [self.varint() for _ in range(count)]]
        if pa.types.is_fixed_size_list(type):
            return [self.bytes(8 * type.list_size) for _ in range(count)]
        if type == pa.float64():
            return [self.bytes(8) for _ in range(count)]
        return [unzigzag(self.varint()) for _ in range(count)]

    def column(self, type, is_null):
        found = iter(self.values(type, is_null.count(False)))
        return [None if null else next(found) for null in is_null]

    def text(self):
        return self.bytes(self.varint()).decode()

    def left(self):
        return len(self._data) - self._at


def unzigzag(number):
    return number >> 1 if number % 2 == 0 else -(number >> 1) - 1


def read(data, number, like):
    """(seqs, columns, boxes with their tags) of messages that are described as the batch `like`."""
    reader = Reader(data)
    assert reader.number(1) == VERSION
    flags = reader.number(1)
    assert reader.varint() == number
    if not number:
        check_description(Reader(reader.bytes(reader.varint())), like)
    count = 1 if flags & ONE else reader.varint()
    assert flags & ONE or count != 1
    seqs = [reader.varint() for _ in range(min(1, count))]
    for _ in range(1, count):
        seqs.append(seqs[-1] + unzigzag(reader.varint()))
    sizes = [reader.varint() for _ in range(count)]
    types = [column.type for column in columns_of(like)]
    nulls = reader.bits(1, count * len(types)) if flags & NULLS else [0] * count * len(types)
    assert any(nulls) == bool(flags & NULLS)
    columns = [
        reader.column(type, [bool(nulls[i * len(types) + j]) for i in range(count)]) for j, type in enumerate(types)
    ]
    assert (like.target is not None) == bool(flags & TARGET)
    tags = [reader.number(1)] * sum(sizes) if flags & SAME_TAG else list(reader.bytes(sum(sizes)))
    assert (len(tags) > 1 and len(set(tags)) == 1 and like.regions.dims > 0) == bool(flags & SAME_TAG)
    width = len(like.channel)
    payload = columns[width : width + like.payload.num_columns]
    boxes = read_boxes(reader, flags, sizes, like.regions.dims, types[width:], payload)
    boxes = [
        list(zip(tags[start:stop], boxes[start:stop], strict=True)) for start, stop in pairwise(np.cumsum([0, *sizes]))
    ]
    return seqs, columns, boxes


def check_description(reader, like):
    assert reader.text() == like.form
    assert tuple(reader.text() for _ in range(reader.varint())) == like.to
    assert reader.varint() == like.regions.dims
    assert tuple(reader.text() for _ in like.axes) == like.axes
    assert reader.varint() == len(like.channel)
    reader.bytes(len(like.channel))
    names = []
    for _ in range(reader.varint()):
        reader.number(1)
        names.append(reader.text())
    assert names == like.payload.schema.names and not reader.left()


def read_boxes(reader, flags, sizes, dims, types, payload):
    """Ends of all boxes; also sees that each was written in the first way that fits it."""
    states = reader.bits(2, 2 * dims * sum(sizes))
    states = [states[at : at + 2 * dims] for at in range(0, len(states), 2 * dims)] if dims else [[]] * sum(sizes)
    firsts = [start for start, size in zip(np.cumsum([0, *sizes]).tolist(), sizes, strict=False) if size]
    references = iter(reader.bytes(sum(states[first].count(2) for first in firsts)))
    literals = iter(read_literals(reader, flags >> 5))
    boxes, box = [], 0
    for row, size in enumerate(sizes):
        codes = [code_in(type, values[row]) for type, values in zip(types, payload, strict=False)][:256]
        for number in range(size):
            before = boxes[-1] if number else None
            boxes.append(read_ends(states[box], codes, before, bool(flags & STAIRS), references, literals))
            box += 1
    assert not list(references) and not list(literals)
    return boxes


def read_literals(reader, width):
    if not width:
        return np.frombuffer(reader.bytes(reader.left()), "<i8").tolist()
    book = np.frombuffer(reader.bytes(8 * reader.varint()), "<i8")
    assert len(set(book.tolist())) == len(book)
    return book[np.frombuffer(reader.bytes(reader.left()), f"<u{2 ** (width - 1)}")].tolist()


def read_ends(states, codes, before, has_stairs, references, literals):
    ends, last = [], None
    for i, state in enumerate(states):
        if before is not None and has_stairs:
            last = before[i + 1] + 1 if i % 2 == 0 else before[i - 1] - 1
        if state == 0:
            ends.append(ANY[i % 2])
            continue
        if state == 3:
            end = last
        elif state == 1:
            end = next(literals)
            assert end not in codes if before is None else end != before[i]
        elif before is None:
            column = next(references)
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
    if isinstance(value, float | list):
        return struct.pack(f"<{len(value)}d", *value) if isinstance(value, list) else struct.pack("<d", value)
    return value.encode() if isinstance(value, str) else value


def said(batch):
    """What the bytes of a batch should say."""
    regions = batch.regions
    boxes = [
        [
            (int(regions.tags[box]), np.column_stack([regions.lo[box], regions.hi[box]]).ravel().tolist())
            for box in range(int(regions.starts[at]), int(regions.starts[at + 1]))
        ]
        for at in range(len(batch))
    ]
    return batch.seq.tolist(), [values_of(column) for column in columns_of(batch)], boxes


def check(batch, number=1):
    """Whole and message by message: bytes as laid out, the same messages again, sizes as told."""
    data = encode(batch)
    assert read(data, 0, batch) == said(batch)
    same(decode(data), batch)
    known = {number: Description.of(batch)}
    alone = [encode(batch, np.array([at]), number=number) for at in range(len(batch))]
    for at, part in enumerate(alone):
        one = batch.take(np.array([at]))
        assert read(part, number, one) == said(one)
        same(decode(part, known), one)
    assert wire_sizes(batch, number).tolist() == list(map(len, alone))
    assert wire_size(batch, number) == sum(map(len, alone))


LONGS = st.integers(CODE_MIN, CODE_MAX)
FEW = st.integers(-3, 3)
DOUBLES = st.sampled_from([0.0, -0.0, 1.5, -1.5]) | st.floats()
VALUES = {
    pa.int64(): FEW | st.sampled_from([CODE_MIN, CODE_MAX]) | LONGS,
    pa.int32(): FEW | st.integers(-(2**31), 2**31 - 1),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.float64(): DOUBLES,
    pa.date32(): st.sampled_from([dt.date(1970, 1, 1), dt.date(1970, 1, 2)]) | st.dates(),
    pa.timestamp("us"): st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 3)) | st.datetimes(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text("a\0ü€𝄞", max_size=3) | st.just("ü" * 100),
    pa.binary(): st.binary(max_size=3) | st.just(bytes(128)),
    ColumnType.POINT.arrow: st.lists(DOUBLES, min_size=2, max_size=2),
    ColumnType.BOX.arrow: st.lists(DOUBLES, min_size=4, max_size=4),
}


@st.composite
def columns(draw, length, types=tuple(VALUES)):
    """A column that is part of a longer one."""
    type, is_nullable = draw(st.sampled_from(types)), draw(st.booleans())
    values = st.none() | VALUES[type] if is_nullable else VALUES[type]
    return pa.array(draw(st.lists(values, min_size=length + 1, max_size=length + 1)), type).slice(1)


@st.composite
def batches(draw):
    length, dims = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    counts = draw(st.lists(st.integers(0, 4), min_size=length, max_size=length))
    payload = draw(st.lists(columns(length), max_size=4))
    fields = [pa.field(f"{i}ü", column.type, column.null_count > 0) for i, column in enumerate(payload)]
    # Ends out of a small choice, among them those that other parts of the message have: few would meet otherwise.
    known = [code_in(column.type, plain(column, at)) for column in payload for at in range(length)]
    choice = st.sampled_from([CODE_MIN, CODE_MAX, -1, 0, 1, 2**40, *(code for code in known if code is not None)])
    ends = draw(
        st.lists(choice | choice | choice | LONGS, min_size=sum(counts) * dims * 2, max_size=sum(counts) * dims * 2)
    )
    lo, hi = np.array(ends, np.int64).reshape(2, sum(counts), dims)
    tags = draw(st.lists(st.sampled_from([1, 2, 255]), min_size=sum(counts), max_size=sum(counts)))
    to = tuple(draw(st.lists(st.text(max_size=3), max_size=2)))
    return MessageBatch(
        draw(st.sampled_from(["f", "select/ü" * 30])),
        np.array(draw(st.lists(st.integers(0, SEQ_MAX), min_size=length, max_size=length)), np.int64),
        tuple(draw(st.lists(columns(length, (pa.int64(), pa.string())), max_size=2))),
        Regions(lo, hi, np.array(tags, np.uint8), np.cumsum([0, *counts])),
        pa.RecordBatch.from_arrays(payload, schema=pa.schema(fields)) if payload else no_columns(length),
        draw(st.none() | columns(length, (pa.string(),))),
        to,
        tuple(f"lo ü.{i}" for i in range(dims if to else 0)),
    )


def no_columns(length):
    return pa.RecordBatch.from_pydict({"n": pa.nulls(length, pa.int64())}).select([])


@settings(max_examples=90)
@given(batches(), st.integers(1, 2**20))
def test_bytes_say_everything_and_sizes_are_theirs(batch, number):
    check(batch, number)


@given(batches(), st.data())
def test_some_of_the_messages_in_any_order(batch, data):
    places = st.lists(st.integers(0, len(batch) - 1), max_size=5) if len(batch) else st.just([])
    at = np.array(data.draw(places), np.int64)
    same(decode(encode(batch, at)), batch.take(at))


@given(batches(), st.data())
def test_no_bytes_do_harm(batch, data):
    """What is cut off is noticed; other bytes are other messages or none, but nothing else happens."""
    blob = encode(batch)
    with pytest.raises(WireError):
        decode(blob[: data.draw(st.integers(0, len(blob) - 1))])
    at, byte = data.draw(st.integers(0, len(blob) - 1)), data.draw(st.integers(0, 255))
    with suppress(WireError):
        for column in columns_of(decode(blob[:at] + bytes([byte]) + blob[at + 1 :])):
            column.validate(full=True)


def large(sizes, seqs, spread, dims=2, has_target=False):
    """Messages with so many boxes each, whose ends are of `spread` many values: the same for the same sizes."""
    rng = np.random.default_rng(0)
    boxes, count = sum(sizes), len(sizes)
    ends = np.append(rng.integers(CODE_MIN, CODE_MAX, spread), [CODE_MIN, CODE_MAX])
    lo, hi = (ends[rng.integers(0, len(ends), (boxes, dims))] for _ in range(2))
    return MessageBatch(
        "form",
        np.sort(np.array(seqs, np.int64)),
        (pa.array([f"c{i % 3}" for i in range(count)]),),
        Regions(lo, hi, rng.integers(1, 4, boxes).astype(np.uint8), np.append(0, np.cumsum(sizes)).astype(np.int64)),
        pa.RecordBatch.from_pydict({"a": np.arange(count), "b": [str(i) for i in range(count)]}),
        pa.array([f"t{i}" for i in range(count)]) if has_target else None,
    )


@settings(max_examples=15)
@given(
    # Of each message: how many boxes it has, its seq, and whether it is among those that are encoded.
    st.lists(
        st.tuples(st.sampled_from([0, 1, 7, 900, 3_000]), st.integers(1, 6), st.sampled_from([True, True, False])),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([1, 5, 255, 1_000, 100_000]),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([1, 1_000, PART_BOXES]),
)
def test_parts_keep_the_messages_of_a_seq_together(drawn, spread, dims, has_target, boxes_max):
    sizes, seqs, is_encoded = zip(*drawn, strict=True)
    messages = large(sizes, seqs, spread, dims, has_target)
    at = np.flatnonzero(is_encoded)
    parts = [decode(blob) for blob in encode_parts(messages, at, boxes_max)]
    same(MessageBatch.concat(parts), messages.take(at))
    assert all(a.seq[-1] < b.seq[0] for a, b in pairwise(parts))
    boxes = [len(part.regions.lo) for part in parts]
    assert all(count <= boxes_max or len(set(part.seq.tolist())) == 1 for count, part in zip(boxes, parts, strict=True))
    # No part could have had the next as well.
    assert all(a + b > boxes_max for a, b in pairwise(boxes))


@pytest.mark.parametrize(("spread", "width"), [(200, 1), (5_000, 2), (70_000, 4)])
def test_ends_that_come_often_are_told_once(spread, width):
    messages = large([50] * 4_000, range(4_000), spread)
    blob = encode(messages)
    same(decode(blob), messages)
    assert blob[1] & BOOK == (int(math.log2(width)) + 1) << 5
    assert len(blob) < 4_000 * 20 + 200_000 * (1 + 1 + 4 * width) + 8 * spread


def test_there_is_no_book_of_ends_that_come_once():
    messages = large([20] * 5_000, range(5_000), 10**7)
    blob = encode(messages)
    same(decode(blob), messages)
    assert not blob[1] & BOOK


def test_stairs_cost_no_more_than_their_steps():
    steps = [((-10 * i, -10 * i + 9), (50, 60 + i)) for i in range(100)]
    batch = message({"n": [1]}, *steps)
    check(batch)
    # Of later boxes lo of the first dimension and hi of the second are new; the first hi is next to the lo before.
    assert size(batch) == HEADER_BYTES + 1 + 1 + 100 + 8 * 4 + 99 * 2 * 8
    up = message({"n": [1]}, *(((10 * i, 10 * i + 9), ANY) for i in range(3)))
    assert size(up) == HEADER_BYTES + 1 + 1 + 3 + 8 * 2 + 2 * 8


def test_stairs_stop_at_the_ends_of_the_world():
    check(message({"n": [1]}, (ANY,), ((CODE_MIN + 1, CODE_MAX - 1),), ((CODE_MAX, CODE_MIN),), (ANY,)))
    check(message({"n": [1]}, ((5, 9),), ((10, 4),), ((5, 9),), ((10, 4),)))


def test_open_ends_beside_the_ends_of_the_world_are_open():
    """One below the lowest code is not the highest, nor the other way round: such ends are open, and no steps of stairs."""
    lowest = (CODE_MIN, CODE_MIN)
    boxes = [[lowest] * 3] * 6 + [[lowest, (CODE_MIN, 0), ANY], [lowest, (1, CODE_MIN), ANY]]
    lo, hi = np.moveaxis(np.array(boxes, np.int64), 2, 0)
    regions = Regions(lo, hi, np.ones(8, np.uint8), np.array([0, 0, 0, 4, 8]))
    batch = MessageBatch("f", np.zeros(4, np.int64), (), regions, no_columns(4))
    check(batch)
    data = encode(batch, np.array([3]), number=1)
    assert data[1] & STAIRS
    # The last two boxes, each a hi as before (1000), a dimension that is new, and one that is open (0000).
    states = bytes([0b0100_1000, 0b1000_0000, 0b0000_0111])
    assert data.endswith(states + struct.pack("<3q", CODE_MIN, 0, CODE_MIN))


@pytest.mark.parametrize("version", [0, 1, 255])
def test_other_versions_are_refused(version):
    blob = encode(message({"n": [1]}))
    assert blob[0] == VERSION
    with pytest.raises(WireError, match=f"version {version} of .* reads version {VERSION}"):
        decode(bytes([version]) + blob[1:])


def test_numbers_of_descriptions_are_known_or_refused():
    batch = message({"n": [1]})
    blob = encode(batch, number=300)
    same(decode(blob, {300: Description.of(batch)}), batch)
    for known in (None, {1: Description.of(batch)}):
        with pytest.raises(WireError, match="form number 300"):
            decode(blob, known)


def test_types_without_bytes_are_refused():
    with pytest.raises(WireError, match="type duration"):
        encode(message({"n": pa.array([1], pa.duration("s"))}))


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
    lengths = wire_sizes(batch) - HEADER_BYTES
    assert lengths[numbers.index(0)] == 1 and lengths[0] == lengths[-1] == lengths.max() == 8 + 10


@pytest.mark.parametrize(("number", "length"), [(1, 1), (127, 1), (128, 2), (2**14, 3)])
def test_the_form_number_counts(number, length):
    batch = message({"n": [1]})
    check(batch, number)
    assert wire_size(batch, number) == wire_size(batch) - 1 + length


def test_a_whole_space_costs_a_tag_and_states():
    # Header; no channel; payload: a small number; box: tag and two bits for each of four ends.
    assert size(message({"n": [1]})) == HEADER_BYTES + 1 + (1 + 1)
    assert size(message({"n": [1]}, (ANY,) * 3)) == HEADER_BYTES + 1 + (1 + 2)


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
    data = encode(message(payload, ((CODE_MIN, codes[2]), (codes[3], CODE_MAX))), number=1)
    assert data.endswith(bytes([3, 0b0010_1000, 2, 3]))


def test_the_first_column_with_the_value_is_named():
    data = encode(message({"none": [None], "a": [5], "b": [5]}, ((5, CODE_MAX),)), number=1)
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
    assert size(message({"n": [1]}, first, first)) == one + 1
    assert size(message({"n": [1]}, first, ((50, 61), (70, 80)))) == one + 1 + 8
    assert size(message({"n": [1]}, first, first, ((50, 60), (70, CODE_MAX)))) == one + 2
    # Only the first box refers to the payload.
    assert size(message({"n": [1]}, (ANY, ANY), ((1, CODE_MAX), ANY))) == size(message({"n": [1]})) + 1 + 8


def test_many_boxes():
    batch = message({"n": [1]}, *[((50, 50 + i),) for i in range(128)])
    check(batch)
    # The count has a byte more. Boxes have half a byte of states each, and all the same tag. The first box says its lo,
    # which is its hi as well; every other says its hi.
    assert size(batch) == HEADER_BYTES + 1 + 1 + 1 + 128 // 2 + 128 * 8


def test_tags_that_differ_cost_a_byte_each():
    batch = message({"n": [1]}, (ANY,), (ANY,), (ANY,))
    assert size(batch) == HEADER_BYTES + 1 + 1 + 2
    batch.regions.tags[2] = 1
    check(batch)
    assert size(batch) == HEADER_BYTES + 1 + 3 + 2


def test_messages_do_not_refer_to_one_another():
    ends = np.full((3, 1), 50)
    regions = Regions(ends, ends + 10, np.ones(3, np.uint8), np.array([0, 1, 1, 3]))
    batch = MessageBatch("f", np.arange(3), (), regions, pa.RecordBatch.from_pydict({"n": [50, 50, 7]}))
    check(batch)
    assert (wire_sizes(batch) - HEADER_BYTES - 1).tolist() == [2 + 1 + 8, 0, 2 + 8 + 8]


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
        "point": pa.array([[0.5, 1.5]], ColumnType.POINT.arrow),
    }
    assert size(message(payload)) == HEADER_BYTES + 2 + (1 + 2 + 1 + 3 + 1 + (1 + 2) + (2 + 128) + 8 + 16)
    nulls = {name: pa.nulls(1, column.type) for name, column in payload.items()}
    assert size(message(nulls)) == HEADER_BYTES + 2 + 2


def test_channel_and_target():
    channel = (pa.array(["tech"]), pa.array([5]))
    bare = size(message({"n": [1]}))
    assert size(message({"n": [1]}, channel=channel)) == bare + (1 + 4) + 1
    assert size(message({"n": [1]}, target=pa.array(["s1"]))) == bare + (1 + 2)
    # Nulls of all columns have one bitmap.
    assert size(message({"n": pa.nulls(1, pa.int64())}, channel=channel, target=pa.array(["s1"]))) == bare + 6 + 3


def test_no_messages():
    batch = message({"n": [1]}).take(np.empty(0, np.int64))
    assert wire_sizes(batch).tolist() == [] and wire_size(batch) == 0
    check(batch)
    (blob,) = encode_parts(batch)
    same(decode(blob), batch)
