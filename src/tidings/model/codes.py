"""Order-preserving int64 codes of typed values: kernels see one type, and every open end becomes a closed one by +-1.

Integers stand for themselves, doubles for their bit pattern (negatives mirrored), dates and timestamps for microseconds,
booleans for 0 and 1, text for its first eight UTF-8 bytes. Only text is lossy: equal codes then need a look at the values.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.model.catalog import Table
from tidings.model.types import ColumnType

CODE_MIN = -(2**63)
CODE_MAX = 2**63 - 1
_MIRROR = 2**63 - 1
_EPOCH = dt.datetime(1970, 1, 1)
DAY_US = 86_400_000_000

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def code_of(type: ColumnType, value: Any) -> int:
    """The code of one non-null value of the column type."""
    if type is ColumnType.DOUBLE:
        bits: int = struct.unpack("<q", struct.pack("<d", float(value) + 0.0))[0]
        return bits if bits >= 0 else bits ^ _MIRROR
    if type in (ColumnType.BIGINT, ColumnType.INT, ColumnType.BOOLEAN):
        return int(value)
    if type is ColumnType.TEXT:
        return int.from_bytes(value.encode()[:8].ljust(8, b"\0"), "big") - 2**63
    if type is ColumnType.TIMESTAMP:
        return int((value - _EPOCH) // dt.timedelta(microseconds=1))
    if type is ColumnType.DATE:
        return int((value - _EPOCH.date()).days) * DAY_US
    raise TypeError(f"{type.value} has no codes")


def plain_key(table: Table, values: Sequence[Any]) -> Any:
    """The primary key of a row as reasons show it: dates in days, timestamps in microseconds since 1970."""
    parts = []
    for name in table.key:
        type, value = table.column(name).type, values[table.column_names.index(name)]
        if type in (ColumnType.DATE, ColumnType.TIMESTAMP):
            value = code_of(type, value) // (DAY_US if type is ColumnType.DATE else 1)
        parts.append(value)
    return parts[0] if len(parts) == 1 else tuple(parts)


def double_of(code: int) -> float:
    """The double a code stands for."""
    value: float = struct.unpack("<d", struct.pack("<q", code if code >= 0 else code ^ _MIRROR))[0]
    return value


def value_of(type: ColumnType, code: int) -> str:
    """A code as a person reads it: the value it stands for (for text its first bytes)."""
    if code in (CODE_MIN, CODE_MAX):
        return "-inf" if code == CODE_MIN else "+inf"
    if type is ColumnType.DOUBLE:
        return repr(double_of(code))
    if type is ColumnType.TEXT:
        return repr((code + 2**63).to_bytes(8, "big").rstrip(b"\0").decode("utf-8", "replace"))
    if type in (ColumnType.DATE, ColumnType.TIMESTAMP):
        moment = _EPOCH + dt.timedelta(microseconds=code)
        return moment.date().isoformat() if code % DAY_US == 0 else moment.isoformat()
    return str(code)


def codes_of(type: ColumnType, values: pa.Array) -> tuple[Int64Array, BoolArray]:
    """Codes of a whole column and which of them are valid (not null); a null's code means nothing."""
    valid = np.asarray(values.is_valid()) if values.null_count else np.ones(len(values), np.bool_)
    if type is ColumnType.DOUBLE:
        return codes_of_doubles(np.asarray(values.fill_null(0.0) if values.null_count else values)), valid
    if type is ColumnType.TEXT:
        return _text_codes(values), valid
    if type is ColumnType.DATE:
        values = values.cast(pa.int32())
    elif type is ColumnType.BOOLEAN:
        values = values.cast(pa.int8())
    elif type is ColumnType.TIMESTAMP:
        values = values.cast(pa.int64())
    integers = np.asarray(values.fill_null(0) if values.null_count else values).astype(np.int64)
    return (integers * DAY_US if type is ColumnType.DATE else integers), valid


def codes_of_doubles(doubles: npt.NDArray[np.float64]) -> Int64Array:
    """Codes of numbers; infinities lie beyond all finite ones."""
    bits = (doubles + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, bits ^ np.int64(_MIRROR))


def doubles_of_codes(codes: Int64Array) -> npt.NDArray[np.float64]:
    """The doubles that codes stand for."""
    return np.where(codes >= 0, codes, codes ^ np.int64(_MIRROR)).view(np.float64)


def _text_codes(values: pa.Array) -> Int64Array:
    """First eight bytes of each text as a big-endian number, gathered without a Python object per row."""
    texts = values.fill_null("") if values.null_count else values
    binary = texts.cast(pa.binary())
    _, offsets_buffer, data_buffer = binary.buffers()
    if len(binary) == 0:
        return np.empty(0, np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int32, len(binary) + 1, binary.offset * 4).astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    data, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    at = offsets[:-1, None] + np.arange(8)
    inside = at < offsets[1:, None]
    head = np.where(inside, padded[np.minimum(at, len(data))], 0).astype(np.uint8)
    unsigned = np.ascontiguousarray(head).view(">u8").ravel().astype(np.uint64)
    return (unsigned ^ np.uint64(2**63)).view(np.int64)
