"""The bytes of a batch of messages: what stands where.

Fixed widths are little-endian. A varint has seven bits to a byte, the lowest first, and a high bit on all bytes but the
last; zigzag first turns 0, -1, 1, -2, .. into 0, 1, 2, 3, .. A text is its length (varint) and its bytes. The parts of a
batch are columns, each of all its messages; a single message is a batch of one.

    version       u8, 2
    flags         u8: TARGET | NULLS | ONE | SAME_TAG | STAIRS | width of book indices | REPEATS
    form          varint: the number both ends have given to a description; 0: the description follows
    description   its length; form (text); `to`: count, texts; dims; if `to` has any: axes, texts; channel: count, types (u8
                  each); payload: count, then per column its type and name
    count         varint, the messages; left out with ONE, which says it is 1
    seqs          varint of the first; zigzag varints of each less the one before
    box counts    varints
    nulls         with NULLS: a bit per message and column (channel, payload, target), messages outermost
    repeats       with REPEATS: a bit per message and pair of columns of which one may repeat the other (repeats.py)
    values        column after column (channel, payload, and with TARGET target), of values that are not null nor repeats
    tags          u8 per box; with SAME_TAG, which only boxes with dimensions have, one for all
    states        two bits per end: lo and hi of a box's first dimension, lo and hi of its next, .., box after box
    references    u8 each
    book          with indices: count (varint), 8 bytes each
    literals      8 bytes each, or indices into the book, to the end

Values: whole numbers, dates and timestamps are zigzag varints; a double has 8 bytes, a point two of these, a box four;
booleans are bits; texts and binaries come as all lengths (varints), then all bytes.

State of an end, and what it needs:

    0  open                                                               nothing
    1  any code                                                           a literal
    2  first box of a message: the code of a payload value                a reference: the number of its column
       later boxes: the same end of the box before                        nothing
    3  the bounded end before it in its box; but in later boxes           nothing
       with STAIRS: next to the dimension's other end in the box before
       (a lo one above its hi, a hi one below its lo)

Where several fit an end it is 0, else 3, else 2 (by the first column that fits). The lowest code of all is never told by
a column: among codes of values it stands for null. The first box of a row often has the row's own values for ends, which
is why the payload goes before the boxes; the boxes of a region share most of theirs, or are steps of stairs; and messages
for changes of the same rows have ends in common, which a book of them says once. A batch of one has no book.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from research.servers.message import MessageBatch
from tidings.model.codes import CODE_MIN, Int64Array, codes_of
from tidings.model.errors import TidingsError
from tidings.model.types import ColumnType

VERSION = 2

TARGET, NULLS, ONE, SAME_TAG, STAIRS = (1 << bit for bit in range(5))
BOOK_SHIFT = 5
REPEATS = 1 << 7
INDEX_TYPES: tuple[type[np.unsignedinteger[Any]] | None, ...] = (None, np.uint8, np.uint16, np.uint32)
"""Types of indices into the book, by two of the flags' bits; None: there is no book."""

TYPES: tuple[pa.DataType, ...] = (
    *(type.arrow for type in ColumnType),
    pa.int8(),
    pa.int16(),
)
"""Types of columns, by the number that stands for each."""
_TYPE_NUMBERS = {type: number for number, type in enumerate(TYPES)}
NOT_NULLABLE = 128
"""Added to the type of a payload column that is declared without nulls."""

REFERRED_MAX = 256
"""Only this many payload columns can be referred to: a reference has one byte."""
_CODED = {
    type.arrow: type
    for type in (ColumnType.BIGINT, ColumnType.INT, ColumnType.DOUBLE, ColumnType.DATE, ColumnType.TIMESTAMP)
}
"""Types whose values ends may refer to: all comparable types with exact codes."""


class WireError(TidingsError):
    """Bytes are no batch of messages in this version of the format, or messages cannot be encoded in it."""


@dataclass(frozen=True)
class Description:
    """What the messages of a batch have in common. Both ends of a link may agree on a number, to be sent instead."""

    form: str
    to: tuple[str, ...]
    dims: int
    axes: tuple[str, ...]
    channel: tuple[pa.DataType, ...]
    payload: pa.Schema

    @staticmethod
    def of(messages: MessageBatch) -> Description:
        types = tuple(column.type for column in messages.channel)
        dims, schema = messages.regions.dims, messages.payload.schema
        return Description(messages.form, messages.to, dims, messages.axes, types, schema)

    def encode(self) -> bytes:
        if len(self.axes) != (self.dims if self.to else 0):
            raise WireError(f"messages to {len(self.to)} other forms name {len(self.axes)} axes of {self.dims}")
        parts = [
            _text(self.form),
            varint(len(self.to)),
            *map(_text, self.to),
            varint(self.dims),
            *map(_text, self.axes),
        ]
        parts += [varint(len(self.channel)), bytes(map(_type_number, self.channel)), varint(len(self.payload))]
        for field in self.payload:
            number = _type_number(field.type) + (0 if field.nullable else NOT_NULLABLE)
            parts += [bytes([number]), _text(field.name)]
        data = b"".join(parts)
        return varint(len(data)) + data


def varint(number: int) -> bytes:
    """Encodes a number that is not negative."""
    parts = bytearray()
    while number >= 128:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _text(text: str) -> bytes:
    data = text.encode()
    return varint(len(data)) + data


def _type_number(type: pa.DataType) -> int:
    if type not in _TYPE_NUMBERS:
        raise WireError(f"columns of type {type} cannot be sent; use one of {', '.join(map(str, TYPES))}")
    return _TYPE_NUMBERS[type]


def bytes_of_bits(bits: int) -> int:
    return (bits + 7) // 8


def is_whole(type: pa.DataType) -> bool:
    """Whether values of the type are encoded as whole numbers."""
    return bool(pa.types.is_integer(type) or pa.types.is_date(type) or pa.types.is_timestamp(type))


def is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type))


def doubles_each(type: pa.DataType) -> int:
    """Number of doubles in a value of the type, which consists of doubles."""
    return int(type.list_size) if pa.types.is_fixed_size_list(type) else 1


def zigzag(numbers: Int64Array) -> npt.NDArray[np.uint64]:
    """Unsigned numbers, small if the signed ones are near 0."""
    return (numbers << 1 ^ numbers >> 63).view(np.uint64)


def unzigzag(numbers: npt.NDArray[np.uint64]) -> Int64Array:
    one = np.uint64(1)
    return (numbers >> one ^ -(numbers & one).view(np.int64).view(np.uint64)).view(np.int64)


def coded_columns(payload: pa.RecordBatch) -> Iterator[tuple[int, ColumnType, pa.Array]]:
    """Number, type and values of the columns that ends may refer to."""
    for number, column in enumerate(payload.columns[:REFERRED_MAX]):
        if column.type in _CODED:
            yield number, _CODED[column.type], column


def known_codes(payload: pa.RecordBatch) -> tuple[Int64Array, npt.NDArray[np.uint8]]:
    """(codes of the values that ends may refer to, [columns, rows]; numbers of these columns).

    A null has the lowest code, to which no end refers.
    """
    columns = list(coded_columns(payload))
    found = np.empty((len(columns), payload.num_rows), np.int64)
    for i, (_, type, column) in enumerate(columns):
        codes, valid = codes_of(type, column)
        found[i] = np.where(valid, codes, CODE_MIN) if column.null_count else codes
    return found, np.array([number for number, _, _ in columns], np.uint8)
