"""Decodes messages (format: layout.py). Any bytes give either a batch or a `WireError`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from research.servers.message import MessageBatch
from research.wire.layout import (
    BOOK_SHIFT,
    INDEX_TYPES,
    NOT_NULLABLE,
    NULLS,
    ONE,
    REFERRED_MAX,
    REPEATS,
    SAME_TAG,
    STAIRS,
    TARGET,
    TYPES,
    VERSION,
    Description,
    WireError,
    bytes_of_bits,
    doubles_each,
    is_text,
    is_whole,
    known_codes,
    unzigzag,
)
from research.wire.repeats import repeatable, restored
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.region import Regions

_SIZE_BITS = 42
"""Sizes and counts of this many bits or more are refused: they would exceed any real batch."""


def decode(blob: bytes, numbered: Mapping[int, Description] | None = None) -> MessageBatch:
    """The encoded messages. numbered: number -> description, for batches that name theirs by number."""
    reader = _Reader(blob)
    version = reader.byte()
    if version != VERSION:
        raise WireError(f"messages in version {version} of the wire format; this program reads version {VERSION}")
    flags = reader.byte()
    described = _description(reader, numbered or {})
    count = 1 if flags & ONE else reader.size()
    seq = reader.varints(count)
    seq[1:] = unzigzag(seq[1:]).view(np.uint64)
    np.cumsum(seq, out=seq)
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(reader.sizes(count), out=starts[1:])
    types = [*described.channel, *described.payload.types, *([pa.string()] if flags & TARGET else [])]
    nulls = reader.bits(count * len(types)).reshape(count, len(types)) if flags & NULLS else None
    pairs = repeatable(described.payload) if flags & REPEATS else ()
    repeats = reader.bits(count * len(pairs)).reshape(count, len(pairs))
    there = np.ones((count, len(types)), np.bool_) if nulls is None else ~nulls
    for i, (_, later) in enumerate(pairs):
        there[:, len(described.channel) + later] &= ~repeats[:, i]
    columns = [_column(reader, type, count, there[:, i]) for i, type in enumerate(types)]
    target = columns.pop() if flags & TARGET else None
    channel, rest = columns[: len(described.channel)], restored(columns[len(described.channel) :], pairs, repeats)
    payload = pa.RecordBatch.from_arrays(rest, schema=described.payload) if rest else _no_columns(count)
    regions = _regions(reader, flags, starts, described.dims, payload)
    to, axes = described.to, described.axes
    return MessageBatch(described.form, seq.view(np.int64), tuple(channel), regions, payload, target, to, axes)


class _Reader:
    """Reads a blob from its start on. All methods advance, and raise WireError if bytes are missing."""

    def __init__(self, blob: bytes) -> None:
        self._buffer = pa.py_buffer(blob)
        self._data = np.frombuffer(self._buffer, np.uint8)
        # Always read-only, so that kernels are compiled for one kind of array.
        self._data.flags.writeable = False
        self._blob = blob
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._blob) - self._at

    def take(self, length: int) -> int:
        """Advances by `length` bytes. Returns the place of the first."""
        if not 0 <= length <= self.left:
            raise WireError(f"messages end at byte {len(self._blob)}, in the middle of something")
        self._at += length
        return self._at - length

    def byte(self) -> int:
        return self._blob[self.take(1)]

    def size(self) -> int:
        """Reads a varint that is a size or count, below 2 ** _SIZE_BITS or so."""
        found = shift = 0
        while True:
            byte = self.byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7
            if shift > _SIZE_BITS:
                raise WireError(f"a size of {found} or more, which cannot be")

    def bytes(self, length: int) -> bytes:
        start = self.take(length)
        return bytes(self._blob[start : start + length])

    def slice(self, length: int) -> pa.Buffer:
        """The next bytes, without a copy."""
        return self._buffer.slice(self.take(length), length)

    def text(self) -> str:
        return self.bytes(self.size()).decode()

    def numbers(self, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Reads an array. Copies it, as kernels want aligned memory."""
        size = count * np.dtype(dtype).itemsize
        start = self.take(size)
        return self._data[start : start + size].view(dtype).copy()

    def varints(self, count: int) -> npt.NDArray[np.uint64]:
        from research.wire.kernels.varints import OVERRUN, read_varints

        if count > self.left:
            raise WireError(f"{count} numbers in {self.left} bytes")
        found = np.empty(count, np.uint64)
        end = read_varints(self._data, self._at, found)
        if end == OVERRUN:
            raise WireError(f"messages end at byte {len(self._blob)}, or have too long a number before")
        self._at = end
        return found

    def sizes(self, count: int) -> Int64Array:
        """Reads varints that are sizes or counts, together below 2 ** _SIZE_BITS."""
        found = self.varints(count)
        if count and (int(found.max()) >= 1 << _SIZE_BITS or int(found.sum()) >= 1 << _SIZE_BITS):
            raise WireError(f"a size of {found.max()}, which cannot be")
        return found.view(np.int64)

    def bits(self, count: int) -> BoolArray:
        packed = self.numbers(np.uint8, bytes_of_bits(count))
        return np.unpackbits(packed, count=count, bitorder="little").view(np.bool_)


