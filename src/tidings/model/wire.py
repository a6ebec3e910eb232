"""The bytes of a message as the network carries it, and their number without making them.

Layout, little-endian: form number u32, seq i64, box count u16, flags u8; then the channel, the boxes, the payload.
A box is its tag and two bits per dimension telling which ends are bounded, followed by the bounded ends: open sides cost
nothing. Values: a null bitmap, then 8 bytes per number (1 per boolean, 4 per INT or DATE) and length + bytes per text.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array
from tidings.model.message import MessageBatch

_HEADER = struct.Struct("<IqHB")


def wire_sizes(messages: MessageBatch) -> Int64Array:
    """Size in bytes of every message of the batch."""
    regions = messages.regions
    bounded = (regions.lo != CODE_MIN).sum(axis=1) + (regions.hi != CODE_MAX).sum(axis=1)
    ends = np.concatenate([[0], np.cumsum(_box_size(regions.dims) + 8 * bounded)])
    sizes = _HEADER.size + ends[regions.starts[1:]] - ends[regions.starts[:-1]]
    for columns in _columns(messages):
        sizes += _values_sizes(columns, len(messages))
    final: Int64Array = sizes.astype(np.int64)
    return final


def wire_size(messages: MessageBatch) -> int:
    """Size in bytes of all of them, which is cheaper to tell than that of each."""
    regions = messages.regions
    bounded = np.count_nonzero(regions.lo != CODE_MIN) + np.count_nonzero(regions.hi != CODE_MAX)
    size = _HEADER.size * len(messages) + _box_size(regions.dims) * len(regions.lo) + 8 * int(bounded)
    return size + sum(int(_values_sizes(columns, len(messages)).sum()) for columns in _columns(messages))


def _columns(messages: MessageBatch) -> list[Sequence[pa.Array]]:
    target = [] if messages.target is None else [[messages.target]]
    return [messages.channel, messages.payload.columns, *target]


def _box_size(dims: int) -> int:
    """Bytes of a box without its ends."""
    return 1 + _bitmap_size(2 * dims)


def encode_message(messages: MessageBatch, at: int, form_number: int) -> bytes:
    """Message `at` of the batch as bytes."""
    regions = messages.regions
    start, stop = int(regions.starts[at]), int(regions.starts[at + 1])
    flags = 0 if messages.target is None else 1
    parts = [_HEADER.pack(form_number, int(messages.seq[at]), stop - start, flags)]
    parts.append(_encode_values(messages.channel, at))
    for box in range(start, stop):
        ends = [(int(lo), int(hi)) for lo, hi in zip(regions.lo[box], regions.hi[box], strict=True)]
        bounds = [(lo, lo != CODE_MIN) for lo, _ in ends] + [(hi, hi != CODE_MAX) for _, hi in ends]
        bits = sum(1 << i for i, (_, is_bounded) in enumerate(bounds) if is_bounded)
        parts.append(bytes([int(regions.tags[box])]) + bits.to_bytes(_bitmap_size(len(bounds)), "little"))
        parts.extend(struct.pack("<q", end) for end, is_bounded in bounds if is_bounded)
    parts.append(_encode_values(messages.payload.columns, at))
    if messages.target is not None:
        parts.append(_encode_values([messages.target], at))
    return b"".join(parts)


def _bitmap_size(bits: int) -> int:
    return (bits + 7) // 8


def _width(type: pa.DataType) -> int:
    """Bytes of a fixed-width value; 0 where values have a length of their own."""
    if pa.types.is_boolean(type):
        return 1
    return 0 if pa.types.is_string(type) or pa.types.is_binary(type) else int(type.bit_width) // 8


def _values_sizes(columns: Sequence[pa.Array], length: int) -> Int64Array:
    sizes = np.full(length, _bitmap_size(len(columns)), np.int64)
    for column in columns:
        width = _width(column.type)
        if width:
            sizes += width * np.asarray(column.is_valid()) if column.null_count else width
        else:
            lengths = pc.add(pc.binary_length(column), 4).fill_null(0)
            sizes += np.asarray(lengths).astype(np.int64)
    return sizes


def _encode_values(columns: Sequence[pa.Array], at: int) -> bytes:
    nulls = sum(1 << i for i, column in enumerate(columns) if not column[at].is_valid)
    parts = [nulls.to_bytes(_bitmap_size(len(columns)), "little")]
    for column in columns:
        if not column[at].is_valid:
            continue
        width = _width(column.type)
        if width == 0:
            value = column.slice(at, 1).cast(pa.binary())[0].as_py()
            parts.append(struct.pack("<I", len(value)) + value)
        elif pa.types.is_boolean(column.type):
            parts.append(bytes([int(column[at].as_py())]))
        else:
            _, data = column.slice(at, 1).buffers()
            offset = (column.offset + at) * width
            parts.append(data.slice(offset, width).to_pybytes())
    return b"".join(parts)
