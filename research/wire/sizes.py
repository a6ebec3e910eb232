"""Encoded sizes of messages, each sent alone, without encoding them: for estimates, benches and `--stats`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from research.servers.message import MessageBatch
from research.wire.encode import columns_of, integers
from research.wire.layout import bytes_of_bits, doubles_each, is_text, is_whole, known_codes, varint, zigzag
from research.wire.repeats import repeatable, repeated
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.region import Regions


def wire_sizes(messages: MessageBatch, number: int = 1) -> Int64Array:
    """Encoded size in bytes of every message, [messages]: that of `encode(messages, [i], number=number)`.

    A description without a number counts as one byte, as if it had one of the first 127.
    """
    sizes = 2 + len(varint(number)) + _varint_sizes(messages.seq)
    sizes += _values_sizes(columns_of(messages), len(messages)) - _spared_sizes(messages.payload)
    return sizes + _boxes_sizes(messages.regions, messages.payload)


def wire_size(messages: MessageBatch, number: int = 1) -> int:
    """Sum of `wire_sizes`."""
    return int(wire_sizes(messages, number).sum())


def _boxes_sizes(regions: Regions, payload: pa.RecordBatch) -> Int64Array:
    """Encoded bytes of the box count and the boxes of every message, [messages]."""
    from research.wire.kernels.ends import count_ends
    from tidings.kernels.arguments import as_argument

    lo, hi, starts = (as_argument(part) for part in (regions.lo, regions.hi, regions.starts))
    counts, groups, (known, _) = np.diff(starts), np.arange(len(regions)), known_codes(payload)
    literals, references = count_ends(lo, hi, starts, groups, known, False)
    literals = np.minimum(literals, count_ends(lo, hi, starts, groups, known, True)[0])
    tag_bytes = np.where(_tags_differ(regions), counts, np.minimum(counts, 1)) if regions.dims else counts
    sizes: Int64Array = _varint_sizes(counts) + tag_bytes + (counts * regions.dims + 1) // 2 + references + 8 * literals
    return sizes


def _tags_differ(regions: Regions) -> BoolArray:
    """Whether each region has boxes of different tags, [regions]; undefined for regions without boxes."""
    tags = regions.tags
    steps = np.zeros(max(1, len(tags)), np.int64)
    np.cumsum(tags[1:] != tags[:-1], out=steps[1:])
    first, last = np.minimum(regions.starts[:-1], len(steps) - 1), np.maximum(regions.starts[1:] - 1, 0)
    found: BoolArray = steps[first] != steps[last]
    return found


def _varint_sizes(numbers: npt.NDArray[np.int64 | np.uint64]) -> Int64Array:
    """Encoded bytes of numbers that are not negative."""
    from research.wire.kernels.varints import varint_lengths
    from tidings.kernels.arguments import as_argument

    sizes: Int64Array = varint_lengths(as_argument(numbers).view(np.uint64))
    return sizes


def _values_sizes(columns: Sequence[pa.Array], length: int) -> Int64Array:
    """Encoded bytes of the nulls and values of every message, [messages]."""
    sizes, has_null = np.zeros(length, np.int64), np.zeros(length, np.bool_)
    for column in columns:
        each = _value_sizes(column)
        if column.null_count:
            is_null = np.asarray(column.is_null())
            has_null |= is_null
            each = np.where(is_null, 0, each)
        sizes += each
    return sizes + bytes_of_bits(len(columns)) * has_null


def _spared_sizes(payload: pa.RecordBatch) -> Int64Array:
    """Bytes saved by repeats in every message, [messages]: those of the values, less those of the marks."""
    repeats, pairs = repeated(payload), repeatable(payload.schema)
    spared = np.zeros(payload.num_rows, np.int64)
    for i, (_, later) in enumerate(pairs):
        spared += np.where(repeats[:, i], _value_sizes(payload.column(later)), 0)
    return spared - bytes_of_bits(len(pairs)) * repeats.any(axis=1)


def _value_sizes(column: pa.Array) -> Int64Array | int:
    """Encoded bytes of every value, as one number if all have the same; undefined for nulls."""
    if is_whole(column.type):
        return _varint_sizes(zigzag(integers(column)))
    if is_text(column.type):
        lengths = integers(pc.binary_length(column))
        return lengths + _varint_sizes(lengths)
    return 1 if pa.types.is_boolean(column.type) else 8 * doubles_each(column.type)