def _description(reader: _Reader, numbered: Mapping[int, Description]) -> Description:
    number = reader.size()
    if not number:
        return _described(reader.bytes(reader.size()))
    if number not in numbered:
        raise WireError(f"messages of form number {number}, which nobody has described here")
    return numbered[number]


@lru_cache(1_024)
def _described(data: bytes) -> Description:
    reader = _Reader(data)
    try:
        form, to = reader.text(), tuple([reader.text() for _ in range(reader.size())])
        dims = reader.size()
        axes = tuple([reader.text() for _ in range(dims if to else 0)])
        channel = tuple([TYPES[reader.byte()] for _ in range(reader.size())])
        fields = []
        for _ in range(reader.size()):
            number = reader.byte()
            fields.append(pa.field(reader.text(), TYPES[number % NOT_NULLABLE], number < NOT_NULLABLE))
    except (UnicodeDecodeError, IndexError) as error:
        raise WireError(f"a description of messages makes no sense: {error}") from None
    return Description(form, to, dims, axes, channel, pa.schema(fields))


def _no_columns(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(count)], ["none"]).select([])


def _column(reader: _Reader, type: pa.DataType, count: int, valid: BoolArray | None) -> pa.Array:
    """Reads a column of `count` values. valid: [count], False for null; None if there are no nulls."""
    there = count if valid is None else int(valid.sum())
    bitmap = None if valid is None or there == count else pa.py_buffer(np.packbits(valid, bitorder="little"))

    def spread(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The values at their places among nulls, which are 0."""
        if bitmap is None:
            return values
        found = np.zeros((count, *values.shape[1:]), values.dtype)
        found[valid] = values
        return found

    if is_text(type):
        lengths = reader.sizes(there)
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(spread(lengths), out=offsets[1:])
        buffers = [bitmap, pa.py_buffer(offsets), reader.slice(int(lengths.sum()))]
        return _valid(pa.Array.from_buffers(type, count, buffers))
    if pa.types.is_boolean(type):
        bits = np.packbits(spread(reader.bits(there)), bitorder="little")
        return pa.Array.from_buffers(type, count, [bitmap, pa.py_buffer(bits)])
    if is_whole(type):
        values = spread(unzigzag(reader.varints(there))).astype(f"<i{type.bit_width // 8}")
        return pa.Array.from_buffers(type, count, [bitmap, pa.py_buffer(values)])
    each = doubles_each(type)
    values = spread(reader.numbers("<f8", there * each).reshape(there, each)).ravel()
    if not pa.types.is_fixed_size_list(type):
        return pa.Array.from_buffers(type, count, [bitmap, pa.py_buffer(values)])
    return pa.Array.from_buffers(type, count, [bitmap], children=[pa.array(values)])


def _valid(texts: pa.Array) -> pa.Array:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise WireError(f"a column of texts makes no sense: {error}") from None
    return texts


def _regions(reader: _Reader, flags: int, starts: Int64Array, dims: int, payload: pa.RecordBatch) -> Regions:
    from research.wire.kernels.ends import NOWHERE, count_references, read_ends

    boxes = int(starts[-1])
    if flags & SAME_TAG and not dims:
        raise WireError("boxes without dimensions that share a tag: there may be any number of these")
    tags = np.full(boxes, reader.byte(), np.uint8) if flags & SAME_TAG else reader.numbers(np.uint8, boxes)
    states = reader.numbers(np.uint8, (boxes * dims + 1) // 2)
    references = reader.numbers(np.uint8, count_references(states, starts, dims))
    literals = _literals(reader, INDEX_TYPES[flags >> BOOK_SHIFT & 3])
    known, numbers = known_codes(payload)
    places = np.full(REFERRED_MAX, NOWHERE, np.int64)
    places[numbers] = np.arange(len(numbers))
    lo, hi = np.empty((boxes, dims), np.int64), np.empty((boxes, dims), np.int64)
    if not read_ends(states, references, literals, starts, known, places, bool(flags & STAIRS), lo, hi):
        raise WireError("ends of boxes say other than their states")
    return Regions(lo, hi, tags, starts)


def _literals(reader: _Reader, index: Any) -> Int64Array:
    """Reads the literals, followed by a 0. index: type of indices into the book, or None."""
    from research.wire.kernels.book import read_book

    if index is None:
        count = reader.left // 8
        found = np.zeros(count + 1, np.int64)
        found[:-1] = reader.numbers("<i8", count)
    else:
        book = reader.numbers("<i8", reader.size())
        count = reader.left // np.dtype(index).itemsize
        found = np.zeros(count + 1, np.int64)
        if not read_book(book, reader.numbers(index, count).astype(np.uint32), found):
            raise WireError("an end of a box is not in the book of ends")
    if reader.left:
        raise WireError(f"{reader.left} bytes behind messages")
    return found
