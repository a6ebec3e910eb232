"""Encodes messages (format: layout.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from research.servers.message import MessageBatch
from research.wire.layout import (
    BOOK_SHIFT,
    INDEX_TYPES,
    NULLS,
    ONE,
    REPEATS,
    SAME_TAG,
    STAIRS,
    TARGET,
    VERSION,
    Description,
    is_text,
    is_whole,
    known_codes,
    varint,
    zigzag,
)
from research.wire.repeats import repeatable, repeated
from tidings.model.codes import Int64Array
from tidings.model.region import Regions, TagArray

PART_BOXES = 2**19
"""Boxes of a part by default: some megabytes, and enough messages to profit from a book of ends."""
_SAMPLE = 1_024
"""Messages sampled to decide whether encoding with STAIRS is shorter."""


def encode(messages: MessageBatch, at: Int64Array | None = None, *, number: int = 0) -> bytes:
    """Encodes all messages, or those at `at`. number: sent in place of the description, if not 0."""
    # Imported here, as below: kernels take long to load, and not every process that imports this module encodes.
    from research.wire.kernels.varints import write_varints
    from tidings.kernels.arguments import as_argument

    everything = np.arange(len(messages))
    if at is None or np.array_equal(at, everything):
        at, seq, payload, columns = everything, messages.seq, messages.payload, columns_of(messages)
    else:
        places = pa.array(at)
        seq, payload = messages.seq[at], messages.payload.take(places)
        channel = tuple(column.take(places) for column in messages.channel)
        target = None if messages.target is None else messages.target.take(places)
        columns = columns_of(replace(messages, channel=channel, payload=payload, target=target))
    flags = 0 if messages.target is None else TARGET
    head = [varint(number)] if number else [varint(0), Description.of(messages).encode()]
    if len(at) == 1:
        flags |= ONE
    else:
        head.append(varint(len(at)))
    steps = np.concatenate([seq[:1].view(np.uint64), zigzag(np.diff(seq))])
    counts = np.diff(messages.regions.starts)[at]
    rows = [write_varints(as_argument(numbers)) for numbers in (steps, counts.view(np.uint64))]
    if any(column.null_count for column in columns):
        flags |= NULLS
        nulls = np.column_stack([np.asarray(column.is_null()) for column in columns])
        rows.append(np.packbits(nulls.ravel(), bitorder="little"))
    repeats = repeated(payload)
    if repeats.any():
        flags |= REPEATS
        rows.append(np.packbits(repeats.ravel(), bitorder="little"))
        for i, (_, later) in enumerate(repeatable(payload.schema)):
            place = len(messages.channel) + later
            columns[place] = columns[place].filter(pa.array(~repeats[:, i]))
    rows += [part for column in columns for part in _values(column)]
    boxes_flags, boxes = _boxes(messages.regions, at, counts, payload)
    return b"".join([bytes([VERSION, flags | boxes_flags]), *head, *rows, *boxes])


def encode_parts(messages: MessageBatch, at: Int64Array | None = None, boxes_max: int = PART_BOXES) -> Iterator[bytes]:
    """As `encode`, in parts of at most `boxes_max` boxes. Messages of one seq stay in one part, which may then be larger."""
    at = np.arange(len(messages)) if at is None else at
    ends = np.cumsum(np.diff(messages.regions.starts)[at])
    if not len(at) or ends[-1] <= boxes_max:
        yield encode(messages, at)
        return
    seq, start = messages.seq[at], 0
    while start < len(at):
        sent = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, sent + boxes_max, "right"))
        if stop < len(at):
            stop = int(np.searchsorted(seq, seq[stop]))
            if stop <= start:
                stop = int(np.searchsorted(seq, seq[start], "right"))
        yield encode(messages, at[start:stop])
        start = stop


def columns_of(messages: MessageBatch) -> list[pa.Array]:
    """All columns in the order of the format: channel, payload, target."""
    target = [] if messages.target is None else [messages.target]
    return [*messages.channel, *messages.payload.columns, *target]


def integers(column: pa.Array) -> Int64Array:
    """The values of a column of whole numbers, as int64. The value of a null is undefined."""
    if column.null_count:
        column = pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], 0, column.offset)
    if not pa.types.is_integer(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return np.asarray(column).astype(np.int64, copy=False)


def _values(column: pa.Array) -> list[Any]:
    """Encodes the values of a column that are not null, as parts to be joined."""
    from research.wire.kernels.varints import write_varints
    from tidings.kernels.arguments import as_argument

    values = column.drop_null() if column.null_count else column
    if is_whole(values.type):
        return [write_varints(zigzag(integers(values)))]
    if is_text(values.type):
        offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)
        lengths = write_varints(as_argument(np.diff(offsets), np.uint64))
        data = values.buffers()[2]
        return [lengths] if data is None else [lengths, data.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))]
    if pa.types.is_boolean(values.type):
        return [np.packbits(values.to_numpy(zero_copy_only=False), bitorder="little")]
    doubles = values.flatten() if pa.types.is_fixed_size_list(values.type) else values
    return [np.ascontiguousarray(doubles.to_numpy(zero_copy_only=False), "<f8")]


def _boxes(regions: Regions, at: Int64Array, counts: Int64Array, payload: pa.RecordBatch) -> tuple[int, Sequence[Any]]:
    """(flags, encoded parts) of the boxes of the regions at `at`. counts: their numbers of boxes; payload: their rows."""
    from research.wire.kernels.ends import count_ends, write_ends
    from tidings.kernels.arguments import as_argument

    tags = _tags(regions, at, counts)
    flags = SAME_TAG if len(tags) < counts.sum() else 0
    known, numbers = known_codes(payload)
    lo, hi, starts, groups = (as_argument(part) for part in (regions.lo, regions.hi, regions.starts, at))
    has_stairs = False
    if counts.max(initial=0) > 1:
        sample = lo, hi, starts, groups[:_SAMPLE], known
        without, with_stairs = (int(count_ends(*sample, has_stairs)[0].sum()) for has_stairs in (False, True))
        has_stairs = with_stairs < without
    states, references, literals = write_ends(lo, hi, starts, groups, known, numbers, has_stairs)
    width, spelled = _literals(literals) if len(at) > 1 else (0, [literals])
    flags |= (STAIRS if has_stairs else 0) | width << BOOK_SHIFT
    return flags, [tags, states, references, *spelled]


def _tags(regions: Regions, at: Int64Array, counts: Int64Array) -> TagArray:
    """Tags of the boxes of the regions at `at`; a single one if all boxes have the same."""
    tags, total = regions.tags, int(counts.sum())
    may_be_one = total > 1 and regions.dims > 0
    if may_be_one and (tags == tags[0]).all():
        return tags[:1]
    tags = tags[np.repeat(regions.starts[at] - np.cumsum(counts) + counts, counts) + np.arange(total)]
    return tags[:1] if may_be_one and (tags == tags[0]).all() else tags


def _literals(literals: Int64Array) -> tuple[int, list[Any]]:
    """(index in INDEX_TYPES, encoded parts) of the literals: with a book if that is shorter."""
    from research.wire.kernels.book import write_book

    book, index = write_book(literals)
    if len(book):
        width = 1 + (len(book) > 2**8) + (len(book) > 2**16)
        indices: npt.NDArray[Any] = index.astype(INDEX_TYPES[width])
        count = varint(len(book))
        if len(count) + book.nbytes + indices.nbytes < literals.nbytes:
            return width, [count, book, indices]
    return 0, [literals]
