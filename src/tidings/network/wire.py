"""The bytes of a message as the network carries it, and their number without making them.

Who reads a message knows its form, and with that the dimensions, the columns and their types. A message is its header,
its channel, its payload, the target if there is one, and its boxes. Fixed widths are little-endian; a varint has seven
bits to a byte, the lowest first, and a high bit on all bytes but the last.

Header: form number, seq and box count as varints; flags u8, of which bit 0 says that there is a target. The form number
stands for the form or, if the message is for several, for all of them together (`MessageBatch.to`).
Values: a null bitmap, then the values that are not null. Whole numbers, dates and timestamps are zigzag varints, a double
has 8 bytes, a boolean 1, text and binary a varint length and their bytes.
Box: its tag, two bits per end (lo and hi of the first dimension, lo and hi of the next, ..), then what the ends need:

    0  open                                                                   nothing
    1  any code                                                               8 bytes
    2  first box: the code of a payload value; later: same end, box before    number of the column; nothing
    3  the bounded end before it in this box                                  nothing

Where several fit an end it is 0, else 3, else 2 (by the first column that fits). The lowest code of all is never told by
a column: among codes of values it stands for null. The first box of a row often has the row's own values for ends, which
is why the payload goes before the boxes; the boxes of a region share most of theirs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array, codes_of
from tidings.model.message import MessageBatch
from tidings.model.region import Regions
from tidings.model.types import ColumnType

_LITERAL, _KNOWN, _AGAIN = 1, 2, 3
_OPEN_ENDS = (CODE_MIN, CODE_MAX)
_REFERRED_MAX = 256
"""Payload columns that ends may refer to: their number has one byte."""
_CODED = {
    type.arrow: type
    for type in (ColumnType.BIGINT, ColumnType.INT, ColumnType.DOUBLE, ColumnType.DATE, ColumnType.TIMESTAMP)
}
"""Types whose values ends may refer to: all that ranges are about, but for text, whose codes are only its first bytes."""


def wire_sizes(messages: MessageBatch, form_number: int = 1) -> Int64Array:
    """Size in bytes of every message of the batch; forms that nobody has numbered count as one of the first 128."""
    sizes = len(_varint(form_number)) + 1 + _varint_sizes(messages.seq)
    for columns in _columns(messages):
        sizes += _values_sizes(columns, len(messages))
    return sizes + _boxes_sizes(messages.regions, messages.payload)


def wire_size(messages: MessageBatch, form_number: int = 1) -> int:
    """Size in bytes of all of them."""
    return int(wire_sizes(messages, form_number).sum())


def encode_message(messages: MessageBatch, at: int, form_number: int) -> bytes:
    """Message `at` of the batch as bytes."""
    regions = messages.regions
    start, stop = int(regions.starts[at]), int(regions.starts[at + 1])
    flags = 0 if messages.target is None else 1
    parts = [_varint(form_number), _varint(int(messages.seq[at])), _varint(stop - start), bytes([flags])]
    parts += [_encode_values(columns, at) for columns in _columns(messages)]
    pairs = np.stack([regions.lo[start:stop], regions.hi[start:stop]], axis=2)
    boxes = pairs.reshape(stop - start, 2 * regions.dims).tolist()
    for number, (tag, ends) in enumerate(zip(regions.tags[start:stop].tolist(), boxes, strict=True)):
        if number == 0:
            known = list(map(_numbers_of_codes(messages.payload, at).get, ends))
        else:
            known = [b"" if end == before else None for end, before in zip(ends, boxes[number - 1], strict=True)]
        parts += [bytes([tag]), _encode_ends(ends, known)]
    return b"".join(parts)


def _columns(messages: MessageBatch) -> list[Sequence[pa.Array]]:
    target = [] if messages.target is None else [[messages.target]]
    return [messages.channel, messages.payload.columns, *target]


def _coded_columns(payload: pa.RecordBatch) -> Iterator[tuple[int, ColumnType, pa.Array]]:
    """Number, type and values of the columns that ends may refer to."""
    for number, column in enumerate(payload.columns[:_REFERRED_MAX]):
        if column.type in _CODED:
            yield number, _CODED[column.type], column


def _numbers_of_codes(payload: pa.RecordBatch, at: int) -> dict[int, bytes]:
    """Code -> number of the first column whose value in row `at` has it."""
    found: dict[int, bytes] = {}
    for number, type, column in _coded_columns(payload):
        codes, valid = codes_of(type, column.slice(at, 1))
        if valid[0] and codes[0] != CODE_MIN:
            found.setdefault(int(codes[0]), bytes([number]))
    return found


def _encode_ends(ends: Sequence[int], known: Sequence[bytes | None]) -> bytes:
    """States and needs of the ends of a box; `known` is what an end needs in state 2, None where that does not fit."""
    states, parts, last = 0, [], None
    for i, (end, reference) in enumerate(zip(ends, known, strict=True)):
        if end == _OPEN_ENDS[i % 2]:
            continue
        if end == last:
            state = _AGAIN
        elif reference is not None:
            state = _KNOWN
            parts.append(reference)
        else:
            state = _LITERAL
            parts.append(struct.pack("<q", end))
        states |= state << 2 * i
        last = end
    return states.to_bytes(_bytes_of_bits(2 * len(ends)), "little") + b"".join(parts)


def _boxes_sizes(regions: Regions, payload: pa.RecordBatch) -> Int64Array:
    """Bytes of the box count and the boxes of every message."""
    # Imported here and not above, as below: kernels take long to load, and not all who count messages have some.
    from tidings.kernels.arguments import as_argument
    from tidings.kernels.fresh_ends import count_fresh

    ends, starts = (as_argument(part) for part in (regions.lo, regions.hi)), as_argument(regions.starts)
    literal, referring = count_fresh(*ends, starts, _codes(payload))
    counts = np.diff(starts)
    box_size = 1 + _bytes_of_bits(2 * 2 * regions.dims)
    sizes: Int64Array = _varint_sizes(counts) + box_size * counts + 8 * literal + referring
    return sizes


def _codes(payload: pa.RecordBatch) -> Int64Array:
    """Codes of the values that ends may refer to: (rows, columns). A null has the lowest, to which none refers."""
    columns = [(type, column) for _, type, column in _coded_columns(payload)]
    found = np.empty((payload.num_rows, len(columns)), np.int64)
    for i, (type, column) in enumerate(columns):
        codes, valid = codes_of(type, column)
        found[:, i] = np.where(valid, codes, CODE_MIN) if column.null_count else codes
    return found


def _bytes_of_bits(bits: int) -> int:
    return (bits + 7) // 8


def _varint(number: int) -> bytes:
    """A number from 0 on."""
    parts = bytearray()
    while number >= 128:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _varint_sizes(numbers: npt.NDArray[np.int64 | np.uint64]) -> Int64Array:
    """Bytes of every number, none of which is negative."""
    from tidings.kernels.arguments import as_argument
    from tidings.kernels.digits import count_digits

    sizes: Int64Array = count_digits(as_argument(numbers).view(np.uint64))
    return sizes


def _is_whole(type: pa.DataType) -> bool:
    """True where values are kept as whole numbers."""
    return bool(pa.types.is_integer(type) or pa.types.is_date(type) or pa.types.is_timestamp(type))


def _integers(column: pa.Array) -> Int64Array:
    """Whole numbers; a null's means nothing."""
    if not pa.types.is_integer(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return np.asarray(column.fill_null(0) if column.null_count else column).astype(np.int64)


def _zigzag(numbers: Int64Array) -> npt.NDArray[np.uint64]:
    """Numbers without a sign, small where those with one lie near 0: 0, -1, 1, -2, .. are 0, 1, 2, 3, .."""
    return (numbers << 1 ^ numbers >> 63).view(np.uint64)


def _values_sizes(columns: Sequence[pa.Array], length: int) -> Int64Array:
    sizes = np.full(length, _bytes_of_bits(len(columns)), np.int64)
    for column in columns:
        each = _value_sizes(column)
        sizes += each * np.asarray(column.is_valid()) if column.null_count else each
    return sizes


def _value_sizes(column: pa.Array) -> Int64Array | int:
    """Bytes of every value, or of each; a null's mean nothing."""
    if pa.types.is_boolean(column.type):
        return 1
    if pa.types.is_float64(column.type):
        return 8
    if _is_whole(column.type):
        return _varint_sizes(_zigzag(_integers(column)))
    lengths = _integers(pc.binary_length(column))
    return lengths + _varint_sizes(lengths)


def _encode_values(columns: Sequence[pa.Array], at: int) -> bytes:
    nulls = sum(1 << i for i, column in enumerate(columns) if not column[at].is_valid)
    parts = [nulls.to_bytes(_bytes_of_bits(len(columns)), "little")]
    parts += [_encode_value(column.slice(at, 1)) for column in columns if column[at].is_valid]
    return b"".join(parts)


def _encode_value(one: pa.Array) -> bytes:
    """The only value of an array."""
    if pa.types.is_boolean(one.type):
        return bytes([one[0].as_py()])
    if pa.types.is_float64(one.type):
        return struct.pack("<d", one[0].as_py())
    if _is_whole(one.type):
        return _varint(int(_zigzag(_integers(one))[0]))
    value: bytes = one.cast(pa.binary())[0].as_py()
    return _varint(len(value)) + value
