"""Channels: the equality constants of subscriptions. Rows and points on different channels never meet.

A channel is a tuple with one component per equality column: the text itself for TEXT, the int64 code for other types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.model.codes import BoolArray, Int64Array, code_of, codes_of
from tidings.model.types import ColumnType

ChannelKey = tuple[str | int, ...]


def channel_type(type: ColumnType) -> pa.DataType:
    return pa.string() if type is ColumnType.TEXT else pa.int64()


def channel_component(type: ColumnType, value: Any) -> str | int:
    return str(value) if type is ColumnType.TEXT else code_of(type, value)


def channel_column(type: ColumnType, values: pa.Array) -> tuple[pa.Array, BoolArray]:
    """A column of channel components and which of them are valid."""
    if type is ColumnType.TEXT:
        return values, np.asarray(values.is_valid())
    codes, valid = codes_of(type, values)
    return pa.array(codes), valid


def group_channels(columns: Sequence[pa.Array], length: int) -> tuple[Int64Array, list[ChannelKey]]:
    """Which distinct channel each row has: (index into the list per row, distinct channels). Work per row is columnar."""
    if not columns:
        return np.zeros(length, np.int64), [()] if length else []
    inverse, components = _encode(columns[0])
    keys: list[ChannelKey] = [(component,) for component in components]
    for column in columns[1:]:
        other, components = _encode(column)
        pairs, inverse = np.unique(inverse * len(components) + other, return_inverse=True)
        keys = [(*keys[pair // len(components)], components[pair % len(components)]) for pair in pairs.tolist()]
    return inverse.astype(np.int64), keys


def _encode(column: pa.Array) -> tuple[Int64Array, list[str | int]]:
    """Number of each row's component in a list of the distinct ones; null counts as one of them (None)."""
    encoded = column.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist()


def channel_keys(columns: Sequence[pa.Array], length: int) -> list[ChannelKey]:
    """The channel of every row, as plain tuples."""
    return list(zip(*(column.to_pylist() for column in columns), strict=True)) if columns else [()] * length


def channel_columns(types: Sequence[pa.DataType], keys: Iterable[ChannelKey]) -> list[pa.Array]:
    """The columnar form of a list of channels."""
    rows = list(keys)
    return [pa.array([row[i] for row in rows], type) for i, type in enumerate(types)]
